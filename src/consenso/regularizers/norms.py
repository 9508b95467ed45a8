"""Penalties on the size of a model: none, absolute values, squares, both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.regularizers.checks import check_step, check_strength
from consenso.regularizers.regularizer import Regularizer


def soften(v: Array, threshold: float) -> Array:
    """Move every coordinate towards 0 by the threshold, stopping at 0."""
    softened: Array = v - np.clip(v, -threshold, threshold)
    return softened


@dataclass(frozen=True, kw_only=True)
class NoPenalty(Regularizer):
    """Zero."""

    alias = "none"

    @property
    def strong_convexity(self) -> float:
        """None."""
        return 0.0

    @property
    def is_constraint(self) -> bool:
        """Finite everywhere."""
        return False

    def value(self, x: Array) -> Array:
        """Zeros."""
        return np.zeros(np.shape(x)[:-1])

    def prox(self, v: Array, step: float) -> Array:
        """A copy of v."""
        check_step(self, step)
        return np.array(v, dtype=np.float64)

    def subgradient(self, x: Array) -> Array:
        """Zeros."""
        return np.zeros(np.shape(x))


@dataclass(frozen=True, kw_only=True)
class L1(Regularizer):
    """strength * |x|_1."""

    strength: float

    def __post_init__(self) -> None:
        """Refuse a negative strength."""
        check_strength("L1", "strength", self.strength)

    @property
    def strong_convexity(self) -> float:
        """None."""
        return 0.0

    @property
    def is_constraint(self) -> bool:
        """Finite everywhere."""
        return False

    def value(self, x: Array) -> Array:
        """Strength times the sum of absolute values."""
        values: Array = self.strength * np.sum(np.abs(x), axis=-1)
        return values

    def prox(self, v: Array, step: float) -> Array:
        """Soft threshold."""
        check_step(self, step)
        return soften(v, step * self.strength)

    def subgradient(self, x: Array) -> Array:
        """Strength times the signs."""
        slopes: Array = self.strength * np.sign(x)
        return slopes


@dataclass(frozen=True, kw_only=True)
class L2(Regularizer):
    """strength / 2 * |x|_2^2."""

    strength: float

    def __post_init__(self) -> None:
        """Refuse a negative strength."""
        check_strength("L2", "strength", self.strength)

    @property
    def strong_convexity(self) -> float:
        """The strength."""
        return float(self.strength)

    @property
    def is_constraint(self) -> bool:
        """Finite everywhere."""
        return False

    def value(self, x: Array) -> Array:
        """Half the strength times the sum of squares."""
        values: Array = 0.5 * self.strength * np.sum(np.square(x), axis=-1)
        return values

    def prox(self, v: Array, step: float) -> Array:
        """Shrinkage."""
        check_step(self, step)
        return v / (1.0 + step * self.strength)

    def subgradient(self, x: Array) -> Array:
        """The gradient."""
        return self.strength * x


@dataclass(frozen=True, kw_only=True)
class ElasticNet(Regularizer):
    """l1 * |x|_1 + l2 / 2 * |x|_2^2."""

    l1: float
    l2: float

    def __post_init__(self) -> None:
        """Refuse a negative strength."""
        check_strength("ElasticNet", "l1", self.l1)
        check_strength("ElasticNet", "l2", self.l2)

    @property
    def strong_convexity(self) -> float:
        """That of the squares."""
        return float(self.l2)

    @property
    def is_constraint(self) -> bool:
        """Finite everywhere."""
        return False

    def value(self, x: Array) -> Array:
        """The sum of both penalties."""
        values: Array = self.l1 * np.sum(np.abs(x), axis=-1) + 0.5 * self.l2 * np.sum(np.square(x), axis=-1)
        return values

    def prox(self, v: Array, step: float) -> Array:
        """Soft threshold, then shrinkage."""
        check_step(self, step)
        return soften(v, step * self.l1) / (1.0 + step * self.l2)

    def subgradient(self, x: Array) -> Array:
        """Signs plus gradient."""
        slopes: Array = self.l1 * np.sign(x) + self.l2 * x
        return slopes
