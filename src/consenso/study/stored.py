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
from consenso.schema.description import Features
from consenso.shards.stored import RowBatch, check_batches
from consenso.study.data import DataSection
from consenso.study.sources import code_targets
from consenso.tables.frames import Frames, open_frames

if TYPE_CHECKING:
    from consenso.estimators.people import People


@dataclass(frozen=True, eq=False)
class SchemaBatches:
    """Rows of features and targets of a table, as the schema maps them; records that it drops are not among them.

    weights: of the rows of each batch, where people have several.
    """

    frames: Frames
    data: DataSection
    rows: int
    weights: tuple[Array, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.data.plain_features)

    @property
    def count(self) -> int:
        """How many batches there are."""
        return self.frames.count

    def __iter__(self) -> Iterator[RowBatch]:
        return (self._map(frame, place) for place, frame in enumerate(self.frames))

    def batch(self, place: int) -> RowBatch:
        return self._map(self.frames.frame(place), place)

    def fingerprint(self) -> str:
        """That of the files."""
        return self.frames.fingerprint()

    def ids(self) -> list[NDArray[Any]]:
        """Whose the rows of each batch are, for whoever holds the table."""
        found = [self._features(frame, place).users for place, frame in enumerate(self.frames)]
        return [each for each in found if each is not None]

    def _map(self, frame: Any, place: int) -> RowBatch:
        X, y, _ = self._features(frame, place)
        assert y is not None
        return RowBatch(X, code_targets(self.data, y), None if self.weights is None else self.weights[place])

    def _features(self, frame: Any, place: int) -> Features:
        assert self.data.schema is not None
        schema = self.data.schema.require_public().without_intercept()
        return schema.features(self.frames.table(frame, place))


def is_stored(table: str | Path) -> bool:
    """Whether a study reads a table in batches: a pattern of names, a folder, or Arrow files."""
    name = str(table)
    return any(letter in name for letter in "*?[") or not Path(name).suffix or name.endswith((".arrow", ".ipc"))


def open_table(data: DataSection, path: Path) -> SchemaBatches:
    """A table of a study, read once to see that every cell is as the schema says."""
    batches = SchemaBatches(open_frames(path, as_text=True), data, 0)
    return dataclasses.replace(batches, rows=check_batches(batches))


def weigh_table(table: SchemaBatches) -> tuple[SchemaBatches, People]:
    """The table with weights by which every person counts once; ids are read whole, rows are not."""
    from consenso.estimators.people import read_people  # with scikit-learn, which is slow to import

    ids = table.ids()
    people = read_people("Study", np.concatenate(ids), table.rows, 1)
    ends = np.cumsum([len(each) for each in ids])[:-1]
    return dataclasses.replace(table, weights=tuple(np.split(people.spread(table.rows), ends))), people
