"""Sums of exponentials that stay accurate when they are close to 1 and when they overflow."""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array

# Below this, exp(t) - 1 - t loses digits to cancellation and its series is exact to rounding with seven terms.
_SMALL = 0.02


def exp_less_line(t: Array) -> Array:
    """exp(t) - 1 - t, which is never negative, to full relative accuracy."""
    with np.errstate(over="ignore"):
        result = np.asarray(np.expm1(t) - t, dtype=np.float64)
    small = np.abs(t) < _SMALL
    s = t[small]
    result[small] = s**2 * (1 / 2 + s * (1 / 6 + s * (1 / 24 + s * (1 / 120 + s * (1 / 720 + s / 5040)))))
    return result


def log_weighted_exp(weights: Array, exponents: Array) -> Array:
    """log(sum_i weights_i exp(exponents_i)) for weights that sum to 1; i is the first axis.

    Near 0 it is taken as log1p of the weighted exp(x) - 1, so that tiny costs keep their digits.
    """
    shape = (-1,) + (1,) * (exponents.ndim - 1)
    weighted = weights.reshape(shape)
    top = exponents.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        near = np.log1p(np.sum(weighted * np.expm1(exponents), axis=0))
        far = top + np.log(np.sum(weighted * np.exp(exponents - top), axis=0))
        result = np.where(np.abs(exponents).max(axis=0) < 1.0, near, far)
    return np.where(np.isinf(top), np.inf, result)
