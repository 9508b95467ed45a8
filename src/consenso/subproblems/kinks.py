"""Local problems with piecewise linear losses: an exact method on the dual, and a certificate that survives kinks.

The dual of t * sum phi(<row, x>) + |x - v|^2 / 2 has one weight b per row, a subgradient of phi, and x = v - t A'b. The
proximal point method on the dual (augmented Lagrangian on the primal) replaces phi by its Moreau envelope around the last
weights, which is piecewise quadratic, and leaves it to Newton's method; because everything is polyhedral it ends after
finitely many rounds, on the exact solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.losses import Loss
from consenso.subproblems import newton
from consenso.subproblems.batch import Batch
from consenso.subproblems.certificate import certificate
from consenso.subproblems.pieces import Pieces, pieces

# Widths of the envelopes over t * |row|^2, then the last one again and again. A narrower one would gain more in a round,
# and lose it to rounding, which it magnifies by 1 / width.
WIDTHS = (1e-1, 1e-2, 1e-3)
ROUNDS = 40


@dataclass(frozen=True, eq=False)
class Envelope:
    """min over u of phi(u) + (u - s - width * center)^2 / (2 width): smooth, with slopes those of phi nearby."""

    loss: Loss
    targets: Array
    pieces: Pieces
    center: Array
    width: Array

    def slope(self, scores: Array) -> Array:
        """A subgradient of phi at the point that attains the minimum."""
        slopes = self.loss.prox_slope(scores + self.width * self.center, self.width, self.targets)
        return self.pieces.snap(slopes)

    def value(self, scores: Array) -> Array:
        """The minimum."""
        slopes = self.slope(scores)
        nearest = scores + self.width * (self.center - slopes)
        return self.loss.value(nearest, self.targets) + self.width * slopes**2 / 2

    def curvature(self, scores: Array) -> Array:
        """1 / width where the minimum is attained at a kink, else 0."""
        slopes = self.slope(scores)
        at_kink = (slopes[:, None] != self.pieces.slopes).all(axis=1)
        return np.where(at_kink, 1.0 / self.width, 0.0)

    def curvature_product(self, scores: Array, direction: Array) -> Array:
        """The curvature, times a direction."""
        return self.curvature(scores) * direction

    def unsteadiness(self, scores: Array) -> Array:
        """The curvature."""
        return self.curvature(scores)

    def take(self, rows: slice | IntArray) -> Envelope:
        """The functions of some rows."""
        return Envelope(self.loss, self.targets[rows], self.pieces.take(rows), self.center[rows], self.width[rows])


def solve(
    batch: Batch, loss: Loss, targets: Array, side: newton.Side, tolerance: float, steps: int
) -> tuple[Array, Array]:
    """The point of each party and the certified bound on its distance to the solution."""
    shape = pieces(loss, targets)
    layout = batch.rows.layout
    x, residual = batch.points.copy(), np.full(batch.rows.parties, np.inf)
    dual = np.zeros(batch.rows.count)
    unit = batch.weights * np.maximum(layout.sums(batch.norms**2) / layout.sizes, np.finfo(np.float64).tiny)
    live = np.arange(batch.rows.parties)
    for turn in range(ROUNDS):
        width = WIDTHS[min(turn, len(WIDTHS) - 1)]
        place = layout.place(live)
        center = dual[place]
        part = batch.take(live)
        spread = part.rows.layout.spread(width * unit[live])
        term = Envelope(loss, targets[place], shape.take(place), center, spread)
        part = Batch(part.rows, term, part.weights, part.points, part.norms)
        found, _ = newton.solve(part, side, center, tolerance / 8, steps)
        weights = term.slope(part.rows.scores(found))
        found = part.points - part.weights[:, None] * part.rows.pull(weights)
        reached = certificate(part, term.pieces, weights, found)
        dual[place] = weights
        closer = reached < residual[live]
        x[live[closer]], residual[live[closer]] = found[closer], reached[closer]
        live = np.flatnonzero(residual > tolerance)
        if not live.size:
            break
    return x, residual
