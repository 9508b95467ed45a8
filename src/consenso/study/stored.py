"""A study's table in storage: a folder or a pattern of files, mapped by the public schema batch after batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.schema.description import Features
from consenso.shards.stored import RowBatch, check_batches
from consenso.study.data import DataSection
from consenso.study.sources import code_targets
from consenso.tables.frames import IN_MEMORY, SCANS, Frames, find_files, open_frames
from consenso.tables.libsvm import SUFFIXES
from consenso.tables.libsvm_files import LibsvmFiles, open_libsvm
from consenso.tables.table import Table

if TYPE_CHECKING:
    from consenso.estimators.people import People


@dataclass(frozen=True, eq=False)
class SchemaBatches:
    """Rows of features and targets of a table, as the schema maps them; records that it drops are not among them.

    weights: of the rows of each batch, where people have several.
    """

    source: Frames | LibsvmFiles
    data: DataSection
    rows: int
    weights: tuple[Array, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.data.plain_features)

    @property
    def count(self) -> int:
        """How many batches there are."""
        return self.source.count

    def __iter__(self) -> Iterator[RowBatch]:
        return (self._map(table, place) for place, table in enumerate(self.source.tables()))

    def batch(self, place: int) -> RowBatch:
        return self._map(self.source.table(place), place)

    def fingerprint(self) -> str:
        """That of the files."""
        return self.source.fingerprint()

    def ids(self) -> list[NDArray[Any]]:
        """Whose the rows of each batch are, for whoever holds the table."""
        found = [self._features(table).users for table in self.source.tables()]
        return [each for each in found if each is not None]

    def _map(self, table: Table, place: int) -> RowBatch:
        X, y, _ = self._features(table)
        assert y is not None
        return RowBatch(X, code_targets(self.data, y), None if self.weights is None else self.weights[place])

    def _features(self, table: Table) -> Features:
        assert self.data.schema is not None
        schema = self.data.schema.require_public().without_intercept()
        return schema.features(table)


def is_stored(table: str | Path, numbers: int) -> bool:
    """Whether a study reads a table in batches: a pattern of names, a folder, Arrow files, or a large file.

    numbers: how many it has, as far as that is public; 0 where batches are no choice of the study.
    """
    name, suffix = str(table), Path(table).suffix
    if any(letter in name for letter in "*?[") or not suffix or suffix in (".arrow", ".ipc"):
        return True
    return numbers > IN_MEMORY and suffix in (*SCANS, *SUFFIXES)


def open_table(data: DataSection, path: Path) -> SchemaBatches:
    """A table of a study, read once to see that every cell is as the schema says."""
    batches = SchemaBatches(_open_source(data, path), data, 0)
    return dataclasses.replace(batches, rows=check_batches(batches))


def _open_source(data: DataSection, path: Path) -> Frames | LibsvmFiles:
    if find_files(str(path), (*SCANS, *SUFFIXES))[0].suffix not in SUFFIXES:
        return open_frames(path, as_text=True)
    assert data.schema is not None
    features = data.schema.numbered_columns
    if features is None:
        raise InputError(f"{path}: columns of libsvm files are named label, 1, 2, ...; describe them so in the schema.")
    return open_libsvm(path, features=features)


def weigh_table(table: SchemaBatches) -> tuple[SchemaBatches, People]:
    """The table with weights by which every person counts once; ids are read whole, rows are not."""
    from consenso.estimators.people import read_people  # with scikit-learn, which is slow to import

    ids = table.ids()
    people = read_people("Study", np.concatenate(ids), table.rows, 1)
    ends = np.cumsum([len(each) for each in ids])[:-1]
    return dataclasses.replace(table, weights=tuple(np.split(people.spread(table.rows), ends))), people
