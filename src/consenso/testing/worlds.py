"""Pairs of neighbouring data sets, chosen to be unkind: rows at the bound, opposite rows, flipped labels, no rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.audit.neighbours import extremes
from consenso.problem import Adjacency, Problem, Unit
from consenso.shards import Shards


@dataclass(frozen=True)
class Pair:
    """Two data sets that differ in one unit of `party`."""

    one: Shards
    other: Shards
    party: int
    what: str


def draw(problem: Problem, rng: np.random.Generator) -> list[tuple[Array, Any]]:
    """Random rows and targets of every party, within the problem's bounds."""
    return [(_rows(problem, int(size), rng), _targets(problem, int(size), rng)) for size in problem.sizes]


def pairs(problem: Problem, unit: Unit, adjacency: Adjacency, rng: np.random.Generator) -> Iterator[Pair]:
    """Neighbours of one random data set, in every unkind way; those that begin with one data set share it."""
    base = draw(problem, rng)
    party = int(rng.integers(problem.parties))
    rows, targets = base[party]
    # The last record: the coins of the others must not move when it is gone.
    which = slice(None) if unit == "party" else slice(-1, None)
    count = len(targets[which])
    axis = np.zeros(problem.features)
    axis[int(rng.integers(problem.features))] = problem.row_bound
    starts = {
        "a row at the bound": _with(problem, base, party, which, count, (axis, 0), rng),
        "random rows": base,
    }
    if adjacency == "add-remove":
        for what, one in starts.items():
            other = list(one)
            if unit == "party":
                # Who is gone contributes nothing: rows of zeros, which no loss of a margin can tell from no rows.
                other[party] = (np.zeros_like(one[party][0]), one[party][1])
            elif len(one[party][1]) == 1:
                continue  # a party without records is a party that is gone: the unit "party" has it
            else:
                other[party] = (one[party][0][:-1], one[party][1][:-1])
            here, gone = (Shards.from_parties(problem, each) for each in (one, other))
            yield Pair(here, gone, party, f"{what}, gone")
        return
    changes = {
        "a row at the bound": (("opposite rows", (-axis, 0)), ("same row, other target", (axis, -1))),
        "random rows": (
            ("other random rows", (None, None)),
            ("opposite of the data", (-rows[which], 0)),
            ("a zero row", (np.zeros(problem.features), 0)),
        ),
    }
    for start, others in changes.items():
        shards = Shards.from_parties(problem, starts[start])
        for what, change in others:
            other = _with(problem, base, party, which, count, change, rng)
            yield Pair(shards, Shards.from_parties(problem, other), party, what)


def _with(
    problem: Problem,
    base: list[tuple[Array, Any]],
    party: int,
    which: slice,
    count: int,
    change: Any,
    rng: np.random.Generator,
) -> list[tuple[Array, Any]]:
    rows, targets = base[party][0].copy(), base[party][1].copy()
    row, choice = change
    rows[which] = _rows(problem, count, rng) if row is None else row
    targets[which] = _targets(problem, count, rng) if choice is None else extremes(problem)[choice]
    changed = list(base)
    changed[party] = (rows, targets)
    return changed


def _rows(problem: Problem, count: int, rng: np.random.Generator) -> Array:
    rows = rng.normal(size=(count, problem.features))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    drawn: Array = rows / lengths * problem.row_bound * rng.choice([0.3, 0.7, 1.0], size=(count, 1))
    return drawn


def _targets(problem: Problem, count: int, rng: np.random.Generator) -> Any:
    if problem.loss.targets == "class":
        return rng.integers(problem.outputs, size=count)
    if problem.loss.targets == "sign":
        return rng.choice([-1.0, 1.0], size=count)
    assert problem.target_bound is not None
    return rng.uniform(-problem.target_bound, problem.target_bound, size=count)
