"""The cells of one column as its kind sees them: with the schema's idea of a missing value, and a place for errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.tables import MISSING, UNKNOWN, Column, Table

Scale = Literal["unit", "signed"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """One column of a table, read for a schema."""

    table: Table
    name: str
    missing_values: frozenset[str]

    @property
    def _column(self) -> Column:
        return self.table.columns[self.name]

    def numbers(self) -> tuple[Array, Mask]:
        """The cells as numbers and which of them are missing."""
        values, missing, wrong = self._column.numbers(self.missing_values)
        if wrong is not None:
            raise self.error(wrong, "a numeric column holds numbers, and this cell is none; correct the cell")
        return values, missing

    def codes(self, names: tuple[str, ...]) -> IntArray:
        """The position of each cell among public names, else UNKNOWN or MISSING."""
        return self._column.codes(names, self.missing_values)

    def identifiers(self) -> tuple[NDArray[Any], Mask]:
        """The cells as identifiers and which of them are missing."""
        return self._column.identifiers(self.missing_values)

    def refuse(self, where: Mask, reason: str) -> None:
        """Raise for the first cell of a mask; the cell itself is private and is not repeated."""
        if where.any():
            raise self.error(int(np.argmax(where)), reason)

    def error(self, row: int, reason: str) -> InputError:
        """An error about one cell."""
        return InputError(f"{self.table.place(row, self.name)}: {reason}.")


def unknown(codes: IntArray) -> Mask:
    """Which codes are neither a name nor missing."""
    return np.asarray(codes == UNKNOWN, dtype=np.bool_)


def missing(codes: IntArray) -> Mask:
    """Which codes are missing."""
    return np.asarray(codes == MISSING, dtype=np.bool_)
