"""The logistic loss of a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.losses.checks import prox_arguments
from consenso.losses.formulas import Formulas
from consenso.losses.loss import Kind, ScalarLoss, Targets
from consenso.threads import run_in_threads


@dataclass(frozen=True, kw_only=True)
class Logistic(ScalarLoss):
    """log(1 + exp(-target * score)), targets -1 or +1."""

    name: ClassVar[str] = "logistic"
    targets: ClassVar[Kind] = "sign"
    is_likelihood: ClassVar[bool] = True
    slope_bound = 1.0  # approached by a record that is far on the wrong side
    curvature_bound = 0.25  # attained at score 0

    def value(self, scores: Array, targets: Targets) -> Array:
        losses: Array = np.logaddexp(0.0, -targets * scores)
        return losses

    def slope(self, scores: Array, targets: Targets) -> Array:
        """-target * sigmoid(-target * score)."""
        from scipy.special import expit  # slow to load

        slopes: Array = -targets * expit(-targets * scores)
        return slopes

    def curvature(self, scores: Array, targets: Targets) -> Array:
        """sigmoid(score) * sigmoid(-score)."""
        from scipy.special import expit

        curvatures: Array = expit(scores) * expit(-scores)
        return curvatures

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """Root of g = slope(point - step * g), to a few units in the last place."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        from consenso.losses.logistic_kernels import logistic_prox_slopes

        points, steps = np.ascontiguousarray(points), np.ascontiguousarray(np.atleast_1d(steps))
        signs = np.ascontiguousarray(targets, dtype=np.float64)
        slopes = np.empty_like(points)
        run_in_threads(logistic_prox_slopes, len(points), 10.0, points, steps, signs, slopes)
        return slopes

    def formulas(self) -> Formulas:
        from consenso.losses.logistic_kernels import logistic_block, logistic_derivatives

        return Formulas(parameters=(), prox_slopes=logistic_block, derivatives=logistic_derivatives)
