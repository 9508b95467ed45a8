"""Compiled loops over the rows of parties; import it inside functions, since Numba takes a while to load.

Rows offsets[i]:offsets[i + 1] belong to party i. A kernel does parties first..last and touches nothing of the others,
so `run` can give ranges of parties to threads without changing a bit of the result. Threads that release the lock are
used rather than Numba's own parallel loops: those abort a process that was forked after their first use.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numba
import numpy as np

from consenso.arrays import Array, IntArray

Kernel = TypeVar("Kernel", bound=Callable[..., None])
BLOCK_ROWS = 256
# Below this many multiplications a call costs less than starting a thread.
WORTH_A_THREAD = 20_000_000


def compiled(kernel: Kernel) -> Kernel:
    """Compile without fast-math, so that sums keep their order; keep the result on disk where a folder allows it."""
    try:
        return numba.njit(nogil=True, cache=True)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(nogil=True)(kernel)  # type: ignore[no-any-return]


def run(kernel: Callable[..., None], offsets: IntArray, work_per_row: float, *arguments: Any) -> None:
    """Call kernel(*arguments, first, last) over all parties, in as many threads as the work is worth."""
    parties, rows = len(offsets) - 1, int(offsets[-1])
    workers = min(numba.config.NUMBA_NUM_THREADS, parties, int(rows * work_per_row / WORTH_A_THREAD) + 1)
    if workers <= 1:
        kernel(*arguments, 0, parties)
        return
    edges = [0, *np.searchsorted(offsets, np.arange(1, workers) * (rows // workers)).tolist(), parties]
    *others, own = pairwise(edges)
    with ThreadPoolExecutor(len(others)) as pool:
        shares = [pool.submit(kernel, *arguments, *share) for share in others]
        kernel(*arguments, *own)
        for share in shares:
            share.result()


@compiled
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


@compiled
def dense_scores_many(X: Any, offsets: IntArray, x: Array, out: Array, first: int, last: int) -> None:
    """out[row, k] = sum over features of row * x[party, feature, k]."""
    for i in range(first, last):
        for row in range(offsets[i], offsets[i + 1]):
            out[row] = 0.0
            for f in range(X.shape[1]):
                for k in range(x.shape[2]):
                    out[row, k] += X[row, f] * x[i, f, k]


@compiled
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


@compiled
def dense_pull(X: Any, offsets: IntArray, weights: Array, out: Array, first: int, last: int) -> None:
    """out[party] = sum over its rows of weight * row."""
    for i in range(first, last):
        out[i] = 0.0
        for row in range(offsets[i], offsets[i + 1]):
            weight = weights[row]
            for f in range(X.shape[1]):
                out[i, f] += weight * X[row, f]


@compiled
def dense_pull_many(X: Any, offsets: IntArray, weights: Array, out: Array, first: int, last: int) -> None:
    """out[party, feature, k] = sum over its rows of row[feature] * weights[row, k]."""
    for i in range(first, last):
        out[i] = 0.0
        for row in range(offsets[i], offsets[i + 1]):
            for f in range(X.shape[1]):
                for k in range(weights.shape[1]):
                    out[i, f, k] += X[row, f] * weights[row, k]


@compiled
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


@compiled
def dense_grams(X: Any, offsets: IntArray, starts: IntArray, out: Array, first: int, last: int) -> None:
    """Inner products of the rows of a party, m by m numbers from out[starts[party]]."""
    for i in range(first, last):
        block = X[offsets[i] : offsets[i + 1]].astype(np.float64)
        m = len(block)
        out[starts[i] : starts[i] + m * m] = np.dot(block, block.T).reshape(m * m)


@compiled
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


@compiled
def gram_products(
    grams: Array, starts: IntArray, offsets: IntArray, weights: Array, out: Array, first: int, last: int
) -> None:
    """out[rows of a party] = its Gram matrix times weights[rows of that party]."""
    for i in range(first, last):
        m = offsets[i + 1] - offsets[i]
        gram = grams[starts[i] : starts[i] + m * m].reshape(m, m)
        out[offsets[i] : offsets[i + 1]] = np.dot(gram, weights[offsets[i] : offsets[i + 1]])


@compiled
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


@compiled
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
        out[a:b] = solution
        out_product[a:b] = np.dot(gram, solution)


@compiled
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
        out[i] = right[i]
        _solve(matrix, out[i])


@compiled
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
        out[i] = right[i]
        _solve(matrix, out[i])


@compiled
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
