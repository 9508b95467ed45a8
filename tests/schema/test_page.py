"""The page docs/data.md: its examples run, and its tables say what the catalogue says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from consenso.datasets import catalogue

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (schema,), (people,) = blocks("toml"), blocks("csv")
    Path("schema.toml").write_text(schema)
    Path("people.csv").write_text(people)
    code = blocks("python")
    assert len(code) == 2
    for block in code:
        exec(compile(block, str(PAGE), "exec"), {})


def test_tables_agree_with_the_catalogue() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for told in catalogue().values():
        assert f"| `{told.name}` | {told.task} | {told.rows:,} | {told.test_rows:,} | {told.features} | " in text
        assert told.licence in text
        assert told.notes in text
        assert told.origin in text
        for resource in told.resources:
            for form in resource.forms:
                assert f"| `{form.name}` | `{form.sha256}` |" in text
                assert form.url is None or f"<{form.url}>" in text
