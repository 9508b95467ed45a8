"""Rounds of a random walk over parties of one record, compiled by Numba: import it inside functions, it loads slowly.

A round has a hop, the prox of one record, noise and the token's step. Hops and noise depend on coins alone and come
from `consenso.runtime.walk_draws`; what is left of a round, which must wait for the one before, is a few loops over
the features.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from consenso.arrays import Array, IntArray
from consenso.runtime.record_kernels import contracted, distance, inlined, prox_slope, summed

LINE = 8  # numbers in a cache line
FETCH = 2  # how many rounds ahead memory is asked for

# --- the step of a party --------------------------------------------------------------------------------------------


@summed
def _measure(rows: Any, i: int, v: Array) -> tuple[float, float]:
    """The score of v and its squared length."""
    score, square = 0.0, 0.0
    for j in range(v.size):
        score += rows[i, j] * v[j]
        square += v[j] * v[j]
    return score, square


@summed
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


@inlined
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


@intrinsic
def _fetch(typing_context: Any, table: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of an entry, without waiting for it."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(table)(context, builder, arguments[0])
        entry = cgutils.get_item_pointer(context, builder, table, array, arguments[1:])
        address, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(
            function, [builder.bitcast(entry, address), number(0), number(3), number(1)]
        )  # to read, keep, data
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), emit


@inlined
def _fetch_row(table: Any, path: IntArray, k: int) -> None:
    """Ask for the row of the party of round k: the walk jumps about in memory, but where to is known beforehand."""
    if k < path.size:
        for j in range(0, table.shape[1], LINE):
            _fetch(table, path[k], j)


# --- rounds ---------------------------------------------------------------------------------------------------------


@inlined
def _shrunk(value: float, threshold: float, factor: float, low: float, high: float) -> float:
    """The regularizer's prox of one coordinate: soft threshold, shrinkage, box."""
    value -= min(max(value, -threshold), threshold)
    return min(max(value * factor, low), high)


@contracted
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
        _fetch_row(rows, path, k + FETCH)
        _fetch_row(u, path, k + FETCH)
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


@contracted
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
        _fetch_row(rows, path, k + FETCH)
        length, apart = _residual(rows, i, targets[i], weights[i], norms[i], loss, z, z, residual)
        if not (apart <= tolerance and length < np.inf):  # nor is what is not a number certified
            return k
        for j in range(z.size):
            moved = z[j] + share * (residual[j] + stds[k] * noise[k, j])
            z[j] = _shrunk(moved, thresholds[j], factors[j], lows[j], highs[j])
    return path.size
