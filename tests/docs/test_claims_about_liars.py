"""What the pages say of liars and of sharp edges is shown by a test that is named beside it and exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"<!-- (tests/[\w/]+\.py)::(\w+) -->")


def items(page: str, *, section: str | None = None) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    if section is not None:
        text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [f"- {item}" for item in re.split(r"^- ", text, flags=re.M)[1:]]


@pytest.mark.parametrize(
    ("page", "section"),
    [("federation.md", "A server that lies"), ("peers.md", "A peer that lies"), ("sharp-edges.md", None)],
)
def test_every_sentence_on_a_liar_or_an_edge_names_its_test(page: str, section: str | None) -> None:
    claims = items(page, section=section)
    assert claims
    assert [claim for claim in claims if not NAMED.search(claim)] == []


@pytest.mark.parametrize("page", ["federation.md", "sharp-edges.md", "peers.md", "secure-sum.md"])
def test_the_tests_that_a_page_names_exist(page: str) -> None:
    named = NAMED.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert named
    for path, test in named:
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{test}"
