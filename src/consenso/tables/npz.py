"""NPZ files: named arrays as NumPy keeps them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from consenso.errors import InputError
from consenso.tables.columns import Column, column_of
from consenso.tables.table import Table, require_equal, require_width


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


READERS = {".npz": read_npz}
