"""Columns of a table, whatever holds them: a NumPy array or a Polars series of text.

A column answers three questions, each by a map of single cells: which number a cell is, which of the given names it
is, and which identifier it is. What counts as missing besides an empty cell is told by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.errors import InputError

#: The code of a cell that is none of the names.
UNKNOWN = -1
#: The code of a cell that is empty or one of the texts that stand for a missing value.
MISSING = -2

Mask = NDArray[np.bool_]


class Numbers(NamedTuple):
    """Cells as numbers: `values` (rows,), NaN where `missing`; `wrong` is the first row that is no number, or None."""

    values: Array
    missing: Mask
    wrong: int | None


class Column(Protocol):
    """One column of a table."""

    def numbers(self, missing: frozenset[str]) -> Numbers:
        """The cells as numbers."""

    def unreadable(self, missing: frozenset[str]) -> Mask:
        """Which cells are neither a number nor missing."""

    def codes(self, names: Sequence[str], missing: frozenset[str]) -> IntArray:
        """The position of each cell among `names`, else UNKNOWN or MISSING; shape (rows,)."""

    def identifiers(self, missing: frozenset[str]) -> tuple[NDArray[Any], Mask]:
        """The cells as they are, as integers or as text, and which of them are missing."""

    def distinct(self, limit: int) -> list[str] | None:
        """The different texts of the column in order, or None when there are more than `limit`."""


# The cells are private, so they stay out of representations.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ArrayColumn:
    """A column held as a NumPy array of numbers, truth values or text; build it with `column_of`."""

    values: NDArray[Any]
    absent: Mask

    def numbers(self, missing: frozenset[str]) -> Numbers:
        """The cells as numbers."""
        gone = self._find_missing(missing)
        if self.values.dtype.kind == "U":
            cells = np.where(gone, "nan", np.strings.strip(self.values))
            wrong = _first_unreadable(cells)
            values = np.full(cells.shape, np.nan) if wrong is not None else cells.astype(np.float64)
        else:
            wrong, values = None, self.values.astype(np.float64)
        gone = gone | np.isnan(values)
        return Numbers(np.where(gone, np.nan, values), gone, wrong)

    def unreadable(self, missing: frozenset[str]) -> Mask:
        """Which cells are neither a number nor missing."""
        if self.values.dtype.kind != "U":
            return np.zeros(self.values.shape, dtype=np.bool_)
        cells = np.strings.strip(self.values)
        wrong = np.array([_first_unreadable(cells[place : place + 1]) is not None for place in range(cells.size)])
        return np.asarray(wrong, dtype=np.bool_) & ~self._find_missing(missing)

    def codes(self, names: Sequence[str], missing: frozenset[str]) -> IntArray:
        """The position of each cell among `names`, else UNKNOWN or MISSING; numbers are compared as numbers."""
        found = np.full(self.values.shape, UNKNOWN, dtype=np.int64)
        for position, name in enumerate(names):
            found[self._equal(name)] = position
        found[self._find_missing(missing)] = MISSING
        return found

    def identifiers(self, missing: frozenset[str]) -> tuple[NDArray[Any], Mask]:
        """The cells as they are, and which of them are missing."""
        values = np.strings.strip(self.values) if self.values.dtype.kind == "U" else self.values
        return values, self._find_missing(missing)

    def distinct(self, limit: int) -> list[str] | None:
        """The different texts of the column in order, or None when there are more than `limit`."""
        present = self.values[~self._find_missing(frozenset())]
        if self.values.dtype.kind == "U":
            present = np.strings.strip(present)
        found = np.unique(present)
        if found.size > limit:
            return None
        return [str(item).lower() if isinstance(item, bool) else str(item) for item in found.tolist()]

    def _find_missing(self, missing: frozenset[str]) -> Mask:
        gone = self.absent.copy()
        if self.values.dtype.kind == "f":
            gone |= np.isnan(self.values)
        elif self.values.dtype.kind == "U":
            gone |= self._equal("")
        for text in missing:
            gone |= self._equal(text)
        return gone

    def _equal(self, text: str) -> Mask:
        if self.values.dtype.kind == "U":
            same: Mask = np.strings.strip(self.values) == text
            return same
        number = _TRUTH.get(text.lower()) if self.values.dtype.kind == "b" else None
        if number is None:
            try:
                number = float(text)
            except ValueError:
                return np.zeros(self.values.shape, dtype=np.bool_)
        return np.asarray(self.values == number, dtype=np.bool_)


_TRUTH = {"true": 1.0, "false": 0.0}


# The cells are private, so they stay out of representations.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SeriesColumn:
    """A column held as a Polars series of text."""

    series: Any

    def numbers(self, missing: frozenset[str]) -> Numbers:
        """The cells as numbers."""
        import polars as pl

        cells = self.series.str.strip_chars()
        gone = self._find_missing(cells, missing)
        values = cells.cast(pl.Float64, strict=False)
        wrong = (values.is_null() & ~gone).arg_true()
        read: Array = values.fill_null(np.nan).to_numpy()
        empty: Mask = gone.to_numpy() | np.isnan(read)
        return Numbers(np.where(empty, np.nan, read), empty, int(wrong[0]) if len(wrong) else None)

    def unreadable(self, missing: frozenset[str]) -> Mask:
        """Which cells are neither a number nor missing."""
        import polars as pl

        cells = self.series.str.strip_chars()
        wrong: Mask = (cells.cast(pl.Float64, strict=False).is_null() & ~self._find_missing(cells, missing)).to_numpy()
        return wrong

    def codes(self, names: Sequence[str], missing: frozenset[str]) -> IntArray:
        """The position of each cell among `names`, else UNKNOWN or MISSING."""
        import polars as pl

        cells = self.series.str.strip_chars()
        positions = list(range(len(names)))
        found = cells.replace_strict(list(names), positions, default=UNKNOWN, return_dtype=pl.Int64).to_numpy()
        gone: Mask = self._find_missing(cells, missing).to_numpy()
        return np.where(gone, np.int64(MISSING), found)

    def identifiers(self, missing: frozenset[str]) -> tuple[NDArray[Any], Mask]:
        """The cells as text, and which of them are missing."""
        cells = self.series.str.strip_chars()
        gone: Mask = self._find_missing(cells, missing).to_numpy()
        return np.asarray(cells.fill_null("").to_list(), dtype=np.str_), gone

    def distinct(self, limit: int) -> list[str] | None:
        """The different texts of the column in order, or None when there are more than `limit`."""
        cells = self.series.str.strip_chars()
        found = cells.filter(~self._find_missing(cells, frozenset())).unique()
        return sorted(found.to_list()) if len(found) <= limit else None

    def _find_missing(self, cells: Any, missing: frozenset[str]) -> Any:
        return cells.is_null() | cells.is_in(["", *sorted(missing)]).fill_null(False)


def column_of(values: Any, *, name: str, source: str = "table", absent: Mask | None = None) -> ArrayColumn:
    """A column of an array of numbers, truth values or text; None and NaN in an array of objects are missing."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(
            f"{source}, column {name!r}: a column has one axis, not {array.ndim}; pass each column on its own."
        )
    gone = np.zeros(array.shape, dtype=np.bool_) if absent is None else np.asarray(absent, dtype=np.bool_)
    if array.dtype.kind == "O":
        # A cell that differs from itself is NaN.
        none: Any = None
        gone = gone | np.asarray(array == none, dtype=np.bool_) | np.asarray(array != array, dtype=np.bool_)
        array = np.where(gone, "", array).astype(np.str_)
    elif array.dtype.kind == "T":
        array = array.astype(np.str_)
    if array.dtype.kind not in "biufU":
        raise InputError(
            f"{source}, column {name!r}: a column holds numbers, truth values or text, not {array.dtype}; convert it."
        )
    return ArrayColumn(values=array, absent=gone)


def _first_unreadable(cells: NDArray[np.str_]) -> int | None:
    """The first cell that is no number, by halving, since a conversion only tells that there is one."""
    if _readable(cells):
        return None
    low, high = 0, cells.size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if not _readable(cells[low:middle]) else (middle, high)
    return low


def _readable(cells: NDArray[np.str_]) -> bool:
    """Whether all cells are numbers as files write them: Python also reads 1_000 and the digits of other scripts."""
    try:
        cells.astype(np.bytes_).astype(np.float64)
    except ValueError:
        return False
    return not bool((np.strings.find(cells, "_") >= 0).any())
