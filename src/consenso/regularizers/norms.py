"""Penalties on the size of a model: none, absolute values, squares, both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.regularizers.checks import check_step, check_strength
from consenso.regularizers.formulas import ProxFormula
from consenso.regularizers.regularizer import Regularizer


def soften(v: Array, threshold: float) -> Array:
    """Move every coordinate towards 0 by the threshold, stopping at 0."""
    softened: Array = v - np.clip(v, -threshold, threshold)
    return softened


def _shrink(count: int, parameters: Array, v: Array, x: Array) -> None:
    """Soft threshold, then shrinkage, for compiled loops."""
    threshold, factor = parameters[0], parameters[1]
    for j in range(count):
        x[j] = (v[j] - min(max(v[j], -threshold), threshold)) * factor


@dataclass(frozen=True, kw_only=True)
class NoPenalty(Regularizer):
    """Zero."""

    alias = "none"

    def value(self, x: Array) -> Array:
        return np.zeros(np.shape(x)[:-1])

    def prox(self, v: Array, step: float) -> Array:
        """A copy of v."""
        check_step(self, step)
        return np.array(v, dtype=np.float64)

    def prox_formula(self, step: float) -> ProxFormula:
        return ProxFormula(parameters=(0.0, 1.0), prox=_shrink)

    def subgradient(self, x: Array) -> Array:
        return np.zeros(np.shape(x))


@dataclass(frozen=True, kw_only=True)
class L1(Regularizer):
    """strength * |x|_1."""

    strength: float

    def __post_init__(self) -> None:
        check_strength("L1", "strength", self.strength)

    @classmethod
    def example(cls) -> L1:
        return cls(strength=0.02)

    def value(self, x: Array) -> Array:
        """Strength times the sum of absolute values."""
        values: Array = self.strength * np.sum(np.abs(x), axis=-1)
        return values

    def prox(self, v: Array, step: float) -> Array:
        check_step(self, step)
        return soften(v, step * self.strength)

    def prox_formula(self, step: float) -> ProxFormula:
        return ProxFormula(parameters=(step * self.strength, 1.0), prox=_shrink)

    def subgradient(self, x: Array) -> Array:
        """Strength times the signs."""
        slopes: Array = self.strength * np.sign(x)
        return slopes


@dataclass(frozen=True, kw_only=True)
class L2(Regularizer):
    """strength / 2 * |x|_2^2."""

    strength: float

    def __post_init__(self) -> None:
        check_strength("L2", "strength", self.strength)

    @classmethod
    def example(cls) -> L2:
        return cls(strength=0.1)

    @property
    def strong_convexity(self) -> float:
        return float(self.strength)

    def value(self, x: Array) -> Array:
        """Half the strength times the sum of squares."""
        values: Array = 0.5 * self.strength * np.sum(np.square(x), axis=-1)
        return values

    def prox(self, v: Array, step: float) -> Array:
        check_step(self, step)
        return v / (1.0 + step * self.strength)

    def prox_formula(self, step: float) -> ProxFormula:
        return ProxFormula(parameters=(0.0, 1.0 / (1.0 + step * self.strength)), prox=_shrink)

    def subgradient(self, x: Array) -> Array:
        return self.strength * x


@dataclass(frozen=True, kw_only=True)
class ElasticNet(Regularizer):
    """l1 * |x|_1 + l2 / 2 * |x|_2^2."""

    l1: float
    l2: float

    def __post_init__(self) -> None:
        check_strength("ElasticNet", "l1", self.l1)
        check_strength("ElasticNet", "l2", self.l2)

    @classmethod
    def example(cls) -> ElasticNet:
        return cls(l1=0.02, l2=0.1)

    @property
    def strong_convexity(self) -> float:
        """That of the squares."""
        return float(self.l2)

    def value(self, x: Array) -> Array:
        """The sum of both penalties."""
        values: Array = self.l1 * np.sum(np.abs(x), axis=-1) + 0.5 * self.l2 * np.sum(np.square(x), axis=-1)
        return values

    def prox(self, v: Array, step: float) -> Array:
        """Soft threshold, then shrinkage."""
        check_step(self, step)
        return soften(v, step * self.l1) / (1.0 + step * self.l2)

    def prox_formula(self, step: float) -> ProxFormula:
        return ProxFormula(parameters=(step * self.l1, 1.0 / (1.0 + step * self.l2)), prox=_shrink)

    def subgradient(self, x: Array) -> Array:
        slopes: Array = self.l1 * np.sign(x) + self.l2 * x
        return slopes
