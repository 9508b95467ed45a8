"""The page on studies: its blocks run as they stand, and it tells every key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests import forks

from consenso.study.data import read_data
from consenso.study.keys import Faults, Keys
from consenso.study.model import read_model
from consenso.study.output import read_output
from consenso.study.privacy import read_privacy
from consenso.study.setting import SPLITS, read_setting

PAGE = Path(__file__).parents[2] / "docs" / "study.md"
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```", re.M | re.S)


@pytest.mark.slow
def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    # Files first: a page may show a schema after the study that names it.
    blocks = sorted(BLOCK.finditer(text), key=lambda block: block[1] != "toml")
    for block in blocks:
        language, body = block.groups()
        if language == "toml":
            before = text[: block.start()].strip().splitlines()[-1] + text[: block.start()].strip().splitlines()[-2]
            (tmp_path / re.findall(r"`([\w.-]+\.toml)`", before)[-1]).write_text(body)
        elif language == "python":
            exec(compile(body, "study.md", "exec"), names)
        else:
            for line in body.strip().splitlines():
                forks.type_in(line, tmp_path)
    assert (tmp_path / "digits.onnx").exists()
    assert (tmp_path / "runs" / "digits" / "report.html").exists()


def test_every_key_is_told() -> None:
    text = PAGE.read_text(encoding="utf-8")
    asked: dict[str, set[str]] = {}
    for name, read in (
        ("data", lambda keys: read_data(keys, Path())),
        ("model", lambda keys: read_model(keys, None, intercept=False, usual_penalty="none")),
        ("privacy", read_privacy),
        ("setting", read_setting),
        ("output", read_output),
    ):
        keys = Keys({}, name, Faults())
        read(keys)
        asked[name] = keys.asked
    for name, keys_of_section in asked.items():
        section = text.split(f"\n## [{name}]\n")[1].split("\n## ")[0]
        told = set(re.findall(r"^\| `(\w+)` \|", section.split("[setting.split]")[0], re.M))
        assert told == keys_of_section, name
    split = text.split("The keys of `[setting.split]`")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", split, re.M)) == {
        "kind",
        "parties",
        "sizes",
        "size",
        "seed",
        "concentration",
    }
    assert all(f'"{kind}"' in split for kind in SPLITS)
