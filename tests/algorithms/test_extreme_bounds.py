"""Bounds at the ends of what is allowed: public facts alone decide whether a run comes to its end, and law 4 holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms import discover
from consenso.arrays import Array
from consenso.audit.neighbours import extremes
from consenso.errors import ConsensoError
from consenso.planning.plan import Plan
from consenso.shards import Shards
from consenso.testing.plans import plan_example
from consenso.testing.sensitivity import compare_neighbours, probe_releases
from consenso.testing.worlds import Pair, draw

# Of rows that are not at the bound.
SHORT = 1e-6


@pytest.mark.sweep
@pytest.mark.parametrize("row_bound", [1e-9, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("name", sorted(discover()))
def test_a_long_row_among_short_ones_moves_what_is_declared_and_decides_nothing_else(name, row_bound) -> None:
    example = discover()[name].example()
    problem = replace(example.problem, row_bound=row_bound)
    try:
        made = plan_example(replace(example, problem=problem))
    except ConsensoError:
        return  # refused by public facts
    rows = [(SHORT * X, y) for X, y in draw(problem, np.random.default_rng(1))]
    axis = np.zeros(problem.features)
    axis[-1] = row_bound

    def put(row: Array, place: int) -> Shards:
        X, y = rows[-1][0].copy(), rows[-1][1].copy()
        X[-1], y[-1] = row, extremes(problem)[place]
        return Shards.from_parties(problem, [*rows[:-1], (X, y)])

    short, none, first, second = Shards.from_parties(problem, rows), put(0 * axis, 0), put(axis, 0), put(-axis, -1)
    told = {say_end(made, each) for each in (short, none, first, second)}
    assert len(told) == 1, "rows decide whether a run comes to its end"
    if told == {""}:
        neighbours = (short, "a short row"), (none, "no row"), (second, "opposite rows")
        pairs = [Pair(first, other, problem.parties - 1, what) for other, what in neighbours]
        compare_neighbours(made, pairs, problem.unit, "replace-one")


def say_end(made: Plan, shards: Shards) -> str:
    """Why a run is refused on its way; nothing if it comes to its end."""
    try:
        probe_releases(made, shards)
    except ConsensoError as error:
        return str(error)
    return ""
