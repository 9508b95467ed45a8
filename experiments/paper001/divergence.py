"""What a user's data cost whoever sees the end: the printed bound, ours, and the exact value for quadratics.

With quadratic losses and a quadratic g everything is Gaussian and falls apart into the singular directions of A. In a
direction of singular value s the state is (x, dual), the loss has curvature h, and the prox of g multiplies by k:

    dual+ = (1 - k) (dual - penalty s x)
    x+    = ((1 - step h) x + step s (dual+ + penalty y)) / (1 + step penalty s^2) + noise,   y = k (s x - dual/penalty)

The user's own step moves x by step * gap / (1 + step penalty s^2). The exact cost of the worst quadratic is the largest
over k, h, s and, where A has a kernel, over s = 0, for which there is no dual.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.privacy.theorems.gradient_admm import GradientIteration
from experiments.paper001.claims import printed_final_iterate

SHRINKS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)


def costs(
    *,
    step: float,
    penalty: float,
    std: float,
    gap: float,
    smoothness: float,
    convexity: float,
    singular: tuple[float, ...],
    kernel: bool,
    later: tuple[int, ...],
) -> dict[str, Any]:
    """Cost (zCDP) of a user after whom so many iterations follow, for each number of `later`."""
    iteration = GradientIteration(
        step=step,
        penalty=penalty,
        std=std,
        gradient_gap=gap,
        smoothness=smoothness,
        strong_convexity=convexity,
        smallest_singular_value=min(singular),
        largest_singular_value=max(singular),
        rows=len(singular),
        columns=len(singular) + kernel,
    )
    printed = [
        printed_final_iterate(
            step=step,
            penalty=penalty,
            matrix_norm=max(singular),
            std=std,
            distance=step * gap,
            pairs=number // 2,
            pair_contraction=iteration.squared_contraction,
        )
        for number in later
    ]
    factors = sorted({1 - step * convexity, 1 - step * smoothness, 1 - step * (convexity + smoothness) / 2})
    exact = np.max(
        [
            _scalar(step, penalty, std, gap, factor, value, shrink, max(later))
            for factor in factors
            for value, shrink in ([(0.0, 1.0)] if kernel else []) + [(s, k) for s in singular for k in SHRINKS]
        ],
        axis=0,
    )
    return {
        "printed": printed,
        "ours": [iteration.rho(number) for number in later],
        "exact": [float(exact[number]) for number in later],
        "own": iteration.own_rho,
    }


def _scalar(step: float, penalty: float, std: float, gap: float, factor: float, s: float, k: float, most: int) -> Array:
    """Exact zCDP after 0, 1, ... `most` further iterations, in one singular direction."""
    inverse = 1 / (1 + step * penalty * s**2)
    dual = np.array([-(1 - k) * penalty * s, 1 - k])  # of (x, dual)
    y = k * np.array([s, -1 / penalty])
    move = np.stack([inverse * (factor * np.array([1.0, 0.0]) + step * s * (dual + penalty * y)), dual])
    shift, covariance = np.array([inverse * step * gap, 0.0]), np.diag([std**2, 0.0])
    found = []
    for _ in range(most + 1):
        found.append(_half_square(shift, covariance))
        shift, covariance = move @ shift, move @ covariance @ move.T + np.diag([std**2, 0.0])
    return np.array(found)


def _half_square(shift: Array, covariance: Array) -> float:
    """Half of shift' covariance^-1 shift where there is noise; what has no noise does not move either."""
    scale = np.sqrt(np.diag(covariance))
    noisy = scale > 1e-150
    correlation = covariance[np.ix_(noisy, noisy)] / np.outer(scale[noisy], scale[noisy])
    along = shift[noisy] / scale[noisy]
    return float(along @ np.linalg.pinv(correlation, rcond=1e-12, hermitian=True) @ along / 2)
