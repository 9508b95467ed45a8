"""An attack through a whole search stays below its claim; the planted faults have what it refutes."""

from __future__ import annotations

import pytest

from consenso.testing.planted.searches import attack_search


@pytest.mark.parametrize(("differs", "least"), [("fitted", 0.1), ("held out", 0.0)])
def test_the_search_is_not_refuted(differs, least) -> None:
    """By chance that happens once in a hundred seeds; so few searches prove little."""
    proved, claimed = attack_search(differs, 100)
    assert least * claimed < proved + 1e-12 < claimed
