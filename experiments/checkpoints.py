"""Checkpoints inside a cell that takes minutes: what it has come to so far, so that an interruption costs a minute.

`running` says where the checkpoint of the cell under way lies; the file's name holds the version of the code, so that
another version never goes on from it. Work that is called by itself has no place for one, and keeps none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from consenso.arrays import Array

SECONDS = 60.0  # between two checkpoints
SPENT = "seconds of work"


class Checkpoint:
    """The checkpoint of one cell; `seconds` is the processor time that went into it before this process."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.seconds = 0.0
        self._began = time.process_time()
        self._saved = time.monotonic()

    def load(self) -> dict[str, Array] | None:
        """The arrays that were saved last, if there are any."""
        if self.path is None or not self.path.is_file():
            return None
        with np.load(self.path) as kept:
            found = dict(kept)
        self.seconds = float(found.pop(SPENT))
        return found

    def is_due(self) -> bool:
        """Whether it is time to save again."""
        return self.path is not None and time.monotonic() - self._saved >= SECONDS

    def save(self, arrays: Mapping[str, Any]) -> None:
        """Written whole or not at all."""
        if self.path is None:
            return
        draft = self.path.with_suffix(f".{os.getpid()}.part.npz")
        np.savez(draft, **arrays, **{SPENT: self.seconds + time.process_time() - self._began})  # type: ignore[arg-type]
        draft.replace(self.path)
        self._saved = time.monotonic()


_under_way: list[Checkpoint] = []


def current() -> Checkpoint:
    """That of the cell under way in this process, or one that keeps nothing."""
    return _under_way[-1] if _under_way else Checkpoint(None)


@contextmanager
def kept_in(path: Path) -> Iterator[Checkpoint]:
    """The cell that runs inside has its checkpoint at `path`; it is removed when the cell has come to its end."""
    made = Checkpoint(path)
    _under_way.append(made)
    try:
        yield made
        path.unlink(missing_ok=True)
    finally:
        _under_way.pop()
