"""Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from consenso.errors import InputError
from consenso.tables.columns import Column, SeriesColumn, column_of
from consenso.tables.content import read_bytes
from consenso.tables.delimited import import_polars
from consenso.tables.table import Table, require_width


def read_parquet(path: str | Path) -> Table:
    """Read a Parquet file."""
    path = Path(path)
    polars = import_polars(path)
    raw = read_bytes(path)
    try:
        frame = polars.read_parquet(raw)
    except (polars.exceptions.PolarsError, OSError):
        raise InputError(f"{path}: not a complete Parquet file; write it again.") from None
    require_width(str(path), frame.width)
    columns = {series.name: parquet_column(path, series) for series in frame.get_columns()}
    return Table(source=str(path), columns=columns, rows=frame.height).require_rows()


def parquet_column(path: Path, series: Any) -> Column:
    """A Polars series as a column."""
    polars = import_polars(path)
    if series.dtype.is_nested() or series.dtype == polars.Binary:
        raise InputError(f"{path}: column {series.name!r} holds lists or bytes; store one number or text in each cell.")
    if series.dtype.is_decimal():
        series = series.cast(polars.Float64)
    if series.dtype.is_numeric() or series.dtype == polars.Boolean:
        # Nulls are filled apart from the values, so that large integers stay exact.
        filled = series.fill_null(False if series.dtype == polars.Boolean else 0)
        return column_of(filled.to_numpy(), name=series.name, source=str(path), absent=series.is_null().to_numpy())
    return SeriesColumn(series=series.cast(polars.String))


READERS = dict.fromkeys((".parquet", ".pq"), read_parquet)
