"""The absolute loss of a residual, and the one that ignores small residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError, is_finite
from consenso.losses.checks import prox_arguments
from consenso.losses.formulas import Formulas
from consenso.losses.loss import Kind, PiecewiseLinear, Targets
from consenso.losses.ramp import ramp


@dataclass(frozen=True, kw_only=True)
class Absolute(PiecewiseLinear):
    """|score - target|, targets real."""

    name: ClassVar[str] = "absolute"
    targets: ClassVar[Kind] = "real"

    def to_sklearn(self, *, fit_intercept: bool) -> Any:
        """The same loss, as a tube without width."""
        from sklearn.svm import LinearSVR

        return LinearSVR(fit_intercept=fit_intercept, epsilon=0.0)

    def value(self, scores: Array, targets: Targets) -> Array:
        losses: Array = np.abs(scores - targets)
        return losses

    def slope(self, scores: Array, targets: Targets) -> Array:
        """The sign of the residual, 0 at 0."""
        slopes: Array = np.sign(scores - targets)
        return slopes

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """(point - target) / step, clipped to [-1, 1]."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        return ramp(points - targets, steps)

    def formulas(self) -> Formulas:
        """For compiled loops: a tube without width."""
        return Formulas(parameters=(0.0,), prox_slopes=_prox_slopes)


@dataclass(frozen=True, kw_only=True)
class EpsilonInsensitive(PiecewiseLinear):
    """max(0, |score - target| - width), targets real."""

    width: float

    name: ClassVar[str] = "epsilon-insensitive"
    targets: ClassVar[Kind] = "real"

    def __post_init__(self) -> None:
        if not (is_finite(self.width) and self.width >= 0):
            raise InputError(
                f"EpsilonInsensitive(width={self.width!r}): a width is a finite number of at least 0; "
                "give the size of a residual that does not matter."
            )

    @classmethod
    def example(cls) -> EpsilonInsensitive:
        return cls(width=0.1)

    def to_sklearn(self, *, fit_intercept: bool) -> Any:
        from sklearn.svm import LinearSVR

        return LinearSVR(fit_intercept=fit_intercept, epsilon=self.width)

    def value(self, scores: Array, targets: Targets) -> Array:
        return np.abs(self._excess(scores, targets))

    def slope(self, scores: Array, targets: Targets) -> Array:
        """The sign of the residual outside the tube, 0 on its edge and inside."""
        return np.sign(self._excess(scores, targets))

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """The signed distance to the tube over the step, clipped to [-1, 1]."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        return ramp(self._excess(points, targets), steps)

    def formulas(self) -> Formulas:
        return Formulas(parameters=(self.width,), prox_slopes=_prox_slopes)

    def _excess(self, scores: Array, targets: Targets) -> Array:
        residual = scores - targets
        excess: Array = residual - np.clip(residual, -self.width, self.width)
        return excess


def _prox_slopes(count: int, parameters: Array, points: Array, steps: Array, targets: Array, slopes: Array) -> None:
    tube = parameters[0]
    for i in range(count):
        residual = points[i] - targets[i]
        residual -= min(max(residual, -tube), tube)
        width = max(abs(residual), steps[i])
        slopes[i] = residual / width if width > 0.0 else 0.0
