"""The hinge loss of a margin, and its quadratic smoothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.errors import check_positive
from consenso.losses.checks import prox_arguments
from consenso.losses.formulas import Formulas
from consenso.losses.loss import Kind, PiecewiseLinear, ScalarLoss, Targets
from consenso.losses.ramp import ramp


@dataclass(frozen=True, kw_only=True)
class Hinge(PiecewiseLinear):
    """max(0, 1 - target * score), targets -1 or +1."""

    name: ClassVar[str] = "hinge"
    targets: ClassVar[Kind] = "sign"

    def value(self, scores: Array, targets: Targets) -> Array:
        return np.maximum(0.0, 1.0 - targets * scores)

    def slope(self, scores: Array, targets: Targets) -> Array:
        """-target inside the margin, 0 on it and beyond."""
        return np.where(targets * scores < 1.0, -targets, 0.0)

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """-target * min(shortfall / step, 1), with shortfall = max(0, 1 - target * point)."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        slopes: Array = -targets * ramp(np.maximum(0.0, 1.0 - targets * points), steps)
        return slopes

    def formulas(self) -> Formulas:
        return Formulas(parameters=(), prox_slopes=_prox_slopes)


@dataclass(frozen=True, kw_only=True)
class SmoothedHinge(ScalarLoss):
    """The hinge loss with its corner replaced by a parabola over margins in [1 - smoothing, 1]; targets -1 or +1.

    With margin m = target * score: 0 for m >= 1, (1 - m)^2 / (2 smoothing) down to 1 - smoothing, and
    1 - m - smoothing / 2 below, which is the hinge less a constant.
    """

    smoothing: float

    name: ClassVar[str] = "smoothed hinge"
    targets: ClassVar[Kind] = "sign"
    slope_bound = 1.0  # one, below the parabola

    def __post_init__(self) -> None:
        check_positive("SmoothedHinge", "smoothing", self.smoothing, "use Hinge() for the limit 0")

    @classmethod
    def example(cls) -> SmoothedHinge:
        return cls(smoothing=0.5)

    @property
    def curvature_bound(self) -> float:
        """That of the parabola."""
        return 1.0 / self.smoothing

    def value(self, scores: Array, targets: Targets) -> Array:
        shortfall = np.maximum(0.0, 1.0 - targets * scores)
        near = np.minimum(shortfall, self.smoothing)
        losses: Array = near / self.smoothing * (shortfall - 0.5 * near)
        return losses

    def slope(self, scores: Array, targets: Targets) -> Array:
        """-target * (1 - margin) / smoothing, cut to [0, 1]."""
        depth: Array = np.clip((1.0 - targets * scores) / self.smoothing, 0.0, 1.0)
        return -targets * depth

    def curvature(self, scores: Array, targets: Targets) -> Array:
        """1 / smoothing on the parabola, zero elsewhere."""
        shortfall = 1.0 - targets * scores
        return np.where((shortfall >= 0.0) & (shortfall <= self.smoothing), 1.0 / self.smoothing, 0.0)

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """-target * (1 - target * point) / (smoothing + step), cut to [0, 1]."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        depth: Array = np.clip((1.0 - targets * points) / (self.smoothing + steps), 0.0, 1.0)
        return -targets * depth

    def formulas(self) -> Formulas:
        return Formulas(
            parameters=(self.smoothing,), prox_slopes=_smoothed_prox_slopes, derivatives=_smoothed_derivatives
        )


def _prox_slopes(count: int, parameters: Array, points: Array, steps: Array, targets: Array, slopes: Array) -> None:
    for i in range(count):
        shortfall = max(0.0, 1.0 - targets[i] * points[i])
        width = max(shortfall, steps[i])
        slopes[i] = -targets[i] * shortfall / width if width > 0.0 else 0.0


def _smoothed_prox_slopes(
    count: int, parameters: Array, points: Array, steps: Array, targets: Array, slopes: Array
) -> None:
    smoothing = parameters[0]
    for i in range(count):
        depth = (1.0 - targets[i] * points[i]) / (smoothing + steps[i])
        slopes[i] = -targets[i] * min(max(depth, 0.0), 1.0)


def _smoothed_derivatives(
    count: int, parameters: Array, scores: Array, targets: Array, slopes: Array, curvatures: Array
) -> None:
    smoothing = parameters[0]
    for i in range(count):
        shortfall = 1.0 - targets[i] * scores[i]
        slopes[i] = -targets[i] * min(max(shortfall / smoothing, 0.0), 1.0)
        curvatures[i] = 1.0 / smoothing if 0.0 <= shortfall <= smoothing else 0.0
