"""States are frozen dataclasses of arrays; here those of some parties are taken out of those of all, and put back."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np

from consenso.algorithms.shape import PER_ROW
from consenso.arrays import IntArray

R = TypeVar("R")


def rows_of(cohort: IntArray, offsets: IntArray) -> IntArray:
    """Indices of the rows of some parties, in their order."""
    starts, counts = offsets[cohort], offsets[cohort + 1] - offsets[cohort]
    ends = np.cumsum(counts)
    rows: IntArray = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return rows


def place_of(cohort: IntArray, offsets: IntArray, *, per_row: bool) -> slice | IntArray:
    """Where some parties' entries are in an array of all: a slice where they lie side by side."""
    if len(cohort) and cohort[-1] - cohort[0] == len(cohort) - 1:  # ascending, so nothing is missing in between
        first, last = int(cohort[0]), int(cohort[-1]) + 1
        return slice(int(offsets[first]), int(offsets[last])) if per_row else slice(first, last)
    return rows_of(cohort, offsets) if per_row else cohort


def take(state: R, cohort: IntArray, offsets: IntArray) -> R:
    """The states of some parties, out of the states of all: copies, since a message may hold on to what was taken."""
    if len(cohort) == len(offsets) - 1:
        return state
    changes: dict[str, Any] = {}
    for each in dataclasses.fields(state):  # type: ignore[arg-type]
        place = place_of(cohort, offsets, per_row=each.metadata == PER_ROW)
        changes[each.name] = np.array(getattr(state, each.name)[place])
    return dataclasses.replace(state, **changes)  # type: ignore[type-var]


def put(state: R, part: R, cohort: IntArray, offsets: IntArray) -> R:
    """The states of all, with those of some parties replaced. The engine owns the arrays of `state` and reuses them."""
    if len(cohort) == len(offsets) - 1:
        return part
    for each in dataclasses.fields(state):  # type: ignore[arg-type]
        place = place_of(cohort, offsets, per_row=each.metadata == PER_ROW)
        getattr(state, each.name)[place] = getattr(part, each.name)
    return state


def own(state: R) -> R:
    """A copy whose arrays may be written to."""
    copies = {each.name: np.array(getattr(state, each.name)) for each in dataclasses.fields(state)}  # type: ignore[arg-type]
    return dataclasses.replace(state, **copies)  # type: ignore[type-var]
