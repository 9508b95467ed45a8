"""CSV files.

Polars splits files without quotes; Python's csv module, whose rules for quotes are exact, reads the others and finds
the line of whatever is wrong. Every cell stays text, since "01" and "1" may be two categories.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from consenso.errors import InputError
from consenso.tables.columns import SeriesColumn
from consenso.tables.content import read_text
from consenso.tables.table import Table, require_width


def read_csv(path: str | Path, *, names: Sequence[str] | None = None, separator: str = ",") -> Table:
    """Read a CSV file, also compressed as .gz.

    Without `names` the first line is the header; with `names` the file has no header. Blank lines are skipped.
    """
    path = Path(path)
    text = read_text(path)
    polars = import_polars(path)
    header = _header(path, text, separator, names)
    columns = None
    # A bare carriage return ends a line for the csv module and not for Polars.
    if '"' not in text and text.count("\r") == text.count("\r\n"):
        columns = _split(polars, text, header, separator, named=names is None)
    if columns is None:
        columns = _parse(polars, path, text, header, separator, named=names is None)

    def line(row: int) -> int:
        # Only errors ask, so the file is read again instead of keeping a line number for every record.
        start = 1 if names is None else 0
        for position, (number, _) in enumerate(_records(path, read_text(path), separator)):
            if position == row + start:
                return number
        raise InputError(f"{path}: the file changed while it was read; read it again.")

    rows = len(columns[0]) if columns else 0
    cells = {name: SeriesColumn(series=series) for name, series in zip(header, columns, strict=True)}
    return Table(source=str(path), columns=cells, rows=rows, line=line).require_rows()


def import_polars(path: Path) -> Any:
    """Polars, or an error that says how to get it."""
    try:
        import polars
    except ImportError:
        raise InputError(
            f"{path}: reading CSV and Parquet files needs Polars; run pip install 'consenso[data]'."
        ) from None
    return polars


def _header(path: Path, text: str, separator: str, names: Sequence[str] | None) -> list[str]:
    stripped = text.lstrip("\r\n")
    first = stripped.split("\n", 1)[0].rstrip("\r")
    require_width(str(path), first.count(separator) + 1)
    if "\r" in first:
        raise InputError(f"{path}: lines end with a bare carriage return; convert them to line feeds.")
    number, header = next(_records(path, text, separator))
    if names is not None:
        return list(names)
    header = [name.strip() for name in header]
    seen: dict[str, int] = {}
    for position, name in enumerate(header, start=1):
        # Names are not repeated: without a header the first record would stand here.
        if not name:
            raise InputError(f"{path}, line {number}: column {position} has no name; name it in the header.")
        if name in seen:
            raise InputError(
                f"{path}, line {number}: columns {seen[name]} and {position} have the same name; rename one of them."
            )
        seen[name] = position
    return header


def _records(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The records that are not blank, each with the line on which it starts."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    before = 0
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error:
            raise InputError(
                f"{path}, line {before + 1}: a quoted cell is not closed properly, or longer than "
                f"{csv.field_size_limit():,} characters; close the quote and double quotes within it."
            ) from None
        if record:
            yield before + 1, record
        before = reader.line_num


def _split(polars: Any, text: str, header: list[str], separator: str, *, named: bool) -> list[Any] | None:
    """The columns by plain splitting, or None when a line may be short, long or blank."""
    body = text.strip("\r\n") + "\n"
    if named:
        body = body.split("\n", 1)[1]
    if not body.strip("\r\n"):
        return [polars.Series([], dtype=polars.String) for _ in header]
    try:
        frame = polars.read_csv(
            body.encode(),
            has_header=False,
            separator=separator,
            quote_char=None,
            infer_schema=False,
        )
    except polars.exceptions.PolarsError:
        return None
    if frame.width != len(header) or frame.to_series(frame.width - 1).null_count():
        return None
    return list(frame.get_columns())


def _parse(polars: Any, path: Path, text: str, header: list[str], separator: str, *, named: bool) -> list[Any]:
    """The columns by the csv module; a line with too few or too many cells is an error."""
    records = _records(path, text, separator)
    if named:
        next(records)
    rows = []
    for number, record in records:
        if len(record) != len(header):
            raise InputError(
                f"{path}, line {number}: a record has {len(header)} cells, and {len(record)} were found; "
                "complete the line, or quote a cell that holds the separator."
            )
        rows.append(record)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return [polars.Series(cells, dtype=polars.String) for cells in columns]


def _read_tsv(path: str | Path) -> Table:
    return read_csv(path, separator="\t")


READERS = {**dict.fromkeys((".csv", ".csv.gz"), read_csv), **dict.fromkeys((".tsv", ".tsv.gz"), _read_tsv)}
