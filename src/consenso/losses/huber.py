"""Huber's loss of a residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.errors import check_positive
from consenso.losses.checks import prox_arguments
from consenso.losses.formulas import Formulas
from consenso.losses.loss import Kind, ScalarLoss, Targets


@dataclass(frozen=True, kw_only=True)
class Huber(ScalarLoss):
    """r^2 / 2 for a residual r = score - target up to the threshold, and its tangents beyond; targets real.

    Its slope is the residual clipped to the threshold, so it is the squared loss with per-record clipping, and convex.
    """

    threshold: float = 1.0

    name: ClassVar[str] = "huber"
    targets: ClassVar[Kind] = "real"
    curvature_bound = 1.0  # one, within the threshold

    def __post_init__(self) -> None:
        check_positive(
            "Huber", "threshold", self.threshold, "use Absolute() for the limit 0 and Squared() for infinity"
        )

    @property
    def slope_bound(self) -> float:
        return float(self.threshold)

    def to_sklearn(self, *, fit_intercept: bool) -> Any:
        from sklearn.linear_model import HuberRegressor

        return HuberRegressor(fit_intercept=fit_intercept)

    def value(self, scores: Array, targets: Targets) -> Array:
        size = np.abs(scores - targets)
        near = np.minimum(size, self.threshold)
        losses: Array = near * (size - 0.5 * near)
        return losses

    def slope(self, scores: Array, targets: Targets) -> Array:
        slopes: Array = np.clip(scores - targets, -self.threshold, self.threshold)
        return slopes

    def curvature(self, scores: Array, targets: Targets) -> Array:
        """One within the threshold, zero beyond."""
        return np.asarray(np.abs(scores - targets) <= self.threshold, dtype=np.float64)

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """(point - target) / (1 + step), clipped."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        slopes: Array = np.clip((points - targets) / (1.0 + steps), -self.threshold, self.threshold)
        return slopes

    def formulas(self) -> Formulas:
        return Formulas(parameters=(self.threshold,), prox_slopes=_prox_slopes, derivatives=_derivatives)


def _prox_slopes(count: int, parameters: Array, points: Array, steps: Array, targets: Array, slopes: Array) -> None:
    threshold = parameters[0]
    for i in range(count):
        slopes[i] = min(max((points[i] - targets[i]) / (1.0 + steps[i]), -threshold), threshold)


def _derivatives(
    count: int, parameters: Array, scores: Array, targets: Array, slopes: Array, curvatures: Array
) -> None:
    threshold = parameters[0]
    for i in range(count):
        residual = scores[i] - targets[i]
        slopes[i] = min(max(residual, -threshold), threshold)
        curvatures[i] = 1.0 if abs(residual) <= threshold else 0.0
