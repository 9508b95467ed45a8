"""libsvm files: a label and index:value pairs on each line, indices from 1."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.tables.columns import ArrayColumn
from consenso.tables.content import read_text
from consenso.tables.table import Table, require_width

#: More cells than this are not written out as columns.
MOST_CELLS = 200_000_000


def read_libsvm(path: str | Path, *, features: int | None = None) -> tuple[Any, Array]:
    """The rows as a CSR matrix (rows, features) and the labels (rows,) of a libsvm file, also compressed as .gz.

    `features` is the public number of features; without it the largest index of the file is taken, which depends on
    the data.
    """
    path = Path(path)
    return parse_libsvm(path, read_text(path).encode(), features)


def parse_libsvm(
    path: Path, text: bytes, features: int | None, before: Callable[[], int] = lambda: 0
) -> tuple[Any, Array]:
    """The rows and labels of lines of a file; before: how many lines there are before them."""
    from sklearn.datasets import load_svmlight_file

    try:
        rows, labels = load_svmlight_file(io.BytesIO(text), zero_based=False, n_features=features)
    except (ValueError, OverflowError):
        # The message of the parser repeats the cell that it could not read.
        raise _explain(path, text.decode(errors="replace"), features, before()) from None
    return rows, np.asarray(labels, dtype=np.float64)


def libsvm_table(path: Path, features: int | None = None) -> Table:
    """A libsvm file as the columns "label", "1", "2", ..."""
    rows, labels = read_libsvm(path, features=features)
    return write_out(path, rows, labels, lambda: number_records(read_text(path))).require_rows()


def number_records(text: str) -> list[int]:
    """The lines that hold records, from 1 on."""
    return [number for number, line in enumerate(text.splitlines(), start=1) if _pairs(line) is not None]


def write_out(path: Path, rows: Any, labels: Array, lines: Callable[[], list[int]]) -> Table:
    """Compressed rows as columns. lines: where the records stand, which is asked for where one is to be named."""
    require_width(str(path), rows.shape[1])
    if rows.shape[0] * rows.shape[1] > MOST_CELLS:
        raise InputError(
            f"{path}: a table has at most {MOST_CELLS:,} cells, and this file has {rows.shape[0]:,} x "
            f"{rows.shape[1]:,}; use consenso.tables.read_libsvm, which keeps it sparse."
        )
    dense = rows.toarray().T
    present = np.zeros(rows.shape[0], dtype=np.bool_)
    columns = {"label": ArrayColumn(values=labels, absent=present)}
    for position, cells in enumerate(dense, start=1):
        columns[str(position)] = ArrayColumn(values=cells, absent=present)
    return Table(source=str(path), columns=columns, rows=rows.shape[0], line=lambda row: lines()[row])


def _pairs(line: str) -> list[str] | None:
    """The label and the pairs of a line, or None for a blank line or a comment."""
    return line.split("#", 1)[0].split() or None


def _explain(path: Path, text: str, features: int | None, before: int) -> InputError:
    for number, line in enumerate(text.splitlines(), start=before + 1):
        parts = _pairs(line)
        fault = _fault(parts, features) if parts else None
        if fault:
            return InputError(f"{path}, line {number}: {fault}.")
    return InputError(f"{path}: not a libsvm file; a line is a label followed by index:value pairs.")


def _fault(parts: list[str], features: int | None) -> str | None:
    try:
        float(parts[0])
    except ValueError:
        return "a line starts with a label that is a number; write one number first"
    last = 0
    for pair in parts[1:]:
        index, colon, value = pair.partition(":")
        try:
            position, _ = int(index), float(value)
        except ValueError:
            return "a feature is written index:value with numbers; correct the pair"
        if not colon or position < 1:
            return "indices count from 1; add one to every index"
        if position <= last:
            return "indices rise along a line and appear once; sort them"
        if features is not None and position > features:
            return f"an index is at most the {features} features stated; raise features or correct the line"
        last = position
    return None


SUFFIXES = (".libsvm", ".svm", ".svmlight")
READERS = {f"{end}{packed}": libsvm_table for end in SUFFIXES for packed in ("", ".gz")}
