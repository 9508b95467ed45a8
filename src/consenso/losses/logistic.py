"""The logistic loss of a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from consenso.arrays import Array
from consenso.losses.checks import prox_arguments
from consenso.losses.loss import Kind, ScalarLoss, Targets


@dataclass(frozen=True, kw_only=True)
class Logistic(ScalarLoss):
    """log(1 + exp(-target * score)), targets -1 or +1."""

    name: ClassVar[str] = "logistic"
    targets: ClassVar[Kind] = "sign"

    @property
    def slope_bound(self) -> float:
        """Approached by a record that is far on the wrong side."""
        return 1.0

    @property
    def curvature_bound(self) -> float:
        """Attained at score 0."""
        return 0.25

    def value(self, scores: Array, targets: Targets) -> Array:
        """Losses (n,)."""
        losses: Array = np.logaddexp(0.0, -targets * scores)
        return losses

    def slope(self, scores: Array, targets: Targets) -> Array:
        """-target * sigmoid(-target * score)."""
        slopes: Array = -targets * expit(-targets * scores)
        return slopes

    def curvature(self, scores: Array, targets: Targets) -> Array:
        """sigmoid(score) * sigmoid(-score)."""
        curvatures: Array = expit(scores) * expit(-scores)
        return curvatures

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """Root of g = slope(point - step * g), to a few units in the last place."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        from consenso.losses.kernels import logistic_prox_slopes

        signs = np.ascontiguousarray(targets, dtype=np.float64)
        return logistic_prox_slopes(np.ascontiguousarray(points), np.ascontiguousarray(np.atleast_1d(steps)), signs)
