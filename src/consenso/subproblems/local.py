"""The prox of each party's objective, for a whole cohort at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, StepError
from consenso.losses import Loss
from consenso.rows import Rows
from consenso.subproblems import newton
from consenso.subproblems.batch import Batch, Plain, lengths
from consenso.subproblems.certificate import certificate
from consenso.subproblems.pieces import pieces
from consenso.subproblems.staged import solve_with_kinks, start_from_afar

# Parties are solved in groups whose matrices fit in this many numbers, 256 MB.
GROUP_NUMBERS = 1 << 25
# A residual above this multiple of t is no rounding: the method has not arrived.
FAR = 1e-9


@dataclass(frozen=True, eq=False)
class Prox:
    """Proxes x (parties, dim) with a certified bound on the distance of each to the exact one, (parties,)."""

    x: Array
    residual: Array


def certified(prox: Prox, tolerance: float, who: str) -> Array:
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
    if rows.layout.one_each:
        return _one_record_each(rows, targets, norms, loss, weights, points, tolerance)
    points = np.broadcast_to(points, (rows.parties, rows.features * rows.outputs))
    x, residual = np.empty(points.shape), np.empty(rows.parties)
    sides = newton.sides(rows)
    batch = Batch(rows, Plain(loss, targets), weights, points, norms)
    for index, side in enumerate(newton.SIDES):
        for group in _groups(rows, np.flatnonzero(sides == index)):
            own = targets[rows.layout.place(group)]
            x[group], residual[group] = _solve(batch.take(group), loss, own, side, tolerance)
    return Prox(x, residual)


def _solve(batch: Batch, loss: Loss, targets: Any, side: newton.Side, tolerance: float) -> tuple[Array, Array]:
    if loss.curvature_bound == np.inf:
        return solve_with_kinks(batch, loss, targets, side, tolerance)
    rows = batch.rows
    start = np.zeros(rows.count) if rows.outputs == 1 else np.zeros((rows.count, rows.outputs))
    x, residual = newton.solve(batch, side, start, tolerance)
    far = np.flatnonzero(residual > np.maximum(tolerance, FAR * batch.weights))
    if far.size:
        part, place = batch.take(far), rows.layout.place(far)
        near = start_from_afar(part, loss, targets[place], side, start[place])
        found, reached = newton.solve(part, side, near, tolerance)
        closer = reached < residual[far]
        x[far[closer]], residual[far[closer]] = found[closer], reached[closer]
    return x, residual


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
    slopes = loss.prox_slope(rows.scores(points), weights * norms**2, targets)
    x = rows.pull((weights if rows.outputs == 1 else weights[:, None]) * slopes)
    np.subtract(points, x, out=x)
    batch = Batch(rows, Plain(loss, targets), weights, np.broadcast_to(points, x.shape), norms)
    if loss.curvature_bound == np.inf:
        return Prox(x, certificate(batch, pieces(loss, targets), slopes, x))
    # The gradient at x is t (phi' - g) row, whatever the number of features.
    scores = rows.scores(x)
    gap = batch.term.slope(scores) - slopes
    lengths_of_gaps = np.abs(gap) if gap.ndim == 1 else lengths(gap)
    residual = weights * norms * lengths_of_gaps + batch.rounding(x, slopes)
    # Where t is so large that x has lost the digits that its slope needs, a step from x itself brings them back.
    for group in _groups(rows, np.flatnonzero(residual > tolerance)):
        side = newton.SIDES[newton.sides(rows)[group[0]]]
        found, reached = newton.refine(batch.take(group), side, x[group], tolerance)
        closer = reached < residual[group]
        x[group[closer]], residual[group[closer]] = found[closer], reached[closer]
    return Prox(x, residual)
