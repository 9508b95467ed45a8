"""Scores, prox slopes and their pull in one pass over the rows, which are read from memory once instead of twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.kernels.compiled import at
from consenso.speedups import branchless

TILE = 64  # rows that wait in the cache while their slopes are found
PIECE = 1 << 11  # rows that are summed together, whatever the number of threads
# Sums over features may be taken in vectors: the order is fixed when the loop is compiled, not when it runs.
SUMS = {"contract", "reassoc", "nsz"}


def _compile_sum(kernel: Any) -> Any:
    return branchless(kernel, fastmath=SUMS, forceinline=True)


@_compile_sum
def _score(X: Any, row: int, x: Array) -> float:
    total = 0.0
    for f in range(x.size):
        total += X[row, f] * x[f]
    return total


@branchless
def prox_sweep(
    X: Any,
    parameters: Array,
    prox_slopes: Any,
    x: Array,
    factor: float,
    offsets: Array,
    steps: Array,
    targets: Array,
    scores: Array,
    slopes: Array,
    totals: Array,
    first: int,
    last: int,
) -> None:
    """Of each row its score s and the slope g of the loss at p - step * g with p = factor * s + offset.

    totals (pieces, features): the sums of slope times row over pieces of `PIECE` rows.
    """
    total = totals[first // PIECE]
    points = np.empty(TILE)
    for start in range(first, last, TILE):
        count = min(TILE, last - start)
        for t in range(count):
            row = start + t
            scores[row] = _score(X, row, x)
            points[t] = factor * scores[row] + offsets[row]
        given = at(points, 0), at(steps, start), at(targets, start)
        prox_slopes(count, at(parameters, 0), *given, at(slopes, start))
        for row in range(start, start + count):
            for f in range(x.size):
                total[f] += slopes[row] * X[row, f]
