"""libsvm files that stay on disk: pieces of whole lines, each read as compressed rows when it is needed.

files = open_libsvm("pages/*.libsvm", features=47_236)
PrivateLogisticRegression(epsilon=1.0, row_bound=1.0, classes=[-1, 1]).fit(files, "label")
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.tables.frames import find_files, fingerprint_files
from consenso.tables.libsvm import SUFFIXES, number_records, parse_libsvm, write_out
from consenso.tables.table import Table, require_records

#: Bytes of a piece, so that a few of them fit in any memory.
PIECE_BYTES = 1 << 23


@dataclass(frozen=True, kw_only=True)
class LibsvmFiles:
    """Rows and labels of libsvm files, in pieces."""

    source: str
    files: tuple[Path, ...]
    features: int
    pieces: tuple[tuple[int, int, int], ...]  # file, first byte, last byte
    opened: str

    def read(self, place: int) -> tuple[Any, Array]:
        """The rows of a piece as a CSR matrix (rows, features), and their labels."""
        file, start, _ = self.pieces[place]
        path = self.files[file]
        return parse_libsvm(path, self._text(place), self.features, before=lambda: _lines(path, start))

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return len(self.pieces)

    def tables(self) -> Iterator[Table]:
        """All pieces as columns, in their order."""
        return map(self.table, range(self.count))

    def table(self, place: int) -> Table:
        """A piece as the columns "label", "1", "2", ..., for a schema."""
        file, start, _ = self.pieces[place]
        path, rows = self.files[file], self.read(place)

        def find_lines() -> list[int]:
            before = _lines(path, start)
            return [before + number for number in number_records(self._text(place).decode(errors="replace"))]

        return write_out(path, *rows, find_lines)

    def _text(self, place: int) -> bytes:
        file, start, stop = self.pieces[place]
        with self.files[file].open("rb") as opened:
            opened.seek(start)
            return opened.read(stop - start)

    def fingerprint(self) -> str:
        """Of the files, which must be as they were opened."""
        now = fingerprint_files(self.files)
        if now != self.opened:
            raise InputError(f"{self.source}: it changed while it was read; put it back as it was, and resume.")
        return now


def open_libsvm(pattern: str | Path, *, features: int) -> LibsvmFiles:
    """Open libsvm files by a path, a folder or a pattern. features: their public number; indices count from 1."""
    if isinstance(features, bool) or not isinstance(features, int) or features < 1:
        raise InputError(
            f"open_libsvm(features={features!r}): the public number of features is a whole number above 0."
        )
    files = find_files(str(pattern), SUFFIXES)
    wrong = [path for path in files if path.suffix not in SUFFIXES]
    if wrong:
        raise InputError(
            f"{wrong[0]}: files that are read in pieces are named {', '.join(SUFFIXES)}; unpack or rename."
        )
    files = tuple(path.resolve() for path in files)  # workers of a cluster work in other folders
    opened = fingerprint_files(files)
    pieces = tuple(piece for place, path in enumerate(files) for piece in _pieces(place, path))
    require_records(str(pattern), len(pieces))
    return LibsvmFiles(source=str(pattern), files=files, features=features, pieces=pieces, opened=opened)


def _pieces(place: int, path: Path) -> list[tuple[int, int, int]]:
    """Pieces of a file that end where lines end."""
    size, ends = path.stat().st_size, [0]
    with path.open("rb") as opened:
        while ends[-1] < size:
            opened.seek(min(ends[-1] + PIECE_BYTES, size))
            opened.readline()
            ends.append(min(opened.tell(), size))
    return [(place, start, stop) for start, stop in pairwise(ends)]


def _lines(path: Path, stop: int) -> int:
    """How many lines come before a byte; only where one of them is to be named."""
    with path.open("rb") as opened:
        return opened.read(stop).count(b"\n")
