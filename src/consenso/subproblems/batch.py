"""The local problems of a cohort, all at once.

Party i minimizes F(x) = scale * sum of phi(<row, x>, target) + |x - v|^2 / (2 step). Everything below is step * F, so
that the weight of the quadratic is 1 and the weight of a record is t = step * scale:

    t * sum phi(<row, x>, target) + |x - v|^2 / 2        gradient r(x) = x - v + t * sum phi'(<row, x>) row

It is 1-strongly convex, hence |x - x*| <= |r(x)|: this is the certificate. Rounding adds to it. The sums in r(x) are
off by a multiple of the unit roundoff times the sizes of what is summed. The scores are off by some e_j, so that the
computed slope is g_j = phi'(s_j + e_j); with B the largest curvature, (g_j - g*_j)(s_j + e_j - s*_j) >=
(g_j - g*_j)^2 / B, so that

    |x - x*|^2 = <r, x - x*> - t sum (g_j - g*_j)(s_j - s*_j) <= |r||x - x*| + t sum B e_j^2 / 4

and |x - x*| <= |r| + sqrt(t B) |e| / 2, which stays small where t times the effect of e on a slope would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.losses import Loss
from consenso.newton import dots
from consenso.rows import Rows

ROUNDOFF = float(np.finfo(np.float64).eps)
# Covers sums of products in certificates; errors grow like the square root of the number of terms and BLAS splits sums.
ROUNDING = 8 * ROUNDOFF


class Term(Protocol):
    """One function of the scores per row: a loss with its targets, or what stands in for it."""

    def value(self, scores: Array) -> Array:
        """The functions at the scores, (rows,)."""
        ...

    def slope(self, scores: Array) -> Array:
        """Their derivatives, shaped like the scores."""
        ...

    def curvature(self, scores: Array) -> Array:
        """Their second derivatives, one output only."""
        ...

    def curvature_product(self, scores: Array, direction: Array) -> Array:
        """Their second derivatives times a direction."""
        ...

    @property
    def curvature_bound(self) -> float | Array:
        """The largest curvature, one number or one per row."""
        ...

    def unsteadiness(self, scores: Array) -> Array:
        """How much the slopes move here per unit that the scores move, (rows,)."""
        ...

    def take(self, rows: slice | IntArray) -> Term:
        """The functions of some rows."""
        ...


@dataclass(frozen=True)
class Plain:
    """A smooth loss as it is."""

    loss: Loss
    targets: Any

    def value(self, scores: Array) -> Array:
        """The loss at the scores."""
        return self.loss.value(scores, self.targets)

    def slope(self, scores: Array) -> Array:
        return self.loss.slope(scores, self.targets)

    def curvature(self, scores: Array) -> Array:
        """Its curvatures, one output only."""
        return self.loss.curvature_product(scores, self.targets, np.ones_like(scores))

    def curvature_product(self, scores: Array, direction: Array) -> Array:
        """Its curvatures times a direction."""
        return self.loss.curvature_product(scores, self.targets, direction)

    @property
    def curvature_bound(self) -> float:
        return self.loss.curvature_bound

    def unsteadiness(self, scores: Array) -> Array:
        """The curvature, or its bound where it is a matrix."""
        if self.loss.outputs == 1:
            return self.curvature(scores)
        return np.full(len(scores), self.curvature_bound)

    def take(self, rows: slice | IntArray) -> Plain:
        """The functions of some rows."""
        return Plain(self.loss, self.targets[rows])


@dataclass(frozen=True, eq=False)
class Batch:
    """Local problems of several parties."""

    rows: Rows
    term: Term
    weights: Array  # t = step * scale of each party
    points: Array  # v, (parties, dim)
    norms: Array  # 2-norm of each row

    def take(self, parties: IntArray) -> Batch:
        """The problems of some of the parties."""
        if len(parties) == self.rows.parties:
            return self
        place = self.rows.layout.place(parties)
        return Batch(
            self.rows.take(parties),
            self.term.take(place),
            self.weights[parties],
            self.points[parties],
            self.norms[place],
        )

    def of(self, term: Term) -> Batch:
        """The same parties with other functions of their scores."""
        return Batch(self.rows, term, self.weights, self.points, self.norms)

    @cached_property
    def row_weights(self) -> Array:
        """The weight t of each row."""
        return self.rows.layout.repeat_per_row(self.weights)

    def state(self, x: Array) -> NewtonState:
        """Everything a solver needs to know at x, evaluated from x itself."""
        scores = self.rows.linear_predictor(x)
        slopes = self.term.slope(scores)
        gradient = self.rows.rmatvec(slopes)
        gradient *= self.weights[:, None]
        gradient += x
        gradient -= self.points
        return NewtonState(x, scores, slopes, gradient, lengths(gradient), self.rounding(x, slopes))

    def rounding(self, x: Array, slopes: Array) -> Array:
        """What rounding may add to the distance of x to the solution, (parties,)."""
        layout, length = self.rows.layout, lengths(x)
        sums = length + lengths(self.points) + self.weights * layout.sums(self.norms * _sizes(slopes))
        blurred = layout.sums(self.term.curvature_bound * self.norms**2)
        return ROUNDING * (sums + np.sqrt(self.weights * blurred) * length / 2)

    def floor(self, state: NewtonState) -> Array:
        """How short a gradient can be expected to get, (parties,)."""
        layout, length = self.rows.layout, lengths(state.x)
        unsteady = self.term.unsteadiness(state.scores) * self.norms * layout.repeat_per_row(length)
        noise = self.norms * (_sizes(state.slopes) + unsteady)
        return ROUNDOFF * (length + lengths(self.points) + self.weights * np.sqrt(layout.sums(noise**2)))


@dataclass(frozen=True, eq=False)
class NewtonState:
    """A point of every party, its scores, the gradient there and what is known about its distance to the solution."""

    x: Array
    scores: Array
    slopes: Array
    gradient: Array
    length: Array  # |gradient|
    rounding: Array

    @property
    def residual(self) -> Array:
        """Bound on |x - x*|, (parties,)."""
        return self.length + self.rounding


def _sizes(slopes: Array) -> Array:
    return np.abs(slopes) if slopes.ndim == 1 else lengths(slopes)


def lengths(vectors: Array) -> Array:
    """2-norms of the vectors of each party, (parties,)."""
    return np.sqrt(dots(vectors, vectors))
