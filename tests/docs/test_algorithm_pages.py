"""Every algorithm has a page in the site, with the iteration of the file that defines it."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from consenso.algorithms import discover

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", list(discover()))
def test_an_algorithm_has_a_page_that_is_up_to_date(name: str) -> None:
    page = (ROOT / "docs" / "algorithms" / f"{name}.md").read_text(encoding="utf-8")
    module = inspect.getdoc(sys.modules[discover()[name].__module__])
    assert module in page, "run python docs/algorithm_pages.py"
    assert "| schedule | trust |" in page
    assert f"algorithms/{name}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
