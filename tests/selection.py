"""Which points of a product of parameters `make test` takes; docs/adr/0021 says why."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from consenso.algorithms.shape import Example

# A test that goes through settings takes few of them (`few_settings`), and all of them where it is slow.
IN_FULL = pytest.mark.parametrize(
    "in_full", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["in turn", "in full"]
)


def cover(points: Sequence[Mapping[Hashable, Hashable]]) -> set[int]:
    """The places of few points that have, together, every value that any of the points has.

    Each time the point with most values that no chosen one has; of several the one whose values were chosen least
    often, and of these the first. From a product it takes as many as its longest parameter has values.
    """
    missing = {value for point in points for value in point.items()}
    times: Counter[tuple[Hashable, Hashable]] = Counter()
    chosen: set[int] = set()
    while missing:
        ranks = [(len(missing & point.items()), -sum(times[value] for value in point.items())) for point in points]
        best = ranks.index(max(ranks))
        chosen.add(best)
        missing -= points[best].items()
        times.update(points[best].items())
    return chosen


def label(value: object) -> Hashable:
    """What is the same for a parameter's value in all points that have it; 1 and True are two values."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


def few_settings(example: Example) -> Iterator[Example]:
    """The example in few of its schedules and trusts at a time, each of which is there."""
    points = list(itertools.product(example.schedules, example.trusts))
    for place in sorted(cover([dict(enumerate(point)) for point in points])):
        schedule, trust = points[place]
        yield replace(example, schedules=(schedule,), trusts=(trust,))
