"""What a table must be before its rows become a shard, and how rows and targets are bounded.

Messages name rows and columns, never what stands in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.problem import Problem
from consenso.rows import Layout, Rows

# A norm is known to a few units in the last place only; rows at the bound up to that are left as they are.
SLACK = 4 * float(np.finfo(np.float64).eps)


def checked_matrix(X: Any, features: int, owner: str) -> Any:
    """X as a float64 or float32 array in C order or a csr_array, of the right width; copied only if it must be."""
    compressed = sparse.issparse(X)
    matrix: Any = sparse.csr_array(X) if compressed else np.asarray(X)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InputError(
            f"{owner}: X is a table of numbers with two axes, but it is {matrix.dtype} of shape {matrix.shape}; encode "
            "categories as numbers first."
        )
    if matrix.shape[1] != features:
        raise InputError(f"{owner}: X has one column per feature, {features}, but it has {matrix.shape[1]} columns.")
    if matrix.dtype not in (np.float64, np.float32):
        matrix = matrix.astype(np.float64)
    if not compressed:
        return np.ascontiguousarray(matrix)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def bounded_rows(matrix: Any, bound: float, owner: str) -> tuple[Any, Array, int]:
    """The rows, scaled to the bound where they are longer, their squared norms, and how many were scaled (private)."""
    squared = _squared_norms(matrix)
    odd = np.flatnonzero(~np.isfinite(squared))
    if odd.size:
        _refuse_non_finite(matrix, odd, owner)
    long = np.flatnonzero(~(squared <= (bound * (1 + SLACK)) ** 2))
    if not long.size:
        return matrix, squared, 0
    part = matrix[long]
    # Rows whose square overflows are measured after division by their largest entry.
    peaks = abs(part).max(axis=1)
    peaks = np.asarray(peaks.toarray() if sparse.issparse(part) else peaks, dtype=np.float64).reshape(-1)
    norms = peaks * np.sqrt(_squared_norms(_scaled(part, 1.0 / peaks)))
    # The last rounding of a scaled row may go up, so the aim is a little below the bound.
    part = _scaled(part, bound * (1.0 - 4 * float(np.finfo(matrix.dtype).eps)) / norms)
    squared[long] = _squared_norms(part)
    return _replaced(matrix, long, part), squared, int(long.size)


def bounded_targets(targets: Any, problem: Problem, rows: int, owner: str) -> tuple[NDArray[Any], int]:
    """The targets in the loss's type, clipped to the target bound, and how many were clipped (private)."""
    given = np.asarray(targets)
    if given.shape != (rows,):
        raise InputError(f"{owner}: there is one target per row, {rows}, but targets have the shape {given.shape}.")
    loss, bound = problem.loss, problem.target_bound
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        row = int(np.flatnonzero(~np.isfinite(given))[0])
        raise InputError(
            f"{owner}: targets are finite, but the target of row {row} is not; drop or impute that record."
        )
    loss.check_targets(given)
    if loss.targets == "class":
        return given.astype(np.int64, copy=False), 0
    values = given.astype(np.float64, copy=False)
    if bound is None:
        return values, 0
    clipped = int(np.count_nonzero(np.abs(values) > bound))
    return (np.clip(values, -bound, bound) if clipped else values), clipped


def checked_offsets(offsets: Any, rows: int, names: IntArray, owner: str) -> IntArray:
    """Offsets as int64, from 0 to the number of rows, with no empty party."""
    given = np.asarray(offsets)
    if given.dtype.kind not in "iu" or given.shape != (len(names) + 1,) or given[0] != 0 or given[-1] != rows:
        raise InputError(
            f"{owner}: offsets are {len(names) + 1} whole numbers from 0 to the number of rows, {rows}, but an array "
            f"of shape {given.shape} and type {given.dtype} was given that is not so."
        )
    empty = np.flatnonzero(np.diff(given.astype(np.int64)) < 1)
    if empty.size:
        raise InputError(
            f"{owner}: every party holds at least one row, but party {names[empty[0]]} holds none; leave it out of the "
            "problem."
        )
    return given.astype(np.int64)


def _squared_norms(matrix: Any) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return Rows(matrix, Layout(np.array([0, matrix.shape[0]]))).squared_norms()


def _refuse_non_finite(matrix: Any, odd: IntArray, owner: str) -> None:
    part = matrix[odd].tocoo() if sparse.issparse(matrix) else matrix[odd]
    bad = ~np.isfinite(part.data if sparse.issparse(matrix) else part)
    if bad.any():
        where = np.stack(part.coords)[:, bad] if sparse.issparse(matrix) else np.stack(np.nonzero(bad))
        row, column = where[:, np.lexsort(where[::-1])[0]]
        raise InputError(
            f"{owner}: X is finite, but row {odd[row]}, column {column} is not; drop or impute that record."
        )


def _scaled(matrix: Any, factors: Array) -> Any:
    """Rows times factors, in the type of the matrix."""
    if sparse.issparse(matrix):
        data = (matrix.data * np.repeat(factors, np.diff(matrix.indptr))).astype(matrix.dtype)
        return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return (matrix * factors[:, None]).astype(matrix.dtype, copy=False)


def _replaced(matrix: Any, rows: IntArray, part: Any) -> Any:
    if not sparse.issparse(matrix):
        copy = matrix.copy()
        copy[rows] = part
        return copy
    data = matrix.data.copy()
    lengths = np.diff(matrix.indptr)[rows]
    shifts = np.repeat(matrix.indptr[rows] - (np.cumsum(lengths) - lengths), lengths)
    data[shifts + np.arange(len(shifts))] = part.data
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
