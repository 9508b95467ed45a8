"""The smooth functions that the exact fit minimises one after the other: losses, squares, envelopes of penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.regularizers import L1, L2, ElasticNet, NoPenalty, Regularizer, Sum, Unpenalized
from consenso.subproblems.batch import Term


@dataclass(frozen=True, kw_only=True, eq=False)
class Penalty:
    """A regularizer as square/2 |x|^2 + absolute |x|_1, coordinate by coordinate, or as it is (`other`)."""

    square: Array
    absolute: Array
    other: Regularizer | None = None

    @property
    def has_kinks(self) -> bool:
        """Whether it has to be smoothed."""
        return self.other is not None or bool(self.absolute.any())

    def find_opposing(self, z: Array, gradient: Array) -> Array:
        """The subgradient of the absolute values at z that cancels most of a gradient."""
        pushed: Array = np.where(z == 0, np.clip(-gradient, -self.absolute, self.absolute), np.sign(z) * self.absolute)
        return pushed


def split(regularizer: Regularizer, dim: int) -> Penalty:
    """The parts of a regularizer."""
    square, absolute = np.zeros(dim), np.zeros(dim)
    if _collect(regularizer, square, absolute):
        return Penalty(square=square, absolute=absolute)
    return Penalty(square=np.zeros(dim), absolute=np.zeros(dim), other=regularizer)


def _collect(regularizer: Regularizer, square: Array, absolute: Array) -> bool:
    """Add a regularizer to both, in place; False where it is neither."""
    match regularizer:
        case NoPenalty():
            return True
        case L1(strength=strength):
            absolute += strength
            return True
        case L2(strength=strength):
            square += strength
            return True
        case ElasticNet(l1=l1, l2=l2):
            absolute += l1
            square += l2
            return True
        case Unpenalized(inner=inner, last=last):
            return _collect(inner, square[:-last], absolute[:-last])
        case Sum(parts=parts):
            return all(_collect(part, square, absolute) for part in parts)
    return False


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothed:
    """sum of weight * term(<row, x>) + square/2 |x|^2 + the envelope of the rest of the penalty."""

    rows: Any
    term: Term
    weights: Array  # (rows,)
    penalty: Penalty
    widths: Array  # of the envelope of the penalty, (dim,)
    push: Array  # its center, (dim,)
    steepness: Array  # a natural curvature of each coordinate, (dim,)

    def at(self, x: Array) -> Iterate:
        scores = self.rows.linear_predictor(x)
        slopes = self.term.slope(scores)
        push = self._push(x)
        gradient = self.rows.total(self.weight(slopes)) + self.penalty.square * x + push
        return Iterate(x=x, scores=scores, slopes=slopes, push=push, gradient=gradient, value=self.value(x, scores))

    def value(self, x: Array, scores: Array) -> float:
        """The function, its scores being known."""
        total = float(self.weights @ self.term.value(scores) + 0.5 * (self.penalty.square @ (x * x)))
        if not self.penalty.has_kinks:
            return total
        push, z = self._push(x), self.model(x)
        rest = self.penalty.absolute @ np.abs(z) if self.penalty.other is None else self.penalty.other.value(z)
        return total + float(rest + 0.5 * (self._widths() @ (push * push)))

    def slope_along(self, x: Array, scores: Array, move: Array, along: Array) -> float:
        """The derivative at x in the direction `move`, whose scores are `along`."""
        slopes = self.weight(self.term.slope(scores))
        return float(np.vdot(slopes, along) + (self.penalty.square * x + self._push(x)) @ move)

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """Slopes of the losses and of the rest of the penalty at x: the centers of the next envelopes."""
        return self.term.slope(self.rows.linear_predictor(x)), self._push(x)

    def model(self, x: Array) -> Array:
        """The point at which `slopes` are those of the penalty itself: exact zeros, within a constraint."""
        if self.penalty.other is not None:
            return self.penalty.other.prox(x + self._widths() * self.push, float(self._widths()[0]))
        if not self.penalty.has_kinks:
            return x
        ahead = x + self.widths * self.push
        return np.where(self.penalty.absolute > 0, _soft_threshold(ahead, self.widths * self.penalty.absolute), x)

    def curvatures(self, x: Array) -> Array:
        """Second derivatives of the penalties, (dim,)."""
        bent = (self.penalty.absolute > 0) & (np.abs(self._push(x)) < self.penalty.absolute)
        return self.penalty.square + np.where(bent, 1.0 / self.widths, 0.0)

    def _push(self, x: Array) -> Array:
        if self.penalty.other is not None:
            return (x + self._widths() * self.push - self.model(x)) / self._widths()
        if not self.penalty.has_kinks:
            return np.zeros_like(x)
        strength = self.penalty.absolute
        pushed: Array = np.clip(x / self.widths + self.push, -strength, strength)
        return pushed

    def _widths(self) -> Array:
        # A prox that couples coordinates takes one step for all of them.
        if self.penalty.other is None:
            return self.widths
        return np.full_like(self.widths, math.exp(float(np.mean(np.log(self.widths)))))

    def weight(self, per_row: Array) -> Array:
        """Numbers of each record times its weight."""
        return per_row * (self.weights if per_row.ndim == 1 else self.weights[:, None])


@dataclass(frozen=True, kw_only=True, eq=False)
class Iterate:
    """A model, its scores, slopes, gradient and value."""

    x: Array
    scores: Array
    slopes: Array
    push: Array
    gradient: Array
    value: float


def _soft_threshold(v: Array, thresholds: Array) -> Array:
    moved: Array = v - np.clip(v, -thresholds, thresholds)
    return moved
