"""Products with the rows of parties, and of the rows with each other.

Rows offsets[i]:offsets[i + 1] belong to party i; compressed rows are (data, columns, pointers).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import put
from consenso.speedups import compile_kernel


@compile_kernel
def dense_scores(X: Any, offsets: IntArray, x: Array, out: Array, first: int, last: int) -> None:
    """out[row] = <row, x of its party>, with x (parties, features)."""
    features = X.shape[1]
    whole = features - features % 4
    for i in range(first, last):
        for row in range(offsets[i], offsets[i + 1]):
            # Four sums, because one would make every addition wait for the one before.
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for f in range(0, whole, 4):
                a += X[row, f] * x[i, f]
                b += X[row, f + 1] * x[i, f + 1]
                c += X[row, f + 2] * x[i, f + 2]
                d += X[row, f + 3] * x[i, f + 3]
            for f in range(whole, features):
                a += X[row, f] * x[i, f]
            out[row] = (a + b) + (c + d)


@compile_kernel
def dense_scores_many(X: Any, offsets: IntArray, x: Array, out: Array, first: int, last: int) -> None:
    """out[row, k] = sum over features of row * x[party, feature, k]."""
    for i in range(first, last):
        for row in range(offsets[i], offsets[i + 1]):
            out[row] = 0.0
            for f in range(X.shape[1]):
                for k in range(x.shape[2]):
                    out[row, k] += X[row, f] * x[i, f, k]


@compile_kernel
def sparse_scores(
    data: Any, columns: Any, pointers: Any, offsets: IntArray, x: Array, out: Array, first: int, last: int
) -> None:
    """The same for compressed rows, with x (parties, features, outputs) and out (rows, outputs)."""
    for i in range(first, last):
        for row in range(offsets[i], offsets[i + 1]):
            out[row] = 0.0
            for entry in range(pointers[row], pointers[row + 1]):
                for k in range(x.shape[2]):
                    out[row, k] += data[entry] * x[i, columns[entry], k]


@compile_kernel
def dense_pull(X: Any, offsets: IntArray, weights: Array, out: Array, first: int, last: int) -> None:
    """out[party] = sum over its rows of weight * row."""
    for i in range(first, last):
        out[i] = 0.0
        for row in range(offsets[i], offsets[i + 1]):
            weight = weights[row]
            for f in range(X.shape[1]):
                out[i, f] += weight * X[row, f]


@compile_kernel
def dense_pull_many(X: Any, offsets: IntArray, weights: Array, out: Array, first: int, last: int) -> None:
    """out[party, feature, k] = sum over its rows of row[feature] * weights[row, k]."""
    for i in range(first, last):
        out[i] = 0.0
        for row in range(offsets[i], offsets[i + 1]):
            for f in range(X.shape[1]):
                for k in range(weights.shape[1]):
                    out[i, f, k] += X[row, f] * weights[row, k]


@compile_kernel
def sparse_pull(
    data: Any, columns: Any, pointers: Any, offsets: IntArray, weights: Array, out: Array, first: int, last: int
) -> None:
    """The same for compressed rows, with weights (rows, outputs)."""
    for i in range(first, last):
        out[i] = 0.0
        for row in range(offsets[i], offsets[i + 1]):
            for entry in range(pointers[row], pointers[row + 1]):
                for k in range(weights.shape[1]):
                    out[i, columns[entry], k] += data[entry] * weights[row, k]


@compile_kernel
def dense_grams(X: Any, offsets: IntArray, starts: IntArray, out: Array, first: int, last: int) -> None:
    """Inner products of the rows of a party, m by m numbers from out[starts[party]]."""
    for i in range(first, last):
        block = X[offsets[i] : offsets[i + 1]].astype(np.float64)
        m = len(block)
        put(np.dot(block, block.T).reshape(m * m), out[starts[i] : starts[i] + m * m])


@compile_kernel
def sparse_grams(
    data: Any,
    columns: Any,
    pointers: Any,
    features: int,
    offsets: IntArray,
    starts: IntArray,
    out: Array,
    first: int,
    last: int,
) -> None:
    """The same for compressed rows: a row is spread out once and met by the others."""
    spread = np.zeros(features)
    for i in range(first, last):
        m = offsets[i + 1] - offsets[i]
        for r in range(m):
            row = offsets[i] + r
            for entry in range(pointers[row], pointers[row + 1]):
                spread[columns[entry]] = data[entry]
            for c in range(r + 1):
                other = offsets[i] + c
                total = 0.0
                for entry in range(pointers[other], pointers[other + 1]):
                    total += data[entry] * spread[columns[entry]]
                out[starts[i] + r * m + c] = total
                out[starts[i] + c * m + r] = total
            for entry in range(pointers[row], pointers[row + 1]):
                spread[columns[entry]] = 0.0
