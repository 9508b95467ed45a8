"""Sums over rows of row times its transpose, in whole squared steps of a grid.

Entries are whole numbers, so that sums of products are exact and in any order the same: a compiler may take a product
and a sum in one operation. Libraries for linear algebra are as fast on one thread. With several, those that wait for
the next of many small products keep processors busy: on a busy machine for ten times what the products take.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.clipping import shorten
from consenso.kernels.compiled import compile_inlined
from consenso.kernels.lanes import TILE, square_tile, transform_block
from consenso.speedups import branchless
from consenso.whole_steps import LANES

# Rows that stay in the cache of a processor while all pairs of their columns are taken.
AT_ONCE = 64
_shorten = compile_inlined(shorten)


@compile_inlined
def _add_products(rows: Array, count: int, features: int, sums: Array) -> None:
    """sums[i, j] += the sum of row[i] * row[j] for j >= i; what is beyond `features` are zeros."""
    for i in range(0, features, TILE):
        for j in range(i // LANES * LANES, features, LANES):
            square_tile(rows, count, i, j, sums)


@compile_inlined
def _add_whole(sums: Array, features: int, out: IntArray) -> None:
    """Both halves of out += a sum of whole numbers of which there is one half."""
    for i in range(features):
        for j in range(i, features):
            found = np.int64(sums[i, j])
            out[i, j] += found
            if j > i:
                out[j, i] += found


@branchless
def dense_exact_moments(X: Any, factors: Array, chunks: IntArray, step: float, out: IntArray) -> None:
    """out[party] += row times its transpose in squared steps, over the chunks (party, first row, last row).

    factors: what a row is multiplied with before it is cut to whole steps, (rows,); empty for nothing.
    """
    inverse, features = 1.0 / step, X.shape[1]
    width = (features + LANES - 1) // LANES * LANES
    rows, sums = np.zeros((AT_ONCE, width)), np.empty((width, width))
    for chunk in range(chunks.shape[0]):
        party, last = chunks[chunk, 0], chunks[chunk, 2]
        sums[:] = 0.0
        for first in range(chunks[chunk, 1], last, AT_ONCE):
            count = min(AT_ONCE, last - first)
            for k in range(count):
                factor = factors[first + k] if factors.size else 1.0
                for f in range(features):
                    rows[k, f] = np.trunc(X[first + k, f] * factor * inverse)
            _add_products(rows, count, features, sums)
        _add_whole(sums, features, out[party])


@branchless
def dense_whitened_moments(
    X: Any,
    panels: Array,
    longest: float,
    factors: Array,
    chunks: IntArray,
    step: float,
    out: IntArray,
) -> None:
    """The same for rows times a matrix (`dense_transform`), shortened where they are longer than `longest`.

    A block of rows is moved, measured, shortened and added up while it is in the cache of a processor.
    """
    inverse, features = 1.0 / step, X.shape[1]
    width = panels.shape[0] * LANES
    wide, rows, squares = np.empty((AT_ONCE, features)), np.zeros((AT_ONCE, width)), np.empty(AT_ONCE)
    sums = np.empty((width, width))
    for chunk in range(chunks.shape[0]):
        party, last = chunks[chunk, 0], chunks[chunk, 2]
        sums[:] = 0.0
        for first in range(chunks[chunk, 1], last, AT_ONCE):
            count = min(AT_ONCE, last - first)
            transform_block(X, first, count, panels, wide, rows, squares)
            for k in range(count):
                factor = _shorten(np.sqrt(squares[k]), longest)
                if factors.size:
                    factor *= factors[first + k]
                for f in range(features):
                    rows[k, f] = np.trunc(rows[k, f] * factor * inverse)
            _add_products(rows, count, features, sums)
        _add_whole(sums, features, out[party])
