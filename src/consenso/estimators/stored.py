"""Tables that a fit reads in batches: files by a path or a pattern, queries, memory maps, and Dask data frames.

    PrivateLogisticRegression(epsilon=1.0, row_bound=3.0, classes=[0, 1]).fit("visits/*.parquet", "readmitted")

All columns but the target are features. What a batch holds is checked in one pass before anything is charged.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.errors import InputError
from consenso.shards.cluster import connect, current_client
from consenso.shards.stored import ArrayBatches, Batch, RowBatches, check_batch, check_batches
from consenso.tables.frames import Frames, is_stored, open_frames

# Numbers of a memory map that are read at once: 128 megabytes.
IN_MEMORY = 1 << 24


@dataclass(frozen=True, eq=False)
class TargetCoding:
    """Targets as a loss takes them: real numbers, or the places of labels among the public classes."""

    owner: str
    classes: NDArray[Any] | None

    def code(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets of a batch."""
        if self.classes is None:
            return np.asarray(y, dtype=np.float64)
        try:
            found = np.searchsorted(self.classes, y)
            known = self.classes[np.minimum(found, len(self.classes) - 1)] == y
        except TypeError:
            known = np.zeros(1, dtype=np.bool_)
        if not np.all(known):
            raise InputError(
                f"{self.owner}.fit(y=...): y has labels that are not among classes={self.classes.tolist()}; declare "
                "every label that may occur."
            )
        return np.where(found == 1, 1.0, -1.0) if len(self.classes) == 2 else found.astype(np.int64)


@dataclass(frozen=True, eq=False)
class FrameBatches:
    """Columns of a stored table as rows of features and targets."""

    frames: Frames
    features: tuple[str, ...]
    target: str
    coding: TargetCoding

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.frames.rows, len(self.features)

    @property
    def count(self) -> int:
        """How many batches there are."""
        return self.frames.count

    def __iter__(self) -> Iterator[Batch]:
        return map(self._split, self.frames)

    def batch(self, place: int) -> Batch:
        """One batch."""
        return self._split(self.frames.frame(place))

    def fingerprint(self) -> str:
        """That of the files."""
        return self.frames.fingerprint()

    def _split(self, frame: Any) -> Batch:
        source = self.frames.source
        if any(frame[name].null_count() for name in (*self.features, self.target)):
            raise InputError(f"{source}: cells are missing in a column that is used; drop those records, or fill them.")
        X = np.ascontiguousarray(frame.select(self.features).to_numpy())
        single = X.dtype == np.float32
        X = X if single else X.astype(np.float64, copy=False)
        return Batch(X, self.coding.code(frame[self.target].to_numpy()))


class DaskBatches:
    """The partitions of a Dask data frame, on the cluster of the current client or on two local processes."""

    def __init__(self, frame: Any, features: tuple[str, ...], target: str, coding: TargetCoding) -> None:
        self._frame, self._features, self._target, self._coding = frame, features, target, coding
        held = contextlib.ExitStack()
        self.client = current_client() or held.enter_context(connect(None))
        weakref.finalize(self, held.close)
        tasks = [self.client.submit(_check_partition, self, place, pure=False) for place in range(self.count)]
        self._rows = sum(self.client.gather(tasks))

    def __getstate__(self) -> dict[str, Any]:
        # Workers have no client.
        return {name: value for name, value in vars(self).items() if name != "client"}

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self._rows, len(self._features)

    @property
    def count(self) -> int:
        """How many partitions there are."""
        return int(self._frame.npartitions)

    def __iter__(self) -> Iterator[Batch]:
        return (self.batch(place) for place in range(self.count))

    def batch(self, place: int) -> Batch:
        """One partition, computed by whoever asks."""
        part = self._frame.partitions[place].compute(scheduler="synchronous")
        X = part[list(self._features)].to_numpy()
        X = X if X.dtype == np.float32 else X.astype(np.float64)
        return Batch(X, self._coding.code(part[self._target].to_numpy()))

    def fingerprint(self) -> str:
        """That of the graph that makes the frame."""
        return str(self._frame._name)


def _check_partition(batches: DaskBatches, place: int) -> int:
    return check_batch(batches.batch(place))


def opens(X: Any) -> bool:
    """Whether a fit would read this in batches; a small memory map is read as any array is."""
    return is_stored(X) or (isinstance(X, np.memmap) and X.size > IN_MEMORY) or _is_dask(X)


def _is_dask(X: Any) -> bool:
    return type(X).__module__.startswith(("dask.dataframe", "dask_expr")) and hasattr(X, "npartitions")


def open_rows(estimator: Any, X: Any, y: Any, classes: NDArray[Any] | None) -> RowBatches:
    """A table in storage as rows and targets; sets what scikit-learn keeps of the columns."""
    owner = type(estimator).__name__
    coding = TargetCoding(owner, classes)
    if estimator.row_bound is None or (classes is None and estimator.target_bound is None):
        raise InputError(
            f"{owner}(row_bound=None): bounds are not looked for in a table that is read in batches; give row_bound, "
            "and target_bound to a regressor."
        )
    if not np.isfinite(estimator.epsilon):
        raise InputError(f"{owner}(epsilon=inf): the exact fit needs its rows in memory; read the table first.")
    if isinstance(X, np.memmap):
        targets = np.asarray(y)
        if X.ndim != 2 or X.dtype.kind != "f" or targets.shape != X.shape[:1]:
            raise InputError(
                f"{owner}.fit(X=...): a memory map is a table of float32 or float64 numbers with one target per row, "
                f"but X is {X.dtype} of shape {X.shape} and y has the shape {targets.shape}."
            )
        estimator.n_features_in_ = int(X.shape[1])
        return _checked(ArrayBatches(X, coding.code(targets)))
    frames = None if _is_dask(X) else open_frames(X)
    kinds = _dask_kinds(X) if frames is None else frames.kinds
    if not isinstance(y, str) or y not in kinds:
        raise InputError(
            f"{owner}.fit(y={y if isinstance(y, str) else '...'!r}): of a table that is read in batches, y names the "
            f"column to be learnt; columns are {', '.join(list(kinds)[:8])}{', ...' if len(kinds) > 8 else ''}."
        )
    features = tuple(name for name in kinds if name != y)
    wrong = [name for name, kind in kinds.items() if name != y and not kind]
    if wrong or not features:
        raise InputError(
            f"{owner}.fit(X=...): features are columns of numbers, and {', '.join(wrong[:5]) or 'there is none'} is "
            "not; encode it first, or train a study with a schema."
        )
    estimator.n_features_in_ = len(features)
    estimator.feature_names_in_ = np.array(features, dtype=object)
    if frames is None:
        return DaskBatches(X, features, y, coding)
    return _checked(FrameBatches(frames, features, y, coding))


def require_memory(estimator: Any, X: Any, what: str) -> None:
    """Refuse what needs rows in memory for a table in storage."""
    if isinstance(X, RowBatches):
        raise InputError(f"{type(estimator).__name__}({what}=...): a table that is read in batches has none; read it.")


def _dask_kinds(frame: Any) -> dict[str, bool]:
    return {str(name): getattr(kind, "kind", "O") in "biuf" for name, kind in frame.dtypes.items()}


def _checked(batches: RowBatches) -> RowBatches:
    check_batches(batches)
    return batches
