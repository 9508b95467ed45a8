"""Squares of columns that are known up to noise, all together: what they have in common says how large hidden ones are.

    z_j = v_j + noise,      v_j >= 0 has one of the values of a grid, with weights that all columns share

The weights are those under which the z are likeliest, found by the EM algorithm (Kiefer and Wolfowitz 1956, Laird
1978); a square is estimated by its posterior mean. Squares that stand out far are left as they are.
"""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array

# Values of the grid lie so many standard deviations of the noise apart, up to the last of them; bins of what was
# released are as wide.
APART, LAST = 0.25, 10.0
# Squares from here on are left as they are.
CLEAR = 6.0
# Of the EM algorithm, which starts with equal weights.
TURNS = 150


def expect(noisy: Array, noise: float) -> Array:
    """Posterior means of squares with noise of this standard deviation."""
    if not noise:
        return np.maximum(noisy, 0.0)
    sizes, edges = noisy / noise, np.arange(-CLEAR, LAST + APART, APART)
    counts, _ = np.histogram(np.maximum(sizes, -CLEAR), edges)
    middles, grid = edges[:-1] + APART / 2, np.arange(0.0, LAST + APART, APART)
    densities, weights = np.exp(-np.square(middles[:, None] - grid) / 2), np.full(len(grid), 1 / len(grid))
    for _ in range(TURNS if counts.any() else 0):
        weights = counts / counts.sum() @ (densities * weights / _sum(densities, weights)[:, None])
    means = densities @ (weights * grid) / _sum(densities, weights)
    found: Array = noise * np.where(sizes < CLEAR, np.interp(sizes, middles, means), sizes)
    return found


def _sum(densities: Array, weights: Array) -> Array:
    return np.maximum(densities @ weights, np.finfo(float).tiny)
