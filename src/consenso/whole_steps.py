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
# Rows times a matrix, by as many products: less than a tenth of what loading a compiler takes.
FEW_TRANSFORMED = 1 << 24
# Sums into which the products of a score are dealt, so that a processor adds them side by side.
LANES = 8
# Of a double: its sign, its exponent, and as many leading bits as a number of single precision has.
SINGLE_BITS = ~((1 << 29) - 1)


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


def add_moments(X: Any, chunks: IntArray, step: float, out: IntArray) -> None:
    """out[party] += row times its transpose in squared steps, over the chunks (party, first row, last row)."""
    for party, first, last in chunks.tolist():
        cut = np.trunc(np.multiply(X[first:last], 1.0 / step, dtype=np.float64))
        out[party] += (cut.T @ cut).astype(np.int64)


def transform(X: Any, x: Array, squares: Array, out: Array) -> None:
    """Rows times x (features, outputs), into out unless it has no rows, and their squared lengths.

    Products are added in the order of features, squares as `predict` adds products.
    """
    moved = np.zeros((len(X), -(-x.shape[1] // LANES) * LANES))
    for feature, factors in enumerate(x):
        moved[:, : x.shape[1]] += np.multiply(X[:, feature, None], factors, dtype=np.float64)
    squares[:] = _add_lanes(moved * moved)
    if len(out):
        out[:] = moved[:, : x.shape[1]]


def predict(X: Any, x: Array) -> Array:
    """<row, x> for every row, (rows,): eight sums of every eighth product, then theirs, then the products left over."""
    products = X * x
    even = X.shape[1] // LANES * LANES
    rest = np.zeros(len(products))
    for column in range(even, X.shape[1]):
        rest += products[:, column]
    return _add_lanes(products[:, :even]) + rest


def _add_lanes(products: Array) -> Array:
    """Sums of rows, of a multiple of eight numbers: eight sums of every eighth one, then theirs."""
    lanes = np.zeros((len(products), LANES))
    for start in range(0, products.shape[1], LANES):
        lanes += products[:, start : start + LANES]
    pairs = lanes[:, :4] + lanes[:, 4:]
    added: Array = (pairs[:, 0] + pairs[:, 2]) + (pairs[:, 1] + pairs[:, 3])
    return added


def _count_steps(products: Array, step: float) -> IntArray:
    """Each product in whole steps: nothing finer than a step is left beside so large a number."""
    magic = 1.5 * 2.0**52 * step
    return (((products + magic) - magic) * (1.0 / step)).astype(np.int64)
