"""Copies of rows, and what can be seen of them on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.kernels.sweep import SUMS
from consenso.speedups import branchless
from consenso.whole_steps import SINGLE_BITS


def _cut_rows(X: Array, out: Any, squares: Array) -> None:
    for row in range(X.shape[0]):
        total = 0.0
        for f in range(X.shape[1]):
            total += X[row, f] * X[row, f]
        squares[row] = total
        for f in range(X.shape[1]):
            out[row, f] = np.int64(np.float64(X[row, f]).view(np.int64) & np.int64(SINGLE_BITS)).view(np.float64)


def _find_apart(X: Any, apart: float, out: Any) -> None:
    for row in range(X.shape[0]):
        most = 0.0
        for f in range(X.shape[1]):
            most = max(most, abs(X[row, f]))
        limit, small, full = most / apart, 0, 0
        for f in range(X.shape[1]):
            size = abs(X[row, f])
            full += size > 0
            small += (size > 0) & (size < limit)
        out[row] = small > full // 4


def _sum_within(X: Any, square: float, steps: float, total: Array, is_long: Any) -> None:
    for row in range(X.shape[0]):
        length = 0.0
        for f in range(X.shape[1]):
            length += np.float64(X[row, f]) * np.float64(X[row, f])
        is_long[row] = not length < square
        if not is_long[row]:
            for f in range(X.shape[1]):
                total[f] += np.rint(X[row, f] * steps)


# Squared lengths are added in any order: they tell which rows are to be looked at, not what becomes of them.
cut_rows = branchless(_cut_rows, fastmath=SUMS)
# Rows of which a quarter of the cells that are not 0 is so many times below the largest.
find_apart = branchless(_find_apart, fastmath={"nnan", "ninf", "nsz"})
# The sum of rows that are clearly shorter than a bound, in whole steps, and which are not.
sum_within = branchless(_sum_within, fastmath=SUMS)
