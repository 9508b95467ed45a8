"""Constraints: zero inside a convex set, infinite outside; their prox is the projection, whatever the step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError, check_positive
from consenso.regularizers.checks import check_step
from consenso.regularizers.formulas import ProxFormula
from consenso.regularizers.regularizer import ConvexSet

# A projected point is on the boundary up to rounding, and counts as inside.
_ROUNDING = 1e-10


def _clip_entries(count: int, parameters: Array, v: Array, x: Array) -> None:
    """Clip every coordinate, for compiled loops."""
    low, high = parameters[0], parameters[1]
    for j in range(count):
        x[j] = min(max(v[j], low), high)


def _indicator(inside: Array) -> Array:
    return np.where(inside, 0.0, np.inf)


@dataclass(frozen=True, kw_only=True)
class Box(ConvexSet):
    """low <= x <= high in every coordinate; either bound may be infinite."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (self.low <= self.high and self.low < math.inf and self.high > -math.inf):  # NaN compares false
            raise InputError(
                f"Box(low={self.low!r}, high={self.high!r}): low is at most high and neither is NaN; "
                "use an infinite bound to leave a side open."
            )

    @classmethod
    def example(cls) -> Box:
        return cls(low=-0.05, high=0.1)

    def value(self, x: Array) -> Array:
        """0 inside, infinite outside."""
        return _indicator(np.all((x >= self.low) & (x <= self.high), axis=-1))

    def prox(self, v: Array, step: float) -> Array:
        check_step(self, step)
        return np.clip(v, self.low, self.high)

    def prox_formula(self, step: float) -> ProxFormula:
        return ProxFormula(parameters=(self.low, self.high), prox=_clip_entries)


@dataclass(frozen=True, kw_only=True)
class Ball(ConvexSet):
    """|x|_2 <= radius."""

    radius: float

    def __post_init__(self) -> None:
        check_positive("Ball", "radius", self.radius, "use Box(low=0.0, high=0.0) for the single point 0")

    @classmethod
    def example(cls) -> Ball:
        return cls(radius=0.2)

    def value(self, x: Array) -> Array:
        """0 inside and, up to rounding, on the sphere; infinite outside."""
        return _indicator(np.linalg.norm(x, axis=-1) <= self.radius * (1.0 + _ROUNDING))

    def prox(self, v: Array, step: float) -> Array:
        """Scale to the radius what is longer."""
        check_step(self, step)
        norms = np.linalg.norm(v, axis=-1, keepdims=True)
        projected: Array = v * (self.radius / np.maximum(norms, self.radius))
        return projected


@dataclass(frozen=True, kw_only=True)
class Simplex(ConvexSet):
    """x >= 0 in every coordinate, and they add up to `total`."""

    total: float = 1.0

    def __post_init__(self) -> None:
        check_positive("Simplex", "total", self.total, "use Box(low=0.0, high=0.0) for the single point 0")

    def value(self, x: Array) -> Array:
        """0 inside, with the sum up to rounding; infinite outside."""
        near = np.abs(np.sum(x, axis=-1) - self.total) <= self.total * _ROUNDING
        return _indicator(near & np.all(x >= 0, axis=-1))

    def prox(self, v: Array, step: float) -> Array:
        """The projection max(v - level, 0), with the level found by sorting."""
        check_step(self, step)
        # The level lies within `total` below the largest entry: what is lower ends at 0 wherever it was, and cutting
        # it off keeps the sums exact to rounding of `total` rather than of v.
        lowered = np.maximum(v - np.max(v, axis=-1, keepdims=True), -self.total)
        descending = np.flip(np.sort(lowered, axis=-1), axis=-1)
        counts = np.arange(1, lowered.shape[-1] + 1)
        levels = (np.cumsum(descending, axis=-1) - self.total) / counts
        # Entries above the level they imply are a prefix; the last of them has the right level.
        support = np.sum(descending > levels, axis=-1, keepdims=True)
        level = np.take_along_axis(levels, support - 1, axis=-1)
        projected: Array = np.maximum(lowered - level, 0.0)
        return projected
