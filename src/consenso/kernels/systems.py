"""Linear systems of parties: one per party, of the size of its records or of the features.

Gram matrices are packed: that of party i has m by m numbers from grams[starts[i]].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import put
from consenso.speedups import compile_kernel

BLOCK_ROWS = 256


@compile_kernel
def gram_products(
    grams: Array, starts: IntArray, offsets: IntArray, weights: Array, out: Array, first: int, last: int
) -> None:
    """out[rows of a party] = its Gram matrix times weights[rows of that party]."""
    for i in range(first, last):
        m = offsets[i + 1] - offsets[i]
        gram = grams[starts[i] : starts[i] + m * m].reshape(m, m)
        put(np.dot(gram, weights[offsets[i] : offsets[i + 1]]), out[offsets[i] : offsets[i + 1]])


@compile_kernel
def _solve(matrix: Array, right: Array) -> None:
    """Overwrite `right` with the solution; the matrix is I plus something positive semidefinite."""
    m = len(right)
    # Rounding may push the smallest eigenvalue of a large matrix below zero by about m eps times its trace.
    lift = (m + 2) * 2.3e-16 * np.trace(matrix)
    for r in range(m):
        matrix[r, r] += lift
    lower = np.linalg.cholesky(matrix)
    for r in range(m):
        total = right[r]
        for c in range(r):
            total -= lower[r, c] * right[c]
        right[r] = total / lower[r, r]
    for r in range(m - 1, -1, -1):
        right[r] /= lower[r, r]
        for c in range(r):
            right[c] -= lower[r, c] * right[r]


@compile_kernel
def row_solves(
    grams: Array,
    starts: IntArray,
    offsets: IntArray,
    roots: Array,
    right: Array,
    out: Array,
    out_product: Array,
    first: int,
    last: int,
) -> None:
    """With w = roots and G the Gram matrix of a party: out = w (I + w G w)^-1 w right, and out_product = G out."""
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        m = b - a
        gram = grams[starts[i] : starts[i] + m * m].reshape(m, m)
        matrix = np.empty((m, m))
        for r in range(m):
            for c in range(m):
                matrix[r, c] = roots[a + r] * gram[r, c] * roots[a + c]
            matrix[r, r] += 1.0
        solution = roots[a:b] * right[a:b]
        _solve(matrix, solution)
        solution *= roots[a:b]
        put(solution, out[a:b])
        put(np.dot(gram, solution), out_product[a:b])


@compile_kernel
def dense_column_solves(
    X: Any, offsets: IntArray, weights: Array, right: Array, out: Array, first: int, last: int
) -> None:
    """out[party] = (I + sum over its rows of weight row row')^-1 right[party]."""
    features = X.shape[1]
    block = np.empty((BLOCK_ROWS, features))
    for i in range(first, last):
        matrix = np.eye(features)
        filled = 0
        for row in range(offsets[i], offsets[i + 1]):
            if weights[row] > 0.0:
                root = np.sqrt(weights[row])
                for f in range(features):
                    block[filled, f] = root * X[row, f]
                filled += 1
            if filled == BLOCK_ROWS or (row + 1 == offsets[i + 1] and filled > 0):
                part = block[:filled]
                matrix += np.dot(part.T, part)
                filled = 0
        put(right[i], out[i])
        _solve(matrix, out[i])


@compile_kernel
def sparse_column_solves(
    data: Any,
    columns: Any,
    pointers: Any,
    offsets: IntArray,
    weights: Array,
    right: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """The same for compressed rows."""
    features = out.shape[1]
    for i in range(first, last):
        matrix = np.eye(features)
        for row in range(offsets[i], offsets[i + 1]):
            if weights[row] > 0.0:
                for one in range(pointers[row], pointers[row + 1]):
                    weighted = weights[row] * data[one]
                    for two in range(pointers[row], pointers[row + 1]):
                        matrix[columns[one], columns[two]] += weighted * data[two]
        put(right[i], out[i])
        _solve(matrix, out[i])


@compile_kernel
def shift_lengths(
    grams: Array,
    starts: IntArray,
    offsets: IntArray,
    shifts: Array,
    slack: Array,
    smallest_pivot: float,
    out: Array,
    first: int,
    last: int,
) -> None:
    """Bound on the length of the shortest w with <row, w> within slack of shift, for every row of a party.

    Infinite if a pivot of the Gram matrix falls below its diagonal times smallest_pivot: the rows are then too close to
    dependent for such a w to be told from rounding.
    """
    for i in range(first, last):
        m = offsets[i + 1] - offsets[i]
        lower = grams[starts[i] : starts[i] + m * m].copy().reshape(m, m)
        inverse = np.zeros((m, m))
        solved, spread, independent = 0.0, 0.0, True
        for r in range(m):
            diagonal = lower[r, r]
            for c in range(r):
                total = lower[r, c]
                for k in range(c):
                    total -= lower[r, k] * lower[c, k]
                lower[r, c] = total / lower[c, c]
                lower[r, r] -= lower[r, c] ** 2
            if lower[r, r] <= smallest_pivot * diagonal:
                independent = False
                break
            lower[r, r] = np.sqrt(lower[r, r])
            # Row r of L^-1, from the rows before it.
            for c in range(r):
                for k in range(c + 1):
                    inverse[r, k] -= lower[r, c] * inverse[c, k]
            inverse[r, r] = 1.0
            moved = 0.0
            for k in range(r + 1):
                inverse[r, k] /= lower[r, r]
                spread += inverse[r, k] ** 2
                moved += inverse[r, k] * shifts[offsets[i] + k]
            solved += moved**2
        width = 0.0
        for row in range(offsets[i], offsets[i + 1]):
            width += slack[row] ** 2
        out[i] = np.sqrt(solved) + np.sqrt(spread) * np.sqrt(width) if independent else np.inf
