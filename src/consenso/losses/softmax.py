"""The softmax (multinomial logistic) loss of a vector of class scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses.checks import check_classes, prox_arguments
from consenso.losses.loss import Kind, Loss, Targets
from consenso.threads import run_in_threads


@dataclass(frozen=True, kw_only=True)
class Softmax(Loss):
    """log(sum_k exp(score_k)) - score_target, scores (n, classes), targets int64 in 0..classes-1.

    The slope is p - e_target with p the class probabilities. Its norms |p - e_target|_1 = 2 (1 - p_target) and
    |p - e_target|_2 <= sqrt 2 (1 - p_target) approach 2 and sqrt 2 when all weight is on one wrong class.
    The largest eigenvalue of the curvature diag(p) - p p' is at most 1/2, which two classes of weight 1/2 attain.
    """

    classes: int

    name: ClassVar[str] = "softmax"
    targets: ClassVar[Kind] = "class"
    is_likelihood: ClassVar[bool] = True
    slope_bound = math.sqrt(2.0)
    slope_bound_1 = 2.0
    curvature_bound = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.classes, bool) or not isinstance(self.classes, int | np.integer) or self.classes < 2:
            raise InputError(
                f"Softmax(classes={self.classes!r}): the number of classes is an integer of at least 2; "
                "count the public label set, not the labels that occur."
            )

    @classmethod
    def example(cls) -> Softmax:
        return cls(classes=3)

    @property
    def outputs(self) -> int:
        """One score per class."""
        return int(self.classes)

    def value(self, scores: Array, targets: Targets) -> Array:
        records = np.arange(len(scores))
        top = np.argmax(scores, axis=1)
        highest = scores[records, top]
        weights = np.exp(scores - highest[:, None])
        # The largest weight is the 1 of log1p: a record that is fitted well keeps its digits.
        weights[records, top] = 0.0
        losses: Array = (highest - scores[records, targets]) + np.log1p(weights.sum(axis=1))
        return losses

    def slope(self, scores: Array, targets: Targets) -> Array:
        """Probabilities less e_target, (n, classes)."""
        records = np.arange(len(scores))
        slopes: Array = np.exp(scores - scores.max(axis=1, keepdims=True))
        own = slopes[records, targets]
        # Minus the sum of the others, not p_target - 1, which would cancel.
        slopes[records, targets] = 0.0
        others = slopes.sum(axis=1)
        slopes[records, targets] = -others
        slopes /= (own + others)[:, None]
        return slopes

    def curvature_product(self, scores: Array, targets: Targets, direction: Array) -> Array:
        """(diag(p) - p p') direction, (n, classes)."""
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        mean = np.sum(weights * direction, axis=1, keepdims=True)
        product: Array = weights * (direction - mean)
        return product

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """Root of g = slope(point - step * g), to a few units in the last place."""
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        # The kernel indexes with the targets and checks nothing.
        self.check_targets(targets)
        from consenso.losses.softmax_kernels import softmax_prox_slopes

        points, steps = np.ascontiguousarray(points), np.ascontiguousarray(np.atleast_1d(steps))
        indices = np.ascontiguousarray(targets, dtype=np.int64)
        slopes = np.empty_like(points)
        run_in_threads(softmax_prox_slopes, len(points), 50.0 + 30.0 * self.classes, points, steps, indices, slopes)
        return slopes

    def check_targets(self, targets: NDArray[Any]) -> None:
        """Raise InputError unless the targets are integers in 0..classes-1."""
        check_classes(repr(self), self.classes, targets)
