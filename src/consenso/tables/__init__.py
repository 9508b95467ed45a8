"""Reading tables: CSV, Parquet, NPZ and libsvm files as columns, with errors that name file, line and column.

No error of this package repeats a cell, because a cell is private and a message may end in a log.
"""

from __future__ import annotations

from consenso.tables.columns import MISSING, UNKNOWN, ArrayColumn, Column, Numbers, SeriesColumn, column_of
from consenso.tables.delimited import read_csv
from consenso.tables.formats import read_table
from consenso.tables.libsvm import read_libsvm
from consenso.tables.libsvm_files import LibsvmFiles, open_libsvm
from consenso.tables.npz import read_npz
from consenso.tables.parquet import read_parquet
from consenso.tables.table import Table

__all__ = [
    "MISSING",
    "UNKNOWN",
    "ArrayColumn",
    "Column",
    "LibsvmFiles",
    "Numbers",
    "SeriesColumn",
    "Table",
    "column_of",
    "open_libsvm",
    "read_csv",
    "read_libsvm",
    "read_npz",
    "read_parquet",
    "read_table",
]
