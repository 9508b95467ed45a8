"""The table of found bounds is what the kept fits say, and is judged by differences on the same splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.utility.development_sets import SETS
from benchmarks.utility.found_bounds import BEST, CONSTANT, EXACT, FOUND, KEPT, MARKERS, Comparison, collect, tabulate

PAGE = Path(__file__).parents[2] / "docs" / "found-bounds.md"


def test_the_page_shows_the_fits_that_are_kept() -> None:
    text = PAGE.read_text()
    shown = text[text.index(MARKERS[0]) + len(MARKERS[0]) : text.index(MARKERS[1])]
    assert shown.strip() == "\n".join(tabulate(collect(list(SETS), 0, 0, KEPT)))


@pytest.mark.parametrize(("found", "best", "within"), [(1.05, 1.0, True), (1.2, 1.0, False), (0.0005, 0.0001, False)])
def test_found_bounds_are_judged_on_the_same_splits(found, best, within) -> None:
    """Splits move losses by far more than what is compared."""
    rng = np.random.default_rng(0)
    splits, noise = rng.normal(size=40), 1e-6 * rng.normal(size=40)
    losses = {EXACT: splits, CONSTANT: splits + 2.0, BEST: splits + best + noise, FOUND: splits + found}
    told = Comparison.of(losses)
    assert (told.spare >= 2) == within
    assert (told.spare <= -2) != within
    assert np.isnan(told.ratio) == (best < 0.002)
