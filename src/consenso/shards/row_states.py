"""Numbers that belong to single rows in storage: they are kept beside the rows, not in memory.

The file has no name and goes with the process that opened it; nobody else can open it.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from consenso.arrays import Array


class RowStates:
    """What is remembered of batches of rows."""

    def __init__(self) -> None:
        self._known: dict[object, BatchState] = {}
        self._file: Any = None

    def of(self, key: object, batches: int) -> MutableMapping[str, Array]:
        """What is remembered of a batch, of at most twice as many as there are."""
        if self._file is None or (key not in self._known and len(self._known) > 2 * batches):
            self._known = {}
            self._file = tempfile.TemporaryFile(prefix="consenso-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        if key not in self._known:
            self._known[key] = BatchState(self._file)
        return self._known[key]


class BatchState(MutableMapping[str, Array]):
    """The last array that was set, under its name; the next of its length takes its place."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._name: str | None = None
        self._start, self._count = 0, -1

    def __setitem__(self, name: str, values: Array) -> None:
        if self._count != values.size:
            self._start, self._count = self._file.seek(0, os.SEEK_END), values.size
        self._file.seek(self._start)
        self._file.write(np.asarray(values, dtype=np.float64).tobytes())
        self._name = name

    def __getitem__(self, name: str) -> Array:
        if name != self._name:
            raise KeyError(name)
        self._file.seek(self._start)
        return np.frombuffer(self._file.read(8 * self._count), dtype=np.float64)

    def __delitem__(self, name: str) -> None:
        if name != self._name:
            raise KeyError(name)
        self._name = None

    def __contains__(self, name: object) -> bool:
        return name is not None and name == self._name

    def __iter__(self) -> Iterator[str]:
        return iter(() if self._name is None else (self._name,))

    def __len__(self) -> int:
        return int(self._name is not None)

    def clear(self) -> None:
        self._name = None
