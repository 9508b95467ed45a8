"""Parquet files that a query of DuckDB names, by a path, a pattern or a list of them.

DuckDB reads all files of a pattern with the types of the first one and casts the others. What a view or a table of the
database was made from is not seen here.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from pathlib import Path

_SUFFIXES = {".parquet", ".pq"}
_TEXT = r"'(?:[^']|'')*'"
_TEXTS = re.compile(rf"\[\s*{_TEXT}(?:\s*,\s*{_TEXT})*\s*\]|{_TEXT}")


def find_queried_files(query: str) -> Iterator[tuple[Path, ...]]:
    """The files that are read as one table, for each table of several Parquet files."""
    for texts in _TEXTS.findall(query):
        patterns = [text[1:-1].replace("''", "'") for text in re.findall(_TEXT, texts)]
        files = tuple(Path(path) for each in patterns for path in sorted(glob.glob(each, recursive=True)))
        if len(files) > 1 and {path.suffix for path in files} <= _SUFFIXES:
            yield files
