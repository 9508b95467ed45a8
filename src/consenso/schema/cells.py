"""The cells of one column as its kind sees them: with the schema's idea of a missing value, and a place for errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.errors import COUNTED, InputError
from consenso.tables import MISSING, UNKNOWN, Column, Table

Scale = Literal["unit", "signed"]
Mask = NDArray[np.bool_]


#: Places that a message lists of one column and rule.
MOST_PLACES = 20


@dataclass(frozen=True, kw_only=True)
class CellFault:
    """Rows of a column that break a rule; what their cells hold is private and is not kept."""

    name: str
    rows: tuple[int, ...]
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """One column of a table, read for a schema; what is wrong with it is added to `faults`."""

    table: Table
    name: str
    missing_values: frozenset[str]
    faults: list[CellFault] = field(default_factory=list)

    @property
    def _column(self) -> Column:
        return self.table.columns[self.name]

    def numbers(self) -> tuple[Array, Mask]:
        """The cells as numbers and which of them are missing."""
        values, missing, wrong = self._column.numbers(self.missing_values)
        if wrong is not None:
            self.refuse(
                self._column.unreadable(self.missing_values),
                "a numeric column holds numbers, and this cell is none; correct the cell",
            )
            missing = np.asarray(self.codes(()) == MISSING, dtype=np.bool_)
        return values, missing

    def codes(self, names: tuple[str, ...]) -> IntArray:
        """The position of each cell among public names, else UNKNOWN or MISSING."""
        return self._column.codes(names, self.missing_values)

    def identifiers(self) -> tuple[NDArray[Any], Mask]:
        """The cells as identifiers and which of them are missing."""
        return self._column.identifiers(self.missing_values)

    def refuse(self, where: Mask, reason: str) -> None:
        """Note the cells of a mask; the cells themselves are private and are not repeated."""
        if where.any():
            self.faults.append(CellFault(name=self.name, rows=tuple(np.flatnonzero(where).tolist()), reason=reason))


def raise_faults(table: Table, faults: list[CellFault]) -> None:
    """One error about all cells that break a rule, by position and rule, if there are any."""
    number = sum(len(fault.rows) for fault in faults)
    if number == 1:
        raise InputError(f"{table.place(faults[0].rows[0], faults[0].name)}: {faults[0].reason}.")
    if number:
        told = " ".join(_say_fault(table, fault) for fault in faults)
        raise InputError(f"{table.source}: {number} cells break rules of the schema. {told}")


def _say_fault(table: Table, fault: CellFault) -> str:
    shown = ", ".join(table.position(row) for row in fault.rows[:MOST_PLACES])
    more = len(fault.rows) - MOST_PLACES
    rest = f" and {more} more" if more > 0 else ""
    rule = f" ({COUNTED})" if table.line is None else ""
    return f"Column {fault.name!r}, {shown}{rest}{rule}: {fault.reason}."


def name_with_indicator(name: str, indicator: bool) -> tuple[str, ...]:
    """The name of a column, and that of the feature which says that its cell is missing."""
    return (name, f"{name}=(missing)") if indicator else (name,)


def require_filling(name: str, rule: str | float, indicator: bool) -> None:
    """An indicator says of filled cells that they were missing, so that something fills them."""
    if indicator and rule in ("error", "drop-row"):
        raise InputError(
            f"columns.{name}.indicator: an indicator stands beside a value that fills in, and missing = {rule!r} fills "
            'nothing; write missing = "middle", for example.'
        )


def unknown(codes: IntArray) -> Mask:
    """Which codes are neither a name nor missing."""
    return np.asarray(codes == UNKNOWN, dtype=np.bool_)


def find_missing(codes: IntArray) -> Mask:
    """Which codes are missing."""
    return np.asarray(codes == MISSING, dtype=np.bool_)
