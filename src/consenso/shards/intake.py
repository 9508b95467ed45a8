"""What a table must be before its rows become a shard, and how rows and targets are bounded.

Messages name rows and columns, never what stands in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, PrivacyError, name_row
from consenso.problem import Problem
from consenso.rows import BLOCK_NUMBERS, Layout, Rows

EPS = float(np.finfo(np.float64).eps)


def check_matrix(X: Any, features: int, owner: str) -> Any:
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
    return _sort_entries(matrix)


def _sort_entries(matrix: Any) -> Any:
    """Compressed rows with their entries in order, each once; the given ones are left as they are."""
    if matrix.has_canonical_format:
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix


def bound_rows(
    matrix: Any, bound: float, owner: str, *, in_place: bool = False, first: int = 0
) -> tuple[Any, Array, int]:
    """The rows, scaled to the bound where they are longer, their squared norms, and how many were scaled (private).

    No row is longer than the bound, in exact arithmetic. in_place: long rows may be written over. first: the number of
    the first row, where they are part of a table.
    """
    if sparse.issparse(matrix):
        matrix = _sort_entries(matrix)
    squared = squared_norms(matrix)
    refuse_non_finite(matrix, np.flatnonzero(~np.isfinite(squared)), owner, first=first)
    long = _long_rows(matrix, squared, bound)
    if not long.size:
        return matrix, squared, 0
    part = _shorten(matrix[long], bound)
    squared[long] = squared_norms(part)
    if not (squared[long] <= bound**2).all():
        raise PrivacyError(f"{owner}: a row could not be shortened to row_bound={bound:g}; this is a fault to report.")
    return _replace(matrix, long, part, in_place=in_place), squared, int(long.size)


def _long_rows(matrix: Any, squared: Array, bound: float) -> IntArray:
    """Rows that are not known to be within the bound; those whose computed norm cannot tell are measured exactly."""
    own = _entries_of_rows(matrix)
    near = near_bound(squared, own, bound)
    unclear = near[squared[near] <= bound**2 * (1 + _room(own[near]))]
    if not unclear.size:
        return near
    blocks = _blocks(unclear, _entries(matrix))
    within = [block[_is_within(_table(matrix[block]), own[block], bound)] for block in blocks]
    return np.setdiff1d(near, np.concatenate(within), assume_unique=True)


def near_bound(squared: Array, entries: int | IntArray, bound: float) -> IntArray:
    """Rows that are not known to be within the bound from their computed squared norms, added in any order."""
    return np.flatnonzero(~(squared <= bound**2 * (1 - _room(entries))))


def _room(entries: int | IntArray) -> Any:
    """A computed sum of k squares is off by a relative (k + 2) eps at most; k is the row's own."""
    return (entries + 4) * EPS


def _is_within(rows: Array, entries: IntArray, bound: float) -> NDArray[np.bool_]:
    """Whether rows (rows, most entries) near the bound are no longer, from squares and sums without rounding errors.

    Every square is the sum of two numbers, and so is every sum of two of them (Dekker 1971, Knuth 1969): what is lost
    in the first numbers is added up apart, and only that sum is rounded. Rows that it cannot decide count as longer.
    The bound comes first and zeros last, so that how many of them fill up a row plays no part.
    """
    high, low = _square(np.concatenate([np.full((len(rows), 1), bound), rows], axis=1))
    high[:, 0], low[:, 0] = -high[:, 0], -low[:, 0]
    lost, size = low.sum(axis=1), np.abs(low).sum(axis=1)
    # Squares of tiny entries vanish, each less than 1e-280.
    size += np.where(((rows != 0) & (np.abs(rows) < 1e-140)).any(axis=1), 1e-250, 0.0)
    while high.shape[1] > 1:
        if high.shape[1] % 2:
            high = np.concatenate([high, np.zeros((len(high), 1))], axis=1)
        first, second = high[:, ::2], high[:, 1::2]
        high = first + second
        share = high - first
        error = (first - (high - share)) + (second - share)
        lost, size = lost + error.sum(axis=1), size + np.abs(error).sum(axis=1)
    decided: NDArray[np.bool_] = high[:, 0] + lost <= -2 * (entries + 8) * EPS * size
    return decided


def _square(values: Array) -> tuple[Array, Array]:
    """Squares as unevaluated sums of two numbers."""
    high = values * values
    scaled = 134217729.0 * values  # 2^27 + 1 splits a double into halves of 26 bits
    front = scaled - (scaled - values)
    back = values - front
    return high, ((front * front - high) + 2 * front * back) + back * back


def _shorten(part: Any, bound: float) -> Any:
    """Rows scaled to just below the bound; they are divided by their largest entry first, so that nothing overflows."""
    peaks = abs(part).max(axis=1)
    peaks = np.asarray(peaks.toarray() if sparse.issparse(part) else peaks, dtype=np.float64).reshape(-1)
    flat = _map_rows(part, lambda values, spread: values / spread(peaks), np.float64)
    norms = np.sqrt(squared_norms(flat))
    # Every rounding may go up, so the aim is a little below the bound: by the row's own entries, since what becomes of
    # a row must not depend on others.
    aim = bound * (1.0 - 4 * float(np.finfo(part.dtype).eps) - (_entries_of_rows(part) + 8) * EPS)
    return _map_rows(flat, lambda values, spread: values * spread(aim / norms), part.dtype)


def bound_targets(targets: Any, problem: Problem, rows: int, owner: str) -> tuple[NDArray[Any], int]:
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


def check_offsets(offsets: Any, rows: int, names: IntArray, owner: str) -> IntArray:
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


def shrink_factors(matrix: Any, bound: float) -> Array:
    """What each row is multiplied with to be no longer than the bound, (rows,): 1 for those that are not."""
    return np.minimum(1.0, bound / np.sqrt(np.maximum(squared_norms(matrix), np.finfo(np.float64).tiny)))


def squared_norms(matrix: Any) -> Array:
    """Squared 2-norm of every row, (rows,), of a table in any order: in columns, squares would be added in another one
    where a row is alone, and what a row gives must not depend on others.
    """
    matrix = matrix if sparse.issparse(matrix) else np.ascontiguousarray(matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        return Rows(matrix, Layout(np.array([0, matrix.shape[0]]))).squared_norms()


def refuse_non_finite(matrix: Any, odd: IntArray, owner: str, *, first: int = 0) -> None:
    """Refuse a table if one of these rows has an entry that is no number; all others are known to have none."""
    if not odd.size:
        return
    part = matrix[odd].tocoo() if sparse.issparse(matrix) else matrix[odd]
    bad = ~np.isfinite(part.data if sparse.issparse(matrix) else part)
    if bad.any():
        where = np.stack(part.coords)[:, bad] if sparse.issparse(matrix) else np.stack(np.nonzero(bad))
        row, column = where[:, np.lexsort(where[::-1])[0]]
        name = name_row(first + odd[row])
        raise InputError(f"{owner}: X is finite, but {name}, column {column} is not; drop or impute that record.")


def _map_rows(matrix: Any, change: Callable[[Any, Callable[[Array], Array]], Any], dtype: Any) -> Any:
    """The entries of rows after a change that is told a number for each row."""
    if sparse.issparse(matrix):
        data = change(matrix.data.astype(np.float64), lambda per_row: np.repeat(per_row, np.diff(matrix.indptr)))
        return sparse.csr_array((data.astype(dtype), matrix.indices, matrix.indptr), shape=matrix.shape)
    return change(matrix.astype(np.float64), lambda per_row: per_row[:, None]).astype(dtype, copy=False)


def _entries_of_rows(matrix: Any) -> IntArray:
    """How many entries each row has, (rows,)."""
    if not sparse.issparse(matrix):
        return np.full(matrix.shape[0], matrix.shape[1], dtype=np.int64)
    entries: IntArray = np.diff(matrix.indptr).astype(np.int64)
    return entries


def _entries(matrix: Any) -> int:
    """The most entries that a row has."""
    return int(_entries_of_rows(matrix).max(initial=0))


def _table(matrix: Any) -> Array:
    """The entries of rows as a dense table, (rows, most entries of a row)."""
    if not sparse.issparse(matrix):
        return np.asarray(matrix, dtype=np.float64)
    lengths = np.diff(matrix.indptr)
    out = np.zeros((matrix.shape[0], _entries(matrix)))
    out[np.arange(out.shape[1]) < lengths[:, None]] = matrix.data
    return out


def _blocks(rows: IntArray, entries: int) -> list[IntArray]:
    length = max(1, BLOCK_NUMBERS // max(1, entries))
    return [rows[start : start + length] for start in range(0, len(rows), length)]


def _replace(matrix: Any, rows: IntArray, part: Any, *, in_place: bool) -> Any:
    if not sparse.issparse(matrix):
        changed = matrix if in_place and matrix.flags.writeable else matrix.copy()
        changed[rows] = part
        return changed
    data = matrix.data.copy()
    lengths = np.diff(matrix.indptr)[rows]
    shifts = np.repeat(matrix.indptr[rows] - (np.cumsum(lengths) - lengths), lengths)
    data[shifts + np.arange(len(shifts))] = part.data
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
