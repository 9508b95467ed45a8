"""Every block of the tutorials and guides runs as it stands; the site builds without a warning.

In a page, `python` blocks run one after the other, a `toml` block is saved under the name in the line before it,
and each line of a `console` block is run by a shell. `sh` blocks are not run: they wait for a person.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests import forks

ROOT = Path(__file__).parents[2]
PAGES = (
    "tutorials/one-table",
    "tutorials/federation",
    "tutorials/peers",
    "tutorials/long-table",
    "tutorials/cluster",
    "which-guarantee",
    "which-algorithm",
    "comparison",
    "solvers",
)
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```", re.M | re.S)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    found = list(BLOCK.finditer(text))
    assert found
    for block in found:
        language, body = block.groups()
        if language == "python":
            exec(compile(body, name, "exec"), names)
        elif language == "toml":
            before = text[: block.start()].strip().splitlines()[-1]
            (tmp_path / re.findall(r"`([\w.-]+\.toml)`", before)[-1]).write_text(body)
        else:
            for line in body.strip().splitlines():
                forks.type_in(line, tmp_path)
    if "tutorials" in name and any(block.group(1) == "console" for block in found):
        assert list((tmp_path / "runs").glob("*/report.html"))


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    forks.type_in(f"mkdocs build --strict --quiet --site-dir {tmp_path / 'site'}", ROOT)
    assert (tmp_path / "site" / "index.html").exists()
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?://[^\"> ]+)", page.read_text())
        assert not [address for address in loaded if "canonical" not in address], page
