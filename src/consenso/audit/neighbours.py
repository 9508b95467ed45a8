"""Worst-case neighbours: data sets that differ in one unit, chosen so that the difference shows.

An audit of a plan needs no data. A guarantee holds for all data within the public bounds, so the attacker chooses them:
rows as long as the bound allows, gradients in opposite directions, the other parties silent, or pushing the model to
where the loss of the attacked unit is steepest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from consenso.arrays import Array
from consenso.losses import Huber
from consenso.problem import Adjacency, Problem, Unit
from consenso.regularizers import Unpenalized
from consenso.shards import Shards

# Targets of the linear problem lie this far out: no iterate gets to where its loss bends.
FAR = 1e4
# Tables of more numbers are compressed.
DENSE_NUMBERS = 1 << 18
# How much of the row of a pushed party points where the others push.
SHARE = 0.5
# Of the row bound: rows that are computed to have exactly this length are not shortened for their last bit.
LONGEST = 1 - 2.0**-48


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbours:
    """Two data sets that differ in one unit of `party`."""

    zero: Shards
    one: Shards
    party: int
    unit: Unit
    adjacency: Adjacency
    what: str

    @property
    def records(self) -> tuple[int, int]:
        """How many records the party has in either world."""
        return tuple(int(np.diff(world.offsets)[self.party]) for world in (self.zero, self.one))  # type: ignore[return-value]


def linear(problem: Problem) -> Problem:
    """The same problem with a loss whose slope is at its bound wherever iterates get: linear losses, in effect.

    Bounds that use a Lipschitz constant are most nearly attained there. What is audited is the algorithm and its
    accounting, which know of the loss nothing but its constants.
    """
    return replace(problem, loss=Huber(threshold=1.0), target_bound=FAR * max(1.0, problem.row_bound))


def unkind(problem: Problem, unit: Unit, adjacency: Adjacency, party: int) -> Iterator[Neighbours]:
    """Pairs of neighbours in which one unit of a party does what it can."""
    axis, flat = (
        np.zeros(problem.features),
        np.full(problem.features, LONGEST * problem.row_bound / np.sqrt(problem.features)),
    )
    axis[0] = problem.row_bound
    high, low = extremes(problem)
    silent = [silence(problem, int(size)) for size in problem.sizes]
    # Under replace-one a record (a party) can also be exchanged for one that does nothing.
    pairs: list[tuple[str, list[Any], tuple[Array, Any], tuple[Array, Any] | None]] = [
        ("present or absent", silent, (axis, high), None),
    ]
    if adjacency == "replace-one":
        pairs = [
            ("opposite gradients along one axis", silent, (axis, high), (axis, low)),
            ("all or nothing", silent, (axis, high), None),
            ("opposite rows", silent, (axis, high), (-axis, high)),
            ("rows of other directions", silent, (axis, high), (flat, low)),
        ]
    if isinstance(problem.regularizer, Unpenalized):
        # The column of an intercept: nothing shortens it, centres it or leaves it out.
        last = np.roll(axis, -1)
        absent = (last, low) if adjacency == "replace-one" else None
        pairs.append(("opposite gradients in the free column", silent, (last, high), absent))
    if problem.features > 1:
        pairs.append(
            ("all features at once", silent, (flat, high), (flat, low) if adjacency == "replace-one" else None)
        )
        crowd = [_crowd(problem, int(size), axis) for size in problem.sizes]
        up, down = _make_pushed_row(problem, 1.0), _make_pushed_row(problem, -1.0)
        pushed = down if adjacency == "replace-one" else None
        pairs.append(("others push", crowd, up, pushed))
    for what, others, one, zero in pairs:
        yield neighbours(problem, unit, adjacency, party, others=others, one=one, zero=zero, what=what)


def neighbours(
    problem: Problem,
    unit: Unit,
    adjacency: Adjacency,
    party: int,
    *,
    others: list[tuple[Array, Any]],
    one: tuple[Array, Any],
    zero: tuple[Array, Any] | None,
    what: str,
) -> Neighbours:
    """Data of all parties with one unit exchanged: a row and a target in either world, or None for none.

    A party that is gone contributes nothing: rows of zeros, which no loss of a margin tells from no rows. A record that
    is gone is the last one, or a row of zeros where it is the only one.
    """
    problem = replace(problem, unit=unit, adjacency=adjacency)
    worlds = []
    for chosen in (zero, one):
        rows, targets = others[party][0].copy(), others[party][1].copy()
        which = slice(None) if unit == "party" else slice(-1, None)
        if chosen is not None:
            rows[which], targets[which] = chosen
        elif unit == "record" and adjacency == "add-remove" and len(rows) > 1:
            rows, targets = rows[:-1], targets[:-1]
        else:
            rows[which] = 0.0
        data = list(others)
        data[party] = (rows, targets)
        worlds.append(make_shards(problem, _compress(data, problem)))
    return Neighbours(zero=worlds[0], one=worlds[1], party=party, unit=unit, adjacency=adjacency, what=what)


def make_shards(problem: Problem, data: list[tuple[Any, Any]]) -> Shards:
    """Shards of an attacker's data: where rows have weights, each is all that its unit has, and weighs most."""
    rows = sum(len(targets) for _, targets in data)
    weights = np.full(rows, problem.weight_bound) if problem.is_weighted else None
    return Shards.from_parties(problem, data, weights=weights)


def _compress(data: list[tuple[Array, Any]], problem: Problem) -> list[tuple[Any, Any]]:
    """Large tables without their zeros, of which the attacker's data mostly consist."""
    if problem.records * problem.features <= DENSE_NUMBERS:
        return list(data)
    return [(sparse.csr_array(rows), targets) for rows, targets in data]


def silence(problem: Problem, records: int) -> tuple[Array, Any]:
    """Records that contribute nothing."""
    return np.zeros((records, problem.features)), _targets(problem, records, extremes(problem)[0])


def _crowd(problem: Problem, records: int, axis: Array) -> tuple[Array, Any]:
    """Records that all pull the model the same way along an axis."""
    return np.tile(axis, (records, 1)), _targets(problem, records, extremes(problem)[1])


def _make_pushed_row(problem: Problem, side: float) -> tuple[Array, Any]:
    """A row that is misclassified where the crowd has pushed the model, with its steep part across."""
    row = np.zeros(problem.features)
    row[0], row[1] = SHARE, side * np.sqrt(1 - SHARE**2)
    return row * (LONGEST * problem.row_bound), extremes(problem)[0]


def _targets(problem: Problem, records: int, value: Any) -> Any:
    return np.full(records, value, dtype=np.int64 if problem.loss.targets == "class" else np.float64)


def extremes(problem: Problem) -> tuple[Any, Any]:
    """The two targets that are furthest apart."""
    if problem.loss.targets == "class":
        return 0, problem.outputs - 1
    bound = 1.0 if problem.loss.targets == "sign" else problem.target_bound
    assert bound is not None
    return bound, -bound
