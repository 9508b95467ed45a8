"""The squared loss of a residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.losses.checks import prox_arguments
from consenso.losses.formulas import Formulas
from consenso.losses.loss import Kind, ScalarLoss, Targets


@dataclass(frozen=True, kw_only=True)
class Squared(ScalarLoss):
    """(score - target)^2 / 2, targets real. Not Lipschitz: one record can move a gradient without bound."""

    name: ClassVar[str] = "squared"
    targets: ClassVar[Kind] = "real"
    slope_bound = np.inf
    curvature_bound = 1.0

    def value(self, scores: Array, targets: Targets) -> Array:
        losses: Array = 0.5 * (scores - targets) ** 2
        return losses

    def slope(self, scores: Array, targets: Targets) -> Array:
        """The residual score - target."""
        slopes: Array = scores - targets
        return slopes

    def curvature(self, scores: Array, targets: Targets) -> Array:
        return np.ones(np.shape(scores))

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """(point - target) / (1 + step)."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        slopes: Array = (points - targets) / (1.0 + steps)
        return slopes

    def formulas(self) -> Formulas:
        return Formulas(parameters=(), prox_slopes=_prox_slopes, derivatives=_derivatives)


def _prox_slopes(count: int, parameters: Array, points: Array, steps: Array, targets: Array, slopes: Array) -> None:
    for i in range(count):
        slopes[i] = (points[i] - targets[i]) / (1.0 + steps[i])


def _derivatives(
    count: int, parameters: Array, scores: Array, targets: Array, slopes: Array, curvatures: Array
) -> None:
    for i in range(count):
        slopes[i] = scores[i] - targets[i]
        curvatures[i] = 1.0
