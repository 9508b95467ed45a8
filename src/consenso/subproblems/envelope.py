"""Moreau envelopes of a loss around given slopes: the smooth stand-ins with which the hard local problems are solved.

The dual of t * sum phi(<row, x>) + |x - v|^2 / 2 has one weight b per row, a subgradient of phi, and x = v - t A'b. The
proximal point method on the dual (an augmented Lagrangian method on the primal) puts in the place of phi its envelope

    min over u of phi(u) + (u - s - width * center)^2 / (2 width),        center = the last weights,

which is smooth, and leaves it to Newton's method. Its slope at s is a subgradient of phi at the u that attains the
minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.losses import Loss
from consenso.subproblems.pieces import Pieces


@dataclass(frozen=True, eq=False)
class MoreauEnvelope:
    """Envelopes of a loss, one per row; `shape` has the kinks of a piecewise linear loss."""

    loss: Loss
    targets: Any
    shape: Pieces | None
    center: Array  # like scores
    width: Array  # (rows,)

    def slope(self, scores: Array) -> Array:
        """A subgradient of phi at the point that attains the minimum."""
        slopes = self.loss.prox_slope(scores + self._wide(scores) * self.center, self.width, self.targets)
        return slopes if self.shape is None else self.shape.snap(slopes)

    def value(self, scores: Array) -> Array:
        slopes = self.slope(scores)
        squares = slopes**2 if slopes.ndim == 1 else np.sum(slopes**2, axis=1)
        return self.loss.value(self._nearest(scores, slopes), self.targets) + self.width * squares / 2

    def curvature(self, scores: Array) -> Array:
        """1 / width at a kink of phi; curvatures add like resistances elsewhere."""
        slopes = self.slope(scores)
        if self.shape is not None:
            return np.where((slopes[:, None] != self.shape.slopes).all(axis=1), 1.0 / self.width, 0.0)
        nearest = self._nearest(scores, slopes)
        curvature = self.loss.curvature_product(nearest, self.targets, np.ones_like(nearest))
        return curvature / (1.0 + self.width * curvature)

    def curvature_product(self, scores: Array, direction: Array) -> Array:
        """The curvature, times a direction; with several outputs D (I + width D)^-1, where D is that of phi."""
        if scores.ndim == 1:
            return self.curvature(scores) * direction
        nearest = self._nearest(scores, self.slope(scores))
        units = np.eye(scores.shape[1])
        columns = [
            self.loss.curvature_product(nearest, self.targets, np.tile(unit, (len(nearest), 1))) for unit in units
        ]
        matrix = units + self.width[:, None, None] * np.stack(columns, axis=2)
        inner = np.asarray(np.linalg.solve(matrix, direction[:, :, None])[:, :, 0], dtype=np.float64)
        return self.loss.curvature_product(nearest, self.targets, inner)

    @property
    def curvature_bound(self) -> Array:
        """1 / width."""
        return 1.0 / self.width

    def unsteadiness(self, scores: Array) -> Array:
        """The curvature, or its bound where it is a matrix."""
        return self.curvature(scores) if scores.ndim == 1 else self.curvature_bound

    def take(self, rows: slice | IntArray) -> MoreauEnvelope:
        """The functions of some rows."""
        shape = None if self.shape is None else self.shape.take(rows)
        return MoreauEnvelope(self.loss, self.targets[rows], shape, self.center[rows], self.width[rows])

    def _nearest(self, scores: Array, slopes: Array) -> Array:
        return scores + self._wide(scores) * (self.center - slopes)

    def _wide(self, scores: Array) -> Array:
        return self.width if scores.ndim == 1 else self.width[:, None]
