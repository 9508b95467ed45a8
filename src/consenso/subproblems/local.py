"""The prox of each party's objective, for a whole cohort at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, MessageError, StepError
from consenso.losses import Loss
from consenso.rows import Rows
from consenso.subproblems import objectives
from consenso.subproblems.batch import ROUNDING, Batch, Plain, lengths
from consenso.subproblems.certificate import certificate
from consenso.subproblems.pieces import pieces
from consenso.subproblems.staged import solve_with_kinks, start_from_afar

# Parties are solved in groups whose matrices fit in this many numbers, 256 MB.
GROUP_NUMBERS = 1 << 25
# A residual above this multiple of t is no rounding: the method has not arrived.
FAR = 1e-9
# Gradient steps of the last resort.
MOST_STEADY = 2_000_000
# To find the longest point that is allowed.
HALVINGS = 100


@dataclass(frozen=True, eq=False)
class Prox:
    """Proxes x (parties, dim) with a certified bound on the distance of each to the exact one, (parties,)."""

    x: Array
    residual: Array


def certify(prox: Prox, tolerance: float, who: str) -> Array:
    """The points, or a StepError where a bound that assumes exact proxes would not hold."""
    if not np.all(prox.residual <= tolerance):
        raise StepError(
            f"{who}: its bound needs local proxes to a tolerance of {tolerance:g}, which the solver could not certify "
            "for every party; allow a larger tolerance, which is charged, or take a smaller step."
        )
    return prox.x


def local_prox(
    rows: Rows, targets: Any, norms: Array, loss: Loss, weights: Array, points: Array, tolerance: float
) -> Prox:
    """Minimize t * sum phi(<row, x>, target) + |x - v|^2 / 2 for each party.

    norms: 2-norms of the rows. weights: t = step * scale, (parties,). points: v, (dim,) or (parties, dim).
    Where the tolerance is out of reach (rounding at very large t) the residual says what was reached.
    """
    if not 0 < tolerance < np.inf:
        raise InputError(f"prox(tolerance={tolerance}): tolerance is a positive finite number.")
    found = _minimise(rows, targets, norms, loss, weights, points, tolerance)
    # Rows of zeros leave every point where it is, to the last bit.
    blank = rows.layout.sums((norms > 0).astype(np.float64)) == 0
    if blank.any():
        found.x[blank] = np.broadcast_to(points, found.x.shape)[blank]
        found.residual[blank] = 0.0
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Worst:
    """What rows at their bounds can do to the proxes of parties, by public facts (docs/privacy.md#a-hub-that-lies).

    length: of the points. weights: t = step * scale. sizes: public numbers of records. All of them (parties,).
    target_bound: None where none is known; then a loss without a bound on its slopes pulls by nothing, and nothing is
    promised.
    """

    length: Array
    weights: Array
    sizes: IntArray
    loss: Loss
    row_bound: float
    target_bound: float | None

    @property
    def pulled(self) -> Array:
        """The longest that t times the sum over records of |slope| |row| can be, which is how far a prox can be."""
        slope: Any = self.loss.slope_bound
        if slope == np.inf:
            slope = 0.0 if self.target_bound is None else self.row_bound * self.length + self.target_bound
        pulled: Array = self.weights * self.sizes * self.row_bound * slope
        return pulled

    @property
    def _curvature(self) -> float:
        return 0.0 if self.loss.curvature_bound == np.inf else self.loss.curvature_bound

    def hide_by_rounding(self) -> Array:
        """What rounding may hide of the distance to a prox, wherever steps from its point lead."""
        longest = self.length + 2 * self._find_reach()
        bent = self.row_bound * np.sqrt(self.weights * self._curvature * self.sizes) / 2
        hidden: Array = ROUNDING * (self.length + self.pulled + (1 + bent) * longest)
        return hidden

    def allows(self, tolerance: float) -> NDArray[np.bool_]:
        """Whether no rows can keep a prox from its certificate, (parties,); false for what is not a number."""
        steady: NDArray[np.bool_] = self.count_steps(tolerance) <= MOST_STEADY
        return steady & (self.hide_by_rounding() <= tolerance / 2)

    def find_longest(self, tolerance: float) -> Array:
        """The longest points that are allowed, a billionth less; below 0 where none is, (parties,)."""
        low, high = np.zeros(len(self.weights)), np.full(len(self.weights), tolerance / ROUNDING)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            fine = replace(self, length=middle).allows(tolerance)
            low, high = np.where(fine, middle, low), np.where(fine, high, middle)
        return np.where(replace(self, length=0 * low).allows(tolerance), low * (1 - 1e-9), -1.0)

    def count_steps(self, tolerance: float) -> Array:
        """How many steps of the last resort certify a prox of a smooth loss: the gradient gets shorter by 1 - 1/k."""
        k = 1 + self.weights * self._curvature * self.sizes * self.row_bound**2
        steps: Array = k * np.log(np.maximum(2 * self.pulled / tolerance, 1.0))
        return steps

    def _find_reach(self) -> Array:
        """How far a prox can be from its point: at it the objective is no larger than at zero, and losses are >= 0."""
        first: Array = np.sqrt(self.length**2 + 2 * self.weights * self.sizes * self._find_loss_at_zero())
        return np.minimum(self.pulled, first)

    def _find_loss_at_zero(self) -> float:
        """The largest loss of a score of zero."""
        many = self.loss.outputs
        if self.loss.targets == "class":
            return float(np.max(self.loss.value(np.zeros((many, many)), np.arange(many))))
        end = 1.0 if self.loss.targets == "sign" else np.inf if self.target_bound is None else self.target_bound
        if end == np.inf:
            return np.inf
        return float(np.max(self.loss.value(np.zeros(2), np.array([-end, end]))))


def check_points(worst: Worst, tolerance: float, who: str) -> None:
    """Refuse points at which rows could keep a prox from being certified.

    The rule sees points and public facts, never rows: beyond it rows would decide whether a step comes to its end.
    """
    if not worst.allows(tolerance).all():
        raise MessageError(
            f"{who}: a prox must be certified to {tolerance:g}, and at a point as long as the one asked for rounding "
            "alone may exceed it, or steps be too many; allow a larger tolerance, which is charged, or take a smaller "
            "step."
        )


def _minimise(
    rows: Rows, targets: Any, norms: Array, loss: Loss, weights: Array, points: Array, tolerance: float
) -> Prox:
    if rows.layout.one_each:
        return _one_record_each(rows, targets, norms, loss, weights, points, tolerance)
    points = np.broadcast_to(points, (rows.parties, rows.features * rows.outputs))
    x, residual = np.empty(points.shape), np.empty(rows.parties)
    sides = objectives.sides(rows)
    batch = Batch(rows, Plain(loss, targets), weights, points, norms)
    for index, side in enumerate(objectives.SIDES):
        for group in _groups(rows, np.flatnonzero(sides == index)):
            own = targets[rows.layout.place(group)]
            x[group], residual[group] = _solve(batch.take(group), loss, own, side, tolerance)
    return Prox(x, residual)


def _solve(batch: Batch, loss: Loss, targets: Any, side: objectives.Side, tolerance: float) -> tuple[Array, Array]:
    if loss.curvature_bound == np.inf:
        return solve_with_kinks(batch, loss, targets, side, tolerance)
    rows = batch.rows
    start = np.zeros(rows.count) if rows.outputs == 1 else np.zeros((rows.count, rows.outputs))
    x, residual = objectives.solve(batch, side, start, tolerance)
    far = np.flatnonzero(residual > np.maximum(tolerance, FAR * batch.weights))
    if far.size:
        part, place = batch.take(far), rows.layout.place(far)
        near = start_from_afar(part, loss, targets[place], side, start[place])
        found, reached = objectives.solve(part, side, near, tolerance)
        closer = reached < residual[far]
        x[far[closer]], residual[far[closer]] = found[closer], reached[closer]
    left = np.flatnonzero(residual > tolerance)
    if left.size:
        part = batch.take(left)
        # From its point a prox is no further than public facts say; where Newton's method ended may be.
        near = np.where((residual[left] <= part.state(part.points).residual)[:, None], x[left], part.points)
        found, reached = descend_steadily(part, near, tolerance)
        closer = reached < residual[left]
        x[left[closer]], residual[left[closer]] = found[closer], reached[closer]
    return x, residual


def descend_steadily(batch: Batch, x: Array, tolerance: float) -> tuple[Array, Array]:
    """Gradient steps for a smooth loss, which need no luck: the last resort where Newton's method has not arrived.

    The objective is 1-strongly convex and k-smooth with k = 1 + t B sum |row|^2, so a step of 1/k shortens the distance
    to the solution, and the gradient, by the factor 1 - 1/k at least: k log(2 gradient / tolerance) steps are enough
    where rounding leaves half of the tolerance, and where it does not none are taken.
    """
    smooth = 1 + batch.weights * batch.rows.layout.sums(batch.term.curvature_bound * batch.norms**2)
    state = batch.state(x)
    best, residual = state.x, state.residual
    for _ in range(MOST_STEADY):
        live = (residual > tolerance) & (state.rounding <= tolerance / 2)
        if not live.any():
            break
        state = batch.state(state.x - np.where(live, 1 / smooth, 0.0)[:, None] * state.gradient)
        closer = state.residual < residual
        best = np.where(closer[:, None], state.x, best)
        residual = np.where(closer, state.residual, residual)
    return best, residual


def _groups(rows: Rows, parties: IntArray) -> Iterator[IntArray]:
    """Cut a list of parties so that the matrices of a group fit in memory."""
    if parties.size:
        sizes = rows.layout.sizes[parties]
        numbers = np.cumsum(np.minimum(sizes, rows.features) ** 2 + rows.features * rows.outputs)
        yield from np.split(parties, np.flatnonzero(np.diff(numbers // GROUP_NUMBERS)) + 1)


def _one_record_each(
    rows: Rows, targets: Any, norms: Array, loss: Loss, weights: Array, points: Array, tolerance: float
) -> Prox:
    """Closed form: the prox moves along the row by t * g, with g the prox slope of phi at <row, v>."""
    slopes = loss.prox_slope(rows.linear_predictor(points), weights * norms**2, targets)
    x = rows.rmatvec((weights if rows.outputs == 1 else weights[:, None]) * slopes)
    np.subtract(points, x, out=x)
    batch = Batch(rows, Plain(loss, targets), weights, np.broadcast_to(points, x.shape), norms)
    if loss.curvature_bound == np.inf:
        return Prox(x, certificate(batch, pieces(loss, targets), slopes, x))
    # The gradient at x is t (phi' - g) row, whatever the number of features.
    scores = rows.linear_predictor(x)
    gap = batch.term.slope(scores) - slopes
    lengths_of_gaps = np.abs(gap) if gap.ndim == 1 else lengths(gap)
    residual = weights * norms * lengths_of_gaps + batch.rounding(x, slopes)
    # Where t is so large that x has lost the digits that its slope needs, a step from x itself brings them back.
    for group in _groups(rows, np.flatnonzero(residual > tolerance)):
        side = objectives.SIDES[objectives.sides(rows)[group[0]]]
        found, reached = objectives.refine(batch.take(group), side, x[group], tolerance)
        closer = reached < residual[group]
        x[group[closer]], residual[group[closer]] = found[closer], reached[closer]
    return Prox(x, residual)
