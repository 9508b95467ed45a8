"""Sums over rows of row times its transpose, in whole squared steps of a grid.

Entries are whole numbers, so that sums of products are exact and in any order the same: a compiler may take them side
by side. Libraries for linear algebra are as fast on one thread. With several, those that wait for the next of many
small products keep processors busy: on a busy machine for ten times what the products take.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import compile_inlined
from consenso.speedups import compile_kernel

# Rows that stay in the cache of a processor while all pairs of their columns are taken.
AT_ONCE = 256
# Columns of a table whose length is a power of two would share the same few places of a cache.
SPARE = 8


@compile_inlined
def _cut_columns(X: Any, first: int, last: int, inverse: float, columns: Array) -> None:
    """columns[feature, row - first] = the whole steps of an entry, cut towards zero."""
    even = first + (last - first) // 4 * 4
    for row in range(first, even, 4):
        place = row - first
        for f in range(X.shape[1]):
            columns[f, place] = np.trunc(X[row, f] * inverse)
            columns[f, place + 1] = np.trunc(X[row + 1, f] * inverse)
            columns[f, place + 2] = np.trunc(X[row + 2, f] * inverse)
            columns[f, place + 3] = np.trunc(X[row + 3, f] * inverse)
    for row in range(even, last):
        for f in range(X.shape[1]):
            columns[f, row - first] = np.trunc(X[row, f] * inverse)


def _add_products(columns: Array, count: int, sums: Array) -> None:
    """sums[i, j] += <column i, column j> for j >= i, four by four of them at once; columns are a multiple of four."""
    for i in range(0, columns.shape[0], 4):
        for j in range(i, columns.shape[0], 4):
            aa, ab, ac, ad, ba, bb, bc, bd = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            ca, cb, cc, cd, da, db, dc, dd = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for r in range(count):
                a, b, c, d = columns[i, r], columns[i + 1, r], columns[i + 2, r], columns[i + 3, r]
                e, f, g, h = columns[j, r], columns[j + 1, r], columns[j + 2, r], columns[j + 3, r]
                aa += a * e
                ab += a * f
                ac += a * g
                ad += a * h
                ba += b * e
                bb += b * f
                bc += b * g
                bd += b * h
                ca += c * e
                cb += c * f
                cc += c * g
                cd += c * h
                da += d * e
                db += d * f
                dc += d * g
                dd += d * h
            sums[i, j] += aa
            sums[i, j + 1] += ab
            sums[i, j + 2] += ac
            sums[i, j + 3] += ad
            sums[i + 1, j] += ba
            sums[i + 1, j + 1] += bb
            sums[i + 1, j + 2] += bc
            sums[i + 1, j + 3] += bd
            sums[i + 2, j] += ca
            sums[i + 2, j + 1] += cb
            sums[i + 2, j + 2] += cc
            sums[i + 2, j + 3] += cd
            sums[i + 3, j] += da
            sums[i + 3, j + 1] += db
            sums[i + 3, j + 2] += dc
            sums[i + 3, j + 3] += dd


# Any order of additions of whole numbers, and a product and a sum in one operation, give the same bits.
add_products = compile_kernel(_add_products, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@compile_kernel
def dense_exact_moments(X: Any, chunks: IntArray, step: float, out: IntArray) -> None:
    """out[party] += row times its transpose in squared steps, over the chunks (party, first row, last row)."""
    inverse, features = 1.0 / step, X.shape[1]
    width = (features + 3) // 4 * 4
    columns, sums = np.zeros((width, AT_ONCE + SPARE)), np.empty((width, width))
    for chunk in range(chunks.shape[0]):
        party, last = chunks[chunk, 0], chunks[chunk, 2]
        sums[:] = 0.0
        for first in range(chunks[chunk, 1], last, AT_ONCE):
            count = min(AT_ONCE, last - first)
            _cut_columns(X, first, first + count, inverse, columns)
            add_products(columns, count, sums)
        for i in range(features):
            for j in range(i, features):
                found = np.int64(sums[i, j])
                out[party, i, j] += found
                if j > i:
                    out[party, j, i] += found
