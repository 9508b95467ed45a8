"""Links between pages, and from programs to pages, lead to files and headings that are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
PROGRAMS = sorted(
    path for folder in ("src", "benchmarks", "tests", "experiments", "docs") for path in (ROOT / folder).rglob("*.py")
)
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\((?!\w+:)([^()\s#]*)(?:#([\w-]+))?\)")
NAMED = re.compile(r"docs/([\w/-]+\.md)(?:#([\w-]+))?")


@cache
def headings(page: Path) -> tuple[str, ...]:
    return tuple(re.findall(r"^#+ (.+?)\s*$", FENCED.sub("", page.read_text(encoding="utf-8")), re.M))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Those that Python-Markdown makes of headings, and those of GitHub, which keeps every space as a dash."""
    words = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings(page)]
    return frozenset(re.sub(r"[-\s]+", "-", word) for word in words) | {word.replace(" ", "-") for word in words}


def is_missing(page: Path, anchor: str | None) -> bool:
    return not page.exists() or bool(anchor and anchor not in anchors(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    missing = [
        f"{name}#{anchor}" for name, anchor in links if is_missing(page.parent / name if name else page, anchor or None)
    ]
    assert missing == []


def test_every_page_that_a_program_names_is_there() -> None:
    named = [(path, found) for path in PROGRAMS for found in NAMED.findall(path.read_text(encoding="utf-8"))]
    assert len(named) > 50
    missing = {
        f"{path.relative_to(ROOT)}: {'#'.join(found)}" for path, found in named if is_missing(DOCS / found[0], found[1])
    }
    assert missing == set()


def test_the_proofs_say_of_every_section_what_is_protected_and_from_whom() -> None:
    """The table on top has one line for each section: unit, adjacency and observer."""
    text = (DOCS / "privacy.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[([^]]+)\]\(#[\w-]+\) \|[^|]*\|[^|]*\|[^|]*\|", text, re.M)
    assert sorted(listed) == sorted(re.findall(r"^## (.+)$", text, re.M))
