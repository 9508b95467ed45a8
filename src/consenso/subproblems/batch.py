"""The local problems of a cohort, all at once.

Party i minimizes F(x) = scale * sum of phi(<row, x>, target) + |x - v|^2 / (2 step). Everything below is step * F, so
that the weight of the quadratic is 1 and the weight of a record is t = step * scale:

    t * sum phi(<row, x>, target) + |x - v|^2 / 2        gradient r(x) = x - v + t * sum phi'(<row, x>) row

It is 1-strongly convex, hence |x - x*| <= |r(x)|: this is the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.losses import Loss
from consenso.rows import Rows

# Multiple of the unit roundoff that covers the sums in r(x); the rest of a certificate is exact.
ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Term(Protocol):
    """phi with its targets: one function per row."""

    def value(self, scores: Array) -> Array: ...  # noqa: D102
    def slope(self, scores: Array) -> Array: ...  # noqa: D102
    def curvature(self, scores: Array) -> Array: ...  # noqa: D102
    def curvature_product(self, scores: Array, direction: Array) -> Array: ...  # noqa: D102
    def unsteadiness(self, scores: Array) -> Array:
        """How much the slope moves at most, in 2-norm, per unit that the scores move; (rows,)."""
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
        """phi at the scores."""
        return self.loss.value(scores, self.targets)

    def slope(self, scores: Array) -> Array:
        """phi' at the scores."""
        return self.loss.slope(scores, self.targets)

    def curvature(self, scores: Array) -> Array:
        """phi'' at the scores, one output only."""
        return self.loss.curvature_product(scores, self.targets, np.ones_like(scores))

    def curvature_product(self, scores: Array, direction: Array) -> Array:
        """phi'' at the scores, times a direction."""
        return self.loss.curvature_product(scores, self.targets, direction)

    def unsteadiness(self, scores: Array) -> Array:
        """The curvature, or its bound where it is a matrix."""
        if self.loss.outputs == 1:
            return self.curvature(scores)
        return np.full(len(scores), self.loss.smoothness(1.0))

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
            self.rows.take(parties), self.term.take(place), self.weights[parties], self.points[parties], self.norms[place]
        )

    @cached_property
    def row_weights(self) -> Array:
        """t of each row."""
        return self.rows.layout.spread(self.weights)

    def state(self, x: Array) -> State:
        """Everything a solver needs to know at x, evaluated from x itself."""
        scores = self.rows.scores(x)
        slopes = self.term.slope(scores)
        gradient = self.rows.pull(slopes)
        gradient *= self.weights[:, None]
        gradient += x
        gradient -= self.points
        return State(x, scores, gradient, lengths(gradient), self.rounding(x, scores, slopes))

    def rounding(self, x: Array, scores: Array, slopes: Array) -> Array:
        """What rounding may hide in the gradient at x, (parties,)."""
        length = lengths(x)
        moved = self.term.unsteadiness(scores) * self.norms * self.rows.layout.spread(length)
        sizes = np.abs(slopes) if slopes.ndim == 1 else lengths(slopes)
        pulled = self.rows.layout.sums(self.norms * (sizes + moved))
        return ROUNDING * (length + lengths(self.points) + self.weights * pulled)


@dataclass(frozen=True, eq=False)
class State:
    """A point of every party, its scores, the gradient there and what is known about its distance to the solution."""

    x: Array
    scores: Array
    gradient: Array
    length: Array  # |gradient|
    rounding: Array

    @property
    def residual(self) -> Array:
        """Bound on |x - x*|, (parties,)."""
        return self.length + self.rounding


def dots(left: Array, right: Array) -> Array:
    """Inner products of the vectors of each party, (parties,)."""
    return np.einsum("ij,ij->i", left, right)


def lengths(vectors: Array) -> Array:
    """2-norms of the vectors of each party, (parties,)."""
    return np.sqrt(dots(vectors, vectors))
