"""Rounds of a random walk over parties of one record, compiled by Numba: import it inside functions, it loads slowly.

A round has a hop, the prox of one record, noise and the token's step. Hops and noise depend on coins alone and come
from `consenso.engine.walk_draws`; what is left of a round, which must wait for the one before, is a few loops over
the features.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.engine.record_kernels import (
    compile_contracted,
    compile_inlined,
    compile_sum,
    distance,
    fetch_row,
    prox_slope,
)

FETCH = 2  # how many rounds ahead memory is asked for

# --- the step of a party --------------------------------------------------------------------------------------------


@compile_sum
def _measure(rows: Any, i: int, v: Array) -> tuple[float, float]:
    """The score of v and its squared length."""
    score, square = 0.0, 0.0
    for j in range(v.size):
        score += rows[i, j] * v[j]
        square += v[j] * v[j]
    return score, square


@compile_sum
def _pull(rows: Any, i: int, pull: float, v: Array, z: Array, residual: Array) -> tuple[float, float, float]:
    """Write x - z with x = v - pull * row; the score of x and the squared lengths of x and of x - z."""
    score, square, moved = 0.0, 0.0, 0.0
    for j in range(v.size):
        x = v[j] - pull * rows[i, j]
        residual[j] = x - z[j]
        score += rows[i, j] * x
        square += x * x
        moved += residual[j] * residual[j]
    return score, square, moved


@compile_inlined
def _residual(
    rows: Any,
    i: int,
    target: float,
    weight: float,
    norm: float,
    loss: tuple[int, float, float],
    v: Array,
    z: Array,
    residual: Array,
) -> tuple[float, float]:
    """Write x - z with x = prox_{weight phi}(v); its length, and how far x may be from the exact prox."""
    start, v_square = _measure(rows, i, v)
    slope = prox_slope(loss[0], loss[1], start, weight * norm * norm, target)
    score, x_square, moved = _pull(rows, i, weight * slope, v, z, residual)
    lengths = math.sqrt(x_square), math.sqrt(v_square)
    return math.sqrt(moved), distance(loss, target, weight, norm, slope, score, lengths, v.size)


# --- rounds ---------------------------------------------------------------------------------------------------------


@compile_inlined
def _shrunk(value: float, threshold: float, factor: float, low: float, high: float) -> float:
    """The regularizer's prox of one coordinate: soft threshold, shrinkage, box."""
    value -= min(max(value, -threshold), threshold)
    return min(max(value * factor, low), high)


@compile_contracted
def consensus_rounds(
    rows: Any,
    records: tuple[Array, Array, Array],
    loss: tuple[int, float, float],
    shrinkage: tuple[Array, Array, Array, Array],
    tolerance: float,
    clip: float,
    relaxation: float,
    path: IntArray,
    stds: Array,
    noise: Array,
    token: tuple[Array, Array],
    u: Array,
) -> int:
    """ConsensusADMM at the parties of `path`, in place; how many rounds were done before one that is not certified.

    records: targets, weights and norms of the rows. loss: kind, parameter, largest curvature. token: mean and z.
    """
    targets, weights, norms = records
    thresholds, factors, lows, highs = shrinkage
    mean, z = token
    v, residual = np.empty_like(z), np.empty_like(z)
    share = 1.0 / u.shape[0]
    for k in range(path.size):
        i = path[k]
        fetch_row(rows, path, k + FETCH)
        fetch_row(u, path, k + FETCH)
        for j in range(z.size):
            v[j] = 2 * z[j] - u[i, j]
        length, apart = _residual(rows, i, targets[i], weights[i], norms[i], loss, v, z, residual)
        if not (apart <= tolerance and length < np.inf):  # nor is what is not a number certified
            return k
        kept = 1.0 if length <= clip else clip / length
        for j in range(z.size):
            increment = 2 * relaxation * (kept * residual[j] + stds[k] * noise[k, j])
            u[i, j] += increment
            mean[j] += share * increment
            z[j] = _shrunk(mean[j], thresholds[j], factors[j], lows[j], highs[j])
    return path.size


@compile_contracted
def stateless_rounds(
    rows: Any,
    records: tuple[Array, Array, Array],
    loss: tuple[int, float, float],
    shrinkage: tuple[Array, Array, Array, Array],
    tolerance: float,
    share: float,
    path: IntArray,
    stds: Array,
    noise: Array,
    z: Array,
) -> int:
    """StatelessWalk at the parties of `path`, in place; share = 2 relaxation / parties."""
    targets, weights, norms = records
    thresholds, factors, lows, highs = shrinkage
    residual = np.empty_like(z)
    for k in range(path.size):
        i = path[k]
        fetch_row(rows, path, k + FETCH)
        length, apart = _residual(rows, i, targets[i], weights[i], norms[i], loss, z, z, residual)
        if not (apart <= tolerance and length < np.inf):  # nor is what is not a number certified
            return k
        for j in range(z.size):
            moved = z[j] + share * (residual[j] + stds[k] * noise[k, j])
            z[j] = _shrunk(moved, thresholds[j], factors[j], lows[j], highs[j])
    return path.size
