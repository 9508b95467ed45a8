"""The joint fit of a Huber regression and of its scale, without privacy, as HuberRegressor does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from consenso.arrays import Array
from consenso.estimators.fitting import solve, split_model
from consenso.estimators.people import RowWeights
from consenso.estimators.privacy_params import PrivacyParams

if TYPE_CHECKING:
    from consenso.solvers.request import Request

# HuberRegressor keeps its scale above this; and below a billionth of the targets there is nothing but rounding.
LEAST_SCALE, LEAST_SHARE = 10 * float(np.finfo(np.float64).eps), 1e-9


def find_scale(
    request: Callable[[float], Request],
    threshold: float,
    terms: PrivacyParams,
    X: Any,
    y: Array,
    weights: RowWeights | None,
) -> float:
    """The scale of the minimiser over model and scale of mean of scale * h(r / scale) + scale/2 + penalty.

    That is jointly convex, so its minimum over models is convex in the scale, with the derivative
    (1 - mean of min(r / scale, threshold)^2) / 2 at the best model of a scale: one root is looked for.
    """
    from scipy.optimize import brentq

    found: dict[float, tuple[Array, Array]] = {}
    own = None if weights is None else weights.values

    def derivative(log_scale: float) -> float:
        scale = float(np.exp(log_scale))
        if log_scale not in found:
            asked, solved = solve(lambda _: request(scale), terms, X, y, weights)
            found[log_scale] = split_model(asked, solved.model)
        coefficients, intercepts = found[log_scale]
        residuals = y - (np.asarray(X @ coefficients[:, 0]).reshape(-1) + intercepts[0])
        return 0.5 * (1.0 - float(np.average(np.minimum(np.abs(residuals) / scale, threshold) ** 2, weights=own)))

    largest = max(float(np.max(np.abs(y))), LEAST_SCALE)
    high = float(np.log(2 * largest))
    while derivative(high) < 0:
        high += 1.0
    low, least = high - 1.0, float(np.log(max(LEAST_SCALE, LEAST_SHARE * largest)))
    while low > least and derivative(low) > 0:
        high, low = low, low - 1.0
    best = max(low, least) if low <= least else float(brentq(derivative, low, high, xtol=1e-12, rtol=1e-14))
    return float(np.exp(best))
