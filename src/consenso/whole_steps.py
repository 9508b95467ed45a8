"""Sums over rows in whole steps of a grid, for tables so small that loading a compiler would take longer.

The result is that of `consenso.kernels.exact_sums`, bit for bit: every product is rounded in the same way, and whole
numbers have one sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray

# Up to this many products a sum takes less than a millisecond.
FEW_PRODUCTS = 1 << 17


def sum_dense(X: Any, weights: Array, offsets: IntArray, step: float) -> IntArray:
    """The steps in weight * row, summed over each party's rows, (parties, features, outputs)."""
    products = _count_steps(weights[:, None, :] * X[:, :, None], step)
    out = np.zeros((len(offsets) - 1, X.shape[1], weights.shape[1]), dtype=np.int64)
    filled = np.flatnonzero(np.diff(offsets))  # reduceat gives an empty range the row after it
    if len(filled):
        out[filled] = np.add.reduceat(products, offsets[filled], axis=0)
    return out


def sum_sparse(
    data: Any, columns: Any, pointers: Any, features: int, weights: Array, offsets: IntArray, step: float
) -> IntArray:
    """The same for compressed rows."""
    rows = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
    parties = np.searchsorted(offsets, rows, side="right") - 1
    out = np.zeros((len(offsets) - 1, features, weights.shape[1]), dtype=np.int64)
    np.add.at(out, (parties, columns), _count_steps(weights[rows] * data[:, None], step))
    return out


def _count_steps(products: Array, step: float) -> IntArray:
    """Each product in whole steps: nothing finer than a step is left beside so large a number."""
    magic = 1.5 * 2.0**52 * step
    return (((products + magic) - magic) * (1.0 / step)).astype(np.int64)
