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


class Shrinkage(Regularizer):
    """absolute * |x|_1 + strong_convexity / 2 * |x|_2^2: coordinate by coordinate, a threshold and then a division."""

    @property
    def absolute(self) -> float:
        """The weight of the absolute values."""
        return 0.0

    def value(self, x: Array) -> Array:
        values: Array = self.absolute * np.sum(np.abs(x), axis=-1)
        if self.strong_convexity:
            values = values + 0.5 * self.strong_convexity * np.sum(np.square(x), axis=-1)
        return values

    def prox(self, v: Array, step: float) -> Array:
        check_step(self, step)
        x = soften(v, step * self.absolute) if self.absolute else np.array(v, dtype=np.float64)
        return x / (1.0 + step * self.strong_convexity) if self.strong_convexity else x

    def prox_formula(self, step: float) -> ProxFormula:
        parameters = step * self.absolute, 1.0 / (1.0 + step * self.strong_convexity)
        return ProxFormula(parameters=parameters, prox=_shrink)

    def subgradient(self, x: Array) -> Array:
        slopes: Array = self.absolute * np.sign(x) + self.strong_convexity * x
        return slopes


@dataclass(frozen=True, kw_only=True)
class NoPenalty(Shrinkage):
    """Zero everywhere: no regularizer."""

    alias = "none"


@dataclass(frozen=True, kw_only=True)
class L1(Shrinkage):
    """strength * |x|_1."""

    strength: float

    def __post_init__(self) -> None:
        check_strength("L1", "strength", self.strength)

    @classmethod
    def example(cls) -> L1:
        return cls(strength=0.02)

    @property
    def absolute(self) -> float:
        return float(self.strength)


@dataclass(frozen=True, kw_only=True)
class L2(Shrinkage):
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


@dataclass(frozen=True, kw_only=True)
class ElasticNet(Shrinkage):
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
    def absolute(self) -> float:
        return float(self.l1)

    @property
    def strong_convexity(self) -> float:
        return float(self.l2)
