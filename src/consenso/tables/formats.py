"""Parquet and NPZ files, and the choice of a reader by the name of a file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from consenso.errors import InputError
from consenso.tables.columns import Column, SeriesColumn, column_of
from consenso.tables.content import read_bytes
from consenso.tables.delimited import import_polars, read_csv
from consenso.tables.libsvm import libsvm_table
from consenso.tables.table import Table, require_equal, require_width

LIBSVM = (".libsvm", ".svm", ".svmlight")


def read_table(path: str | Path, *, features: int | None = None) -> Table:
    """Read a table by the end of its name: .csv, .tsv, .parquet, .npz, .libsvm; .gz after .csv, .tsv and .libsvm.

    `features` is the public number of features of a libsvm file, where a column that is always zero leaves no trace.
    """
    path = Path(path)
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if kind == ".csv":
        return read_csv(path)
    if kind == ".tsv":
        return read_csv(path, separator="\t")
    if kind in LIBSVM:
        return libsvm_table(path, features)
    if path.suffix in {".parquet", ".pq"}:
        return read_parquet(path)
    if path.suffix == ".npz":
        return read_npz(path)
    raise InputError(f"{path}: a table is a .csv, .tsv, .parquet, .npz or .libsvm file; rename it after its format.")


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


def read_npz(path: str | Path) -> Table:
    """Read an NPZ file: an array (rows,) is a column, an array (rows, k) named X is the columns X_0, X_1, ..."""
    path = Path(path)
    columns: dict[str, Column] = {}
    sizes: dict[str, int] = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path.") from None
    except (ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile):
        raise InputError(
            f"{path}: not an NPZ file of plain arrays; write it with numpy.savez and without Python objects."
        ) from None
    require_width(str(path), sum(1 if array.ndim < 2 else array.shape[1] for array in arrays.values()))
    for name, array in arrays.items():
        if array.ndim not in {1, 2}:
            raise InputError(f"{path}: array {name!r} has {array.ndim} axes; store arrays (rows,) or (rows, columns).")
        sizes[name] = array.shape[0]
        parts = {name: array} if array.ndim == 1 else {f"{name}_{j}": array[:, j] for j in range(array.shape[1])}
        for part, cells in parts.items():
            if part in columns:
                raise InputError(f"{path}: two arrays give the column {part!r}; rename one of them.")
            columns[part] = column_of(cells, name=part, source=str(path))
    return Table(source=str(path), columns=columns, rows=require_equal(str(path), sizes)).require_rows()
