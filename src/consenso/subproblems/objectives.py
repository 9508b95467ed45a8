"""The local problems of a cohort as objectives of Newton's method, with whichever linear system is the smallest.

`rows`      no more records than features: the system is records by records, in the Gram matrix of the party's rows;
`columns`   fewer features than records: the system is features by features;
`conjugate` neither is small, or there are several outputs: conjugate gradients with Hessian products.

For losses that are piecewise quadratic the same iteration is a semismooth Newton method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.losses.formulas import CompiledLoss, compile_loss
from consenso.newton import STEPS, Bools, LinePath, Objectives, conjugate_gradients, dots, minimise
from consenso.rows import Layout, Rows
from consenso.subproblems.batch import ROUNDOFF, Batch, NewtonState, Plain, Term

Side = Literal["rows", "columns", "conjugate"]
SIDES: tuple[Side, ...] = ("rows", "columns", "conjugate")
LARGEST_SYSTEM = 2000
# Each Newton direction is solved to this relative accuracy by conjugate gradients.
FORCING = 1e-3
MOST_PRODUCTS = 2000
ROUNDING = 16 * ROUNDOFF


def sides(rows: Rows) -> IntArray:
    """Which system suits each party, as an index into SIDES."""
    if rows.outputs > 1:
        return np.full(rows.parties, 2)
    few_rows = rows.layout.sizes <= min(rows.features, LARGEST_SYSTEM)
    return np.where(few_rows, 0, 1 if rows.features <= LARGEST_SYSTEM else 2)


def solve(batch: Batch, side: Side, start: Array, tolerance: float) -> tuple[Array, Array]:
    """Minimize from x = v - t * sum of start * row: the point and its residual, which says how far it came."""
    if side == "rows":
        start = _solve_in_scores(batch, start, tolerance / 4)
    x = batch.points - batch.weights[:, None] * batch.rows.rmatvec(start)
    return refine(batch, side, x, tolerance)


def refine(batch: Batch, side: Side, x: Array, tolerance: float) -> tuple[Array, Array]:
    """Minimize from x, in the original variables."""
    found = minimise(_InCoordinates(batch, side), x, tolerance)
    return found.x, found.residual


@dataclass(frozen=True, eq=False)
class _InCoordinates(Objectives[NewtonState]):
    """Local problems in the variables of the model, x (parties, dim)."""

    batch: Batch
    side: Side

    def state(self, x: Array) -> NewtonState:
        return self.batch.state(x)

    def is_settled(self, state: NewtonState) -> Bools:
        return state.length <= self.batch.floor(state)

    def direction(self, state: NewtonState) -> Array:
        batch = self.batch
        if self.side == "conjugate":
            return self._solve_by_products(state)
        weights = batch.row_weights * batch.term.curvature(state.scores)
        if self.side == "columns":
            return -batch.rows.column_solves(weights, state.gradient)
        # -(I + t A'DA)^-1 r = t A' D^1/2 (I + t D^1/2 AA' D^1/2)^-1 D^1/2 A r - r, with A the party's rows
        scores = batch.rows.linear_predictor(state.gradient)
        solved, _ = _row_solves(*batch.rows.grams, batch.rows.layout, np.sqrt(weights), scores)
        return batch.rows.rmatvec(solved) - state.gradient

    def _solve_by_products(self, state: NewtonState) -> Array:
        batch = self.batch

        def product(search: Array) -> Array:
            bent = batch.term.curvature_product(state.scores, batch.rows.linear_predictor(search))
            return search + batch.weights[:, None] * batch.rows.rmatvec(bent)

        most = min(MOST_PRODUCTS, 2 * state.gradient.shape[1])
        return conjugate_gradients(product, -state.gradient, accuracy=FORCING, most=most)

    def path(self, state: NewtonState, move: Array) -> LinePath:
        batch, along = self.batch, self.batch.rows.linear_predictor(move)
        bend, stretch = dots(state.x - batch.points, move), dots(move, move)
        return _path(batch.rows.layout, batch.term, batch.weights, state.scores, state.slopes, along, bend, stretch)

    def take(self, few: IntArray) -> tuple[_InCoordinates, IntArray]:
        return _InCoordinates(self.batch.take(few), self.side), few


def _path(
    layout: Layout, term: Term, weights: Array, scores: Array, slopes: Array, along: Array, bend: Array, stretch: Array
) -> LinePath:
    """h(a) = weight * sum phi(scores + a along) + a bend + a^2 stretch / 2; `slopes` are those of phi at the scores."""
    values = term.value(scores)

    def at(lengths: Array) -> tuple[Array, Array]:
        per_row = layout.repeat_per_row(lengths)
        there = scores + (per_row if scores.ndim == 1 else per_row[:, None]) * along
        slope = weights * layout.sums(term.slope(there) * along) + bend + lengths * stretch
        change = weights * layout.sums(term.value(there) - values) + lengths * (bend + lengths * stretch / 2)
        return slope, change

    return LinePath(
        start=weights * layout.sums(slopes * along) + bend,
        slack=ROUNDING * (weights * layout.sums(np.abs(values)) + np.abs(bend) + stretch),
        at=at,
    )


def _solve_in_scores(batch: Batch, dual: Array, goal: float) -> Array:
    """The weights b of x = v - t A'b, found with Gram matrices alone; one pass over the rows before, one after."""
    layout, (grams, starts) = batch.rows.layout, batch.rows.grams
    scores = batch.rows.linear_predictor(batch.points)
    few = np.arange(layout.parties)
    compiled = compile_loss(batch.term.loss) if isinstance(batch.term, Plain) and not dual.any() else None
    if compiled is not None:
        dual, few = _take_compiled_steps(batch, compiled, scores, goal)
    else:
        dual = dual.copy()
    if few.size:
        place, own = layout.place(few), layout.take(few)
        term, weights, start = batch.term.take(place), batch.weights[few], dual[place]
        here = scores[place] - own.repeat_per_row(weights) * _gram_products(grams, starts[few], own, start)
        problem = _InScores(own, term, weights, batch.norms[place], grams, starts[few])
        dual[place] = minimise(problem, np.stack([start, here]), goal).x[0]
    return dual


def _take_compiled_steps(batch: Batch, loss: CompiledLoss, scores: Array, goal: float) -> tuple[Array, IntArray]:
    """Weights from full Newton steps, and the parties for which those were not enough."""
    from consenso.kernels import compiled, newton

    layout, dual, lengths = batch.rows.layout, np.zeros_like(scores), np.full(batch.rows.parties, np.inf)
    assert isinstance(batch.term, Plain)
    targets = np.ascontiguousarray(batch.term.targets, dtype=np.float64)
    rows = (*batch.rows.grams, layout.offsets, targets, scores)
    arguments = (loss.parameters, loss.derivatives, *rows, batch.weights, goal, STEPS, dual, lengths)
    compiled.run(newton.score_newton, layout.offsets, 10.0 * layout.sizes.max(), *arguments)
    return dual, np.flatnonzero(lengths > goal)


@dataclass(frozen=True, eq=False)
class _ScoreState:
    x: Array  # the dual and the scores, (2, rows)
    slopes: Array
    gap: Array  # slopes less dual
    product: Array  # the Gram matrix times the gap
    residual: Array  # length of the gradient t A'gap, (parties,)


@dataclass(frozen=True, eq=False)
class _InScores(Objectives[_ScoreState]):
    """The same problems in (dual, scores), where scores = A(v - t A'dual); Gram matrices stand for the features."""

    layout: Layout
    term: Term
    weights: Array
    norms: Array
    grams: Array
    starts: IntArray

    def state(self, x: Array) -> _ScoreState:
        slopes = self.term.slope(x[1])
        gap = slopes - x[0]
        product = _gram_products(self.grams, self.starts, self.layout, gap)
        length = self.weights * np.sqrt(np.maximum(self.layout.sums(gap * product), 0.0))
        return _ScoreState(x, slopes, gap, product, length)

    def is_settled(self, state: _ScoreState) -> Bools:
        noise = self.norms * (np.abs(state.slopes) + self.term.curvature(state.x[1]) * np.abs(state.x[1]))
        return state.residual <= ROUNDOFF * self.weights * np.sqrt(self.layout.sums(noise**2))

    def direction(self, state: _ScoreState) -> Array:
        row_weights = self.layout.repeat_per_row(self.weights)
        roots = np.sqrt(row_weights * self.term.curvature(state.x[1]))
        solved, product = _row_solves(self.grams, self.starts, self.layout, roots, state.product)
        return np.stack([state.gap - solved, row_weights * (product - state.product)])

    def path(self, state: _ScoreState, move: Array) -> LinePath:
        (dual, scores), (turn, along) = state.x, move
        bend = -self.weights * self.layout.sums(along * dual)
        stretch = np.maximum(-self.weights * self.layout.sums(along * turn), 0.0)
        return _path(self.layout, self.term, self.weights, scores, state.slopes, along, bend, stretch)

    def take(self, few: IntArray) -> tuple[_InScores, Any]:
        place = self.layout.place(few)
        part = (self.layout.take(few), self.term.take(place), self.weights[few], self.norms[place])
        return _InScores(*part, self.grams, self.starts[few]), (slice(None), place)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        return self.layout.repeat_per_row(values)


def _gram_products(grams: Array, starts: IntArray, layout: Layout, weights: Array) -> Array:
    from consenso.kernels import compiled, systems

    out = np.empty_like(weights)
    work = float(layout.sizes.max())
    compiled.run(systems.gram_products, layout.offsets, work, grams, starts, layout.offsets, weights, out)
    return out


def _row_solves(grams: Array, starts: IntArray, layout: Layout, roots: Array, right: Array) -> tuple[Array, Array]:
    """With w = roots and G the Gram matrix of a party: y = w (I + w G w)^-1 w right, and G y."""
    from consenso.kernels import compiled, systems

    out, product = np.empty_like(right), np.empty_like(right)
    work = float(layout.sizes.max()) ** 2
    arguments = (grams, starts, layout.offsets, roots, right, out, product)
    compiled.run(systems.row_solves, layout.offsets, work, *arguments)
    return out, product
