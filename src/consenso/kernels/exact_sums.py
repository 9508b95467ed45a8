"""Sums over rows in whole steps of a grid: the same whatever the order of rows, the threads and the batches.

A product is rounded to the grid by adding a number so large that nothing finer is left beside it. For compressed rows
that number is subtracted again: sums of at most `consenso.rows.CHUNK` such numbers are exact in double precision, and
are then added up as integers. For dense ones the bits of the sum are added up as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import WORTH_A_THREAD, compile_inlined
from consenso.kernels.lanes import AT_ONCE, add_steps, dot
from consenso.speedups import compile_kernel
from consenso.threads import run_together
from consenso.whole_steps import LANES


@compile_inlined
def _add_whole(sums: IntArray, rows: int, magic: float, out: IntArray) -> None:
    """Add to `out` how many steps there are in sums of `add_steps` over so many rows."""
    none = rows * np.float64(magic).view(np.int64)
    for f in range(len(sums) - LANES):
        out[f] += sums[f] - none


@compile_kernel
def dense_exact_sums(X: Any, weights: Array, chunks: IntArray, step: float, out: IntArray) -> None:
    """out[party, feature, output] += the steps in weight * row, over the chunks (party, first row, last row)."""
    magic, features, outputs = 1.5 * 2.0**52 * step, X.shape[1], weights.shape[1]
    sums, own = np.empty((outputs, features + LANES), dtype=np.int64), np.empty(AT_ONCE)
    for chunk in range(chunks.shape[0]):
        party, start, stop = chunks[chunk]
        sums[:] = 0
        for first in range(start, stop, AT_ONCE):
            last = min(first + AT_ONCE, stop)
            for k in range(outputs):
                for row in range(first, last):
                    own[row - first] = weights[row, k]
                add_steps(X, first, last, own, magic, sums[k])
        for k in range(outputs):
            _add_whole(sums[k], stop - start, magic, out[party, :, k])


@compile_kernel
def dense_residual_sums(
    X: Any, x: Array, targets: Array, factors: Array, limit: float, chunks: IntArray, step: float, out: IntArray
) -> None:
    """The same for the weight factor * clip(<row, x> - target): rows are read from memory once.

    out[0, features] += how many residuals are no number.
    """
    magic, features = 1.5 * 2.0**52 * step, X.shape[1]
    sums, own, odd = np.empty(features + LANES, dtype=np.int64), np.empty(AT_ONCE), 0
    for chunk in range(chunks.shape[0]):
        party, start, stop = chunks[chunk]
        sums[:] = 0
        for first in range(start, stop, AT_ONCE):
            last = min(first + AT_ONCE, stop)
            for row in range(first, last):
                residual = dot(X, row, x) - targets[row]
                odd += residual != residual
                # No branches: a processor would guess wrong which residuals are clipped.
                own[row - first] = min(max(residual, -limit), limit) * factors[row]
            add_steps(X, first, last, own, magic, sums)
        _add_whole(sums, stop - start, magic, out[party, :, 0])
    out[0, features, 0] += odd


@compile_kernel
def sparse_exact_sums(
    data: Any, columns: Any, pointers: Any, features: int, weights: Array, chunks: IntArray, step: float, out: IntArray
) -> None:
    """The same for compressed rows. Places are unsigned: Numba looks whether one that is signed counts from the end."""
    magic, inverse = 1.5 * 2.0**52 * step, 1.0 / step
    outputs = np.uint64(weights.shape[1])
    sums = np.empty((features, weights.shape[1]))
    for chunk in range(chunks.shape[0]):
        sums[:] = 0.0
        for row in range(chunks[chunk, 1], chunks[chunk, 2]):
            weight = weights[row]
            for entry in range(np.uint64(pointers[row]), np.uint64(pointers[row + 1])):
                value, total = data[entry], sums[np.uint64(columns[entry])]
                for k in range(outputs):
                    total[k] += (weight[k] * value + magic) - magic
        for f in range(features):
            for k in range(outputs):
                out[chunks[chunk, 0], f, k] += np.int64(sums[f, k] * inverse)


@compile_kernel
def sparse_exact_sums_of_one(
    data: Any, columns: Any, pointers: Any, features: int, weights: Array, chunks: IntArray, step: float, out: IntArray
) -> None:
    """The same for one output, a fifth of the time: a loop over one number costs more than the number."""
    magic, inverse = 1.5 * 2.0**52 * step, 1.0 / step
    sums = np.empty(features)
    for chunk in range(chunks.shape[0]):
        sums[:] = 0.0
        for row in range(chunks[chunk, 1], chunks[chunk, 2]):
            weight = weights[row, 0]
            for entry in range(np.uint64(pointers[row]), np.uint64(pointers[row + 1])):
                sums[np.uint64(columns[entry])] += (weight * data[entry] + magic) - magic
        for f in range(features):
            out[chunks[chunk, 0], f, 0] += np.int64(sums[f] * inverse)


def run_chunks(
    kernel: Callable[..., None], chunks: IntArray, work: float, given: tuple[Any, ...], step: float, out: IntArray
) -> None:
    """Call kernel(*given, chunks, step, out) over all rows, in as many threads as the work is worth."""
    threads = min(numba.config.NUMBA_NUM_THREADS, len(chunks), int(work / WORTH_A_THREAD) + 1)
    if threads <= 1:
        kernel(*given, chunks, step, out)
        return
    sums = [out, *(np.zeros_like(out) for _ in range(threads - 1))]
    parts = zip(np.array_split(chunks, threads), sums, strict=True)
    run_together([partial(kernel, *given, part, step, own) for part, own in parts])
    for own in sums[1:]:
        out += own
