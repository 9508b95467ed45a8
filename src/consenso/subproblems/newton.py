"""Newton's method on the local problems of a cohort, with whichever linear system is the smallest.

`rows`     m records <= features: the Newton system is m by m, in the Gram matrix of the party's rows;
`columns`  fewer features than records: the system is features by features;
`conjugate` neither is small, or several outputs: conjugate gradients with Hessian products.

A step length satisfies the approximate Wolfe conditions of Hager and Zhang (2005), so that the objective goes down from any
starting point; losses that are piecewise quadratic get a semismooth method in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.rows import Rows
from consenso.subproblems.batch import Batch, State, Term

Side = Literal["rows", "columns", "conjugate"]
LARGEST_SYSTEM = 2000
LARGEST_STEP = 1e12
# A point that has not come closer for this many steps is as close as rounding allows.
PATIENCE = 12

Direction = Callable[[Batch, State], Array]


def side_of(rows: Rows) -> Array:
    """Which system suits each party, as an index into (rows, columns, conjugate)."""
    few_rows = (rows.sizes <= rows.features) & (rows.sizes <= LARGEST_SYSTEM)
    few_columns = np.full(rows.parties, rows.features <= LARGEST_SYSTEM)
    sides = np.where(few_rows, 0, np.where(few_columns, 1, 2))
    return np.full_like(sides, 2) if rows.outputs > 1 else sides


def solve(batch: Batch, side: Side, start: Array, tolerance: float, steps: int) -> State:
    """Minimize from x = v - t * sum of start * row; the residual of the answer says how far it came."""
    if side == "rows":
        start = _solve_in_margins(batch, start, tolerance / 4, steps)
    x = batch.points - batch.weights[:, None] * batch.rows.pull(start)
    directions: dict[Side, Direction] = {"rows": _by_rows, "columns": _by_columns, "conjugate": _by_conjugates}
    return _descend(batch, batch.state(x), directions[side], tolerance, steps)


def _descend(batch: Batch, state: State, direction: Direction, tolerance: float, steps: int) -> State:
    """Newton steps in the original variables until every party is done, then as if the easy ones had left."""
    best, idle = state, np.zeros(batch.rows.parties, dtype=np.int64)
    for done in range(steps):
        live = (best.residual > tolerance) & (best.length > best.rounding) & (idle < PATIENCE)
        if not live.any():
            break
        if 2 * live.sum() <= live.size:
            few = np.flatnonzero(live)
            part = batch.take(few)
            answer = _descend(part, part.state(state.x[few]), direction, tolerance, steps - done)
            return _pick(batch, best, few, answer)
        move = direction(batch, state)
        along = batch.rows.scores(move)
        bend = np.einsum("ij,ij->i", state.x - batch.points, move)
        length = line_search(
            batch.rows, batch.term, batch.weights, state.scores, along, bend, np.einsum("ij,ij->i", move, move)
        )
        length[~live] = 0.0
        state = batch.state(state.x + length[:, None] * move)
        closer = state.residual < best.residual
        idle = np.where(closer, 0, idle + 1)
        best = _better(batch, best, state, closer)
    return best


def _better(batch: Batch, best: State, state: State, closer: Array) -> State:
    if closer.all():
        return state
    rows = batch.rows.spread(closer)
    rows = rows if state.scores.ndim == 1 else rows[:, None]
    return State(
        np.where(closer[:, None], state.x, best.x),
        np.where(rows, state.scores, best.scores),
        np.where(closer[:, None], state.gradient, best.gradient),
        np.where(closer, state.length, best.length),
        np.where(closer, state.rounding, best.rounding),
    )


def _pick(batch: Batch, best: State, few: IntArray, answer: State) -> State:
    place = batch.rows.place(few)
    for whole, part in ((best.x, answer.x), (best.gradient, answer.gradient)):
        whole[few] = part
    for whole, part in ((best.length, answer.length), (best.rounding, answer.rounding)):
        whole[few] = part
    best.scores[place] = answer.scores
    return best
