"""A table: named columns of equal length that know where they were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.errors import InputError, name_row
from consenso.tables.columns import Column, column_of

#: A wider table is refused before it is parsed: nobody states public bounds for so many columns by hand.
WIDEST = 100_000


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Table:
    """Columns by name, in the order of the file.

    `source` names the file in errors; `line` maps a row, counted from 0, to its line where the file has lines.
    """

    source: str
    columns: Mapping[str, Column]
    rows: int
    line: Callable[[int], int] | None = None
    first: int = 0  # rows of the source before these

    def __repr__(self) -> str:
        # The cells are private, and a representation ends in logs.
        return f"Table({self.source}: {self.rows} rows, {len(self.columns)} columns)"

    @staticmethod
    def from_arrays(columns: Mapping[str, Any], *, source: str = "table") -> Table:
        """A table of arrays in memory, one (rows,) array for each name."""
        built = {name: column_of(values, name=name, source=source) for name, values in columns.items()}
        sizes = {column.values.size for column in built.values()}
        if len(sizes) != 1:
            raise InputError(
                f"{source}: columns have one length, and {len(sizes)} lengths were given; pass equal ones."
            )
        return Table(source=source, columns=built, rows=int(next(iter(sizes))))

    def place(self, row: int, name: str) -> str:
        """Where a cell stands, for an error; `row` counts from 0."""
        where = name_row(self.first + row) if self.line is None else self.position(row)
        return f"{self.source}, {where}, column {name!r}"

    def position(self, row: int) -> str:
        """The number of a row or its line in the file; `row` counts from 0."""
        return f"row {self.first + row}" if self.line is None else f"line {self.line(row)}"

    def require_rows(self) -> Table:
        """The table itself, or an InputError when it has no row."""
        require_records(self.source, self.rows)
        return self


def require_records(source: str, rows: int) -> None:
    """Refuse a table without records."""
    if not rows:
        raise InputError(f"{source}: a table has at least one record, and none was found; check the file.")


def require_width(source: str, width: int) -> None:
    """Refuse a table that is too wide to describe."""
    if width > WIDEST:
        raise InputError(
            f"{source}: a table has at most {WIDEST:,} columns, and {width:,} were found; check the separator, "
            "or pass the rows as one array."
        )


def require_equal(source: str, sizes: Mapping[str, int]) -> int:
    """The common number of rows of named arrays."""
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InputError(f"{source}: arrays have one number of rows, and these differ ({told}); store equal ones.")
    return int(np.max([*sizes.values(), 0]))
