"""The prox of each party's objective, for a whole cohort at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

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
MOST_STEADY = 100_000


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


def hide_by_rounding(length: Array, weights: Array, sizes: IntArray, loss: Loss, row_bound: float) -> Array:
    """What rounding may hide of the distance to a prox at points of this length, by public facts."""
    bend = 0.0 if loss.curvature_bound == np.inf else loss.curvature_bound
    hidden: Array = ROUNDING * (2 + row_bound * np.sqrt(weights * bend * sizes) / 2) * length
    return hidden


def check_points(
    points: Array, weights: Array, sizes: IntArray, loss: Loss, row_bound: float, tolerance: float, who: str
) -> None:
    """Refuse points v so long that rounding alone could keep a prox from being certified.

    The rule sees points and public facts, never rows: near that length rows would decide whether a step comes to its
    end. points: (dim,) or (parties, dim). sizes: public numbers of records.
    """
    hidden = hide_by_rounding(lengths(np.atleast_2d(points)), weights, sizes, loss, row_bound)
    # Written so that what is not a number is refused.
    if not np.all(hidden <= tolerance / 2):
        raise MessageError(
            f"{who}: a prox must be certified to {tolerance:g}, and at a point as long as the one asked for rounding "
            "alone may exceed it; allow a larger tolerance, which is charged, or take a smaller step."
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
        found, reached = descend_steadily(batch.take(left), x[left], tolerance)
        closer = reached < residual[left]
        x[left[closer]], residual[left[closer]] = found[closer], reached[closer]
    return x, residual


def descend_steadily(batch: Batch, x: Array, tolerance: float) -> tuple[Array, Array]:
    """Gradient steps for a smooth loss, which need no luck: the last resort where Newton's method has not arrived.

    The objective is 1-strongly convex and k-smooth with k = 1 + t B sum |row|^2, so a step of 1/k shortens the distance
    to the solution by the factor 1 - 1/k at least: k log(distance / tolerance) steps are enough where rounding leaves
    half of the tolerance, and where it does not none are taken.
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
