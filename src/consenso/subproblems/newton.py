"""Newton's method on the local problems of a cohort, with whichever linear system is the smallest.

`rows`      no more records than features: the system is records by records, in the Gram matrix of the party's rows;
`columns`   fewer features than records: the system is features by features;
`conjugate` neither is small, or there are several outputs: conjugate gradients with Hessian products.

For losses that are piecewise quadratic the same iteration is a semismooth Newton method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.losses.formulas import CompiledLoss, compile_loss
from consenso.rows import Layout, Rows
from consenso.subproblems.batch import ROUNDOFF, Batch, NewtonState, Plain, Term, dots
from consenso.subproblems.line_search import line_search

Side = Literal["rows", "columns", "conjugate"]
SIDES: tuple[Side, ...] = ("rows", "columns", "conjugate")
LARGEST_SYSTEM = 2000
STEPS = 60
# After this many steps that neither lower the objective visibly nor come closer, a point is as close as it gets.
PATIENCE = 4
# Each Newton direction is solved to this relative accuracy by conjugate gradients.
FORCING = 1e-3
MOST_PRODUCTS = 2000


def sides(rows: Rows) -> IntArray:
    """Which system suits each party, as an index into SIDES."""
    if rows.outputs > 1:
        return np.full(rows.parties, 2)
    few_rows = rows.layout.sizes <= min(rows.features, LARGEST_SYSTEM)
    return np.where(few_rows, 0, 1 if rows.features <= LARGEST_SYSTEM else 2)


def solve(batch: Batch, side: Side, start: Array, tolerance: float, steps: int = STEPS) -> tuple[Array, Array]:
    """Minimize from x = v - t * sum of start * row: the point and its residual, which says how far it came."""
    if side == "rows":
        start = _solve_in_scores(batch, start, tolerance / 4, steps)
    x = batch.points - batch.weights[:, None] * batch.rows.rmatvec(start)
    return refine(batch, side, x, tolerance, steps)


def refine(batch: Batch, side: Side, x: Array, tolerance: float, steps: int = STEPS) -> tuple[Array, Array]:
    """Minimize from x, in the original variables."""
    return _descend(batch, x, _DIRECTIONS[side], tolerance, steps)


def _descend(
    batch: Batch, x: Array, direction: Callable[[Batch, NewtonState], Array], tolerance: float, steps: int
) -> tuple[Array, Array]:
    """Newton steps in the original variables; when half of the parties are done, the others go on alone."""
    state = batch.state(x)
    best, residual = state.x, state.residual
    idle = np.zeros(batch.rows.parties, dtype=np.int64)
    for taken in range(steps):
        live = (residual > tolerance) & (idle < PATIENCE)
        if live.any():
            live &= state.length > batch.floor(state)
        if not live.any():
            break
        if 2 * live.sum() <= live.size:
            few = np.flatnonzero(live)
            found, reached = _descend(batch.take(few), state.x[few], direction, tolerance, steps - taken)
            closer = reached < residual[few]
            best, residual = best.copy(), residual.copy()
            best[few[closer]], residual[few[closer]] = found[closer], reached[closer]
            break
        move = direction(batch, state)
        along = batch.rows.linear_predictor(move)
        bend, stretch = dots(state.x - batch.points, move), dots(move, move)
        length, lower = line_search(
            batch.rows.layout, batch.term, batch.weights, state.scores, state.slopes, along, bend, stretch
        )
        state = batch.state(state.x + np.where(live, length, 0.0)[:, None] * move)
        closer = state.residual < residual
        best = np.where(closer[:, None], state.x, best)
        residual = np.where(closer, state.residual, residual)
        idle = np.where(closer | lower, 0, idle + 1)
    return best, residual


def _by_rows(batch: Batch, state: NewtonState) -> Array:
    """-(I + t A'DA)^-1 r = t A' D^1/2 (I + t D^1/2 AA' D^1/2)^-1 D^1/2 A r - r, with A the party's rows."""
    roots = np.sqrt(batch.row_weights * batch.term.curvature(state.scores))
    solved, _ = _row_solves(*batch.rows.grams, batch.rows.layout, roots, batch.rows.linear_predictor(state.gradient))
    return batch.rows.rmatvec(solved) - state.gradient


def _by_columns(batch: Batch, state: NewtonState) -> Array:
    weights = batch.row_weights * batch.term.curvature(state.scores)
    return -batch.rows.column_solves(weights, state.gradient)


def _by_conjugates(batch: Batch, state: NewtonState) -> Array:
    """A direction of descent wherever it stops, nearly Newton's when it stops by accuracy."""
    left = -state.gradient
    move, search, size = np.zeros_like(left), left, dots(left, left)
    goal = FORCING**2 * size
    for _ in range(min(MOST_PRODUCTS, 2 * left.shape[1])):
        going = size > goal
        if not going.any():
            break
        products = batch.term.curvature_product(state.scores, batch.rows.linear_predictor(search))
        image = search + batch.weights[:, None] * batch.rows.rmatvec(products)
        length = np.where(going, size / np.where(going, dots(search, image), 1.0), 0.0)[:, None]
        move, left = move + length * search, left - length * image
        last, size = size, dots(left, left)
        search = left + np.where(going, size / np.where(going, last, 1.0), 0.0)[:, None] * search
    return move


_DIRECTIONS: dict[Side, Callable[[Batch, NewtonState], Array]] = {
    "rows": _by_rows,
    "columns": _by_columns,
    "conjugate": _by_conjugates,
}


def _solve_in_scores(batch: Batch, dual: Array, goal: float, steps: int) -> Array:
    """The weights b of x = v - t A'b, found with Gram matrices alone; one pass over the rows before, one after."""
    layout, (grams, starts) = batch.rows.layout, batch.rows.grams
    scores = batch.rows.linear_predictor(batch.points)
    few = np.arange(layout.parties)
    compiled = compile_loss(batch.term.loss) if isinstance(batch.term, Plain) and not dual.any() else None
    if compiled is not None:
        dual, few = _take_compiled_steps(batch, compiled, scores, goal, steps)
    else:
        dual = dual.copy()
    if few.size:
        place, own = layout.place(few), layout.take(few)
        term, weights, start = batch.term.take(place), batch.weights[few], dual[place]
        here = scores[place] - own.repeat_per_row(weights) * _gram_products(grams, starts[few], own, start)
        parts = (own, term, weights, batch.norms[place], grams, starts[few])
        dual[place] = _score_steps(*parts, here, start, goal, steps)
    return dual


def _take_compiled_steps(
    batch: Batch, loss: CompiledLoss, scores: Array, goal: float, steps: int
) -> tuple[Array, IntArray]:
    """Weights from full Newton steps, and the parties for which those were not enough."""
    from consenso import kernels

    layout, dual, lengths = batch.rows.layout, np.zeros_like(scores), np.full(batch.rows.parties, np.inf)
    assert isinstance(batch.term, Plain)
    targets = np.ascontiguousarray(batch.term.targets, dtype=np.float64)
    rows = (*batch.rows.grams, layout.offsets, targets, scores)
    arguments = (loss.parameters, loss.derivatives, *rows, batch.weights, goal, steps, dual, lengths)
    kernels.run(kernels.score_newton, layout.offsets, 10.0 * layout.sizes.max(), *arguments)
    return dual, np.flatnonzero(lengths > goal)


def _score_steps(
    layout: Layout,
    term: Term,
    weights: Array,
    norms: Array,
    grams: Array,
    starts: IntArray,
    scores: Array,
    dual: Array,
    goal: float,
    steps: int,
) -> Array:
    """Newton steps on (scores, dual), where scores = A(v - t A'dual); the gradient is t A'(slope - dual)."""
    row_weights = layout.repeat_per_row(weights)
    idle = np.zeros(layout.parties, dtype=np.int64)
    for taken in range(steps):
        slopes = term.slope(scores)
        gap = slopes - dual
        product = _gram_products(grams, starts, layout, gap)
        length = weights * np.sqrt(np.maximum(layout.sums(gap * product), 0.0))
        live = (length > goal) & (idle < PATIENCE)
        if live.any():
            curvatures = term.curvature(scores)
            noise = norms * (np.abs(slopes) + curvatures * np.abs(scores))
            live &= length > ROUNDOFF * weights * np.sqrt(layout.sums(noise**2))
        if not live.any():
            break
        if 2 * live.sum() <= live.size:
            few = np.flatnonzero(live)
            place = layout.place(few)
            parts = (layout.take(few), term.take(place), weights[few], norms[place], grams, starts[few])
            dual = dual.copy()
            dual[place] = _score_steps(*parts, scores[place], dual[place], goal, steps - taken)
            break
        solved, solved_product = _row_solves(grams, starts, layout, np.sqrt(row_weights * curvatures), product)
        move, along = gap - solved, row_weights * (solved_product - product)
        bend, stretch = -weights * layout.sums(along * dual), -weights * layout.sums(along * move)
        length, lower = line_search(layout, term, weights, scores, slopes, along, bend, np.maximum(stretch, 0.0))
        idle = np.where(lower, 0, idle + 1)
        per_row = layout.repeat_per_row(np.where(live, length, 0.0))
        dual, scores = dual + per_row * move, scores + per_row * along
    return dual


def _gram_products(grams: Array, starts: IntArray, layout: Layout, weights: Array) -> Array:
    from consenso import kernels

    out = np.empty_like(weights)
    work = float(layout.sizes.max())
    kernels.run(kernels.gram_products, layout.offsets, work, grams, starts, layout.offsets, weights, out)
    return out


def _row_solves(grams: Array, starts: IntArray, layout: Layout, roots: Array, right: Array) -> tuple[Array, Array]:
    """With w = roots and G the Gram matrix of a party: y = w (I + w G w)^-1 w right, and G y."""
    from consenso import kernels

    out, product = np.empty_like(right), np.empty_like(right)
    work = float(layout.sizes.max()) ** 2
    arguments = (grams, starts, layout.offsets, roots, right, out, product)
    kernels.run(kernels.row_solves, layout.offsets, work, *arguments)
    return out, product
