"""The joint fit of a Huber regression and of its scale, without privacy, as HuberRegressor does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from consenso.arrays import Array
from consenso.problem import Problem

if TYPE_CHECKING:
    from consenso.solvers.exact import Exact

# HuberRegressor keeps its scale above this; and below a billionth of the targets there is nothing but rounding.
LEAST_SCALE, LEAST_SHARE = 10 * float(np.finfo(np.float64).eps), 1e-9


def fit_with_scale(
    solve: Callable[[float], tuple[Problem, Exact]],
    residuals: Callable[[Problem, Exact], Array],
    threshold: float,
    largest: float,
) -> tuple[float, Problem, Exact]:
    """The scale of the minimum, with the problem and the model at that scale; `largest` is the largest target.

    Minimised over model and scale is the mean of scale * h(r / scale) + scale/2 + penalty.

    That is jointly convex, so its minimum over models is convex in the scale, with the derivative
    (1 - mean of min(r / scale, threshold)^2) / 2 at the best model of a scale: one root is looked for.
    """
    from scipy.optimize import brentq

    found: dict[float, tuple[Problem, Exact]] = {}

    def derivative(log_scale: float) -> float:
        scale = float(np.exp(log_scale))
        if log_scale not in found:
            found[log_scale] = solve(scale)
        sizes = np.abs(residuals(*found[log_scale]))
        return 0.5 * (1.0 - float(np.mean(np.minimum(sizes / scale, threshold) ** 2)))

    largest = max(largest, LEAST_SCALE)
    high = float(np.log(2 * largest))
    while derivative(high) < 0:
        high += 1.0
    low, least = high - 1.0, float(np.log(max(LEAST_SCALE, LEAST_SHARE * largest)))
    while low > least and derivative(low) > 0:
        high, low = low, low - 1.0
    best = max(low, least) if low <= least else float(brentq(derivative, low, high, xtol=1e-12, rtol=1e-14))
    derivative(best)
    return float(np.exp(best)), *found[best]
