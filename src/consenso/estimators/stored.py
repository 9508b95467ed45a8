"""Tables that a fit reads in batches: files by a path or a pattern, queries, memory maps, and Dask data frames.

    PrivateLogisticRegression(epsilon=1.0, row_bound=3.0, classes=[0, 1]).fit("visits/*.parquet", "readmitted")

All columns but the target are features. What a batch holds is checked in one pass before anything is charged.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError, name_row
from consenso.estimators.people import People, read_people
from consenso.shards.cluster import connect, current_client
from consenso.shards.stored import ArrayBatches, RowBatch, RowBatches, check_batch, check_batches
from consenso.tables.frames import IN_MEMORY, Frames, is_stored, open_frames
from consenso.tables.libsvm_files import LibsvmFiles
from consenso.tables.table import require_records


@dataclass(frozen=True, eq=False)
class TargetCoding:
    """Targets as a loss takes them: real numbers, or the places of labels among the public classes."""

    owner: str
    classes: NDArray[Any] | None

    def code(self, y: NDArray[Any], first: int, part: str = "") -> NDArray[Any]:
        """Targets of a batch. first, part: where it begins, as in `check_batch`."""
        if self.classes is None:
            return self._read_numbers(y, first, part)
        two = len(self.classes) == 2
        try:
            # Of two classes the second is 1; comparing is a tenth of searching.
            found = (y == self.classes[1]).astype(np.int64) if two else np.searchsorted(self.classes, y)
            known = self.classes[np.minimum(found, len(self.classes) - 1)] == y
        except TypeError:
            known = np.zeros(1, dtype=np.bool_)
        if not np.all(known):
            raise InputError(
                f"{self.owner}.fit(y=...): y has labels that are not among classes={self.classes.tolist()}, the first "
                f"in {part}{name_row(first + int(np.argmin(known)))}; declare every label that may occur."
            )
        return np.where(found == 1, 1.0, -1.0) if two else found.astype(np.int64)

    def _read_numbers(self, y: NDArray[Any], first: int, part: str) -> Array:
        """Real targets; what a conversion says of a cell that is no number is not passed on."""
        if y.dtype.kind in "biuf":
            return np.asarray(y, dtype=np.float64)
        wrong = next((place for place, one in enumerate(y.tolist()) if not isinstance(one, int | float)), None)
        if wrong is None and y.dtype.kind == "O":
            return np.asarray(y, dtype=np.float64)
        raise InputError(
            f"{self.owner}.fit(y=...): targets are numbers, and {part}{name_row(first + (wrong or 0))} has none; drop "
            "such records, or give numbers, such as days since a public date."
        )


@dataclass(frozen=True, eq=False)
class FrameBatches:
    """Columns of a stored table as rows of features and targets."""

    frames: Frames
    features: tuple[str, ...]
    target: str
    coding: TargetCoding
    weights: Array | None = None  # of all rows, where people have several

    @property
    def shape(self) -> tuple[int, int]:
        return self.frames.rows, len(self.features)

    @property
    def count(self) -> int:
        """How many batches there are."""
        return self.frames.count

    @property
    def reads_ahead(self) -> bool:
        """Whether the next batch is decoded while one is worked on."""
        return self.frames.reads_ahead

    def __iter__(self) -> Iterator[RowBatch]:
        return (self._split(frame, place) for place, frame in enumerate(self.frames))

    def batch(self, place: int) -> RowBatch:
        return self._split(self.frames.frame(place), place)

    def fingerprint(self) -> str:
        """That of the files."""
        return self.frames.fingerprint()

    def _split(self, frame: Any, place: int) -> RowBatch:
        source = self.frames.source
        first = place * self.frames.length
        # Not `select`, which plans a query: that costs more than the columns of a batch.
        frame = frame[[*self.features, self.target]]
        for name, missing in zip(frame.columns, frame.null_count().row(0), strict=True):
            if missing:
                row = name_row(first + int(frame[name].is_null().arg_max()))
                raise InputError(f"{source}, {row}, column {name!r}: a cell is missing; drop that record, or fill it.")
        # Polars takes twice as long for rows as for columns that are then turned.
        X = np.ascontiguousarray(frame[list(self.features)].to_numpy(order="fortran"))
        X = X.astype(_float_type([X.dtype]), copy=False)
        weights = None if self.weights is None else self.weights[first : first + len(X)]
        return RowBatch(X, self.coding.code(frame[self.target].to_numpy(), first), weights)


@dataclass(frozen=True, eq=False)
class LibsvmBatches:
    """Pieces of libsvm files as compressed rows and targets."""

    files: LibsvmFiles
    coding: TargetCoding
    rows: int = 0
    sparse: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.files.features

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return self.files.count

    def __iter__(self) -> Iterator[RowBatch]:
        return map(self.batch, range(self.count))

    def batch(self, place: int) -> RowBatch:
        X, labels = self.files.read(place)
        return RowBatch(X, self.coding.code(labels, 0, f"piece {place}, "))

    def fingerprint(self) -> str:
        """That of the files."""
        return self.files.fingerprint()


class DaskBatches:
    """The partitions of a Dask data frame, on the cluster of the current client or on two local processes."""

    def __init__(self, frame: Any, features: tuple[str, ...], target: str, coding: TargetCoding) -> None:
        self._frame, self._features, self._target, self._coding = frame, features, target, coding
        held = contextlib.ExitStack()
        self.client = current_client() or held.enter_context(connect(None))
        weakref.finalize(self, held.close)
        tasks = [self.client.submit(_check_partition, self, place, pure=False) for place in range(self.count)]
        self._rows = sum(self.client.gather(tasks))
        require_records("the Dask data frame", self._rows)

    def __getstate__(self) -> dict[str, Any]:
        # Workers have no client.
        return {name: value for name, value in vars(self).items() if name != "client"}

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows, len(self._features)

    @property
    def count(self) -> int:
        """How many partitions there are."""
        return int(self._frame.npartitions)

    def __iter__(self) -> Iterator[RowBatch]:
        return (self.batch(place) for place in range(self.count))

    def batch(self, place: int) -> RowBatch:
        """One partition, computed by whoever asks."""
        part = self._frame.partitions[place].compute(scheduler="synchronous")
        # What a conversion says of a cell that is no number is not passed on.
        own, due = dict(part.dtypes), dict(self._frame.dtypes)
        if set(own) != set(due) or any(own[name] != due[name] for name in (*self._features, self._target)):
            raise InputError(
                f"partition {place} of the Dask data frame: its columns or their types are not those of the frame; "
                "make all partitions equal."
            )
        table = part[list(self._features)]
        X = table.to_numpy(dtype=_float_type(list(table.dtypes)), na_value=np.nan)  # a missing cell is refused
        return RowBatch(X, self._coding.code(part[self._target].to_numpy(), 0, f"partition {place}, "))

    def fingerprint(self) -> str:
        """That of the graph that makes the frame."""
        return str(self._frame._name)


def _float_type(kinds: list[Any]) -> type[np.float32] | type[np.float64]:
    """The type of rows whose columns have these types, by scikit-learn's rule for tables in memory."""
    plain = all(isinstance(kind, np.dtype) for kind in kinds)  # not those of pandas in which cells may be missing
    return np.float32 if plain and np.result_type(*kinds) == np.float32 else np.float64


def _check_partition(batches: DaskBatches, place: int) -> int:
    return check_batch(batches.batch(place), 0, f"partition {place}, ")


def opens(X: Any) -> bool:
    """Whether a fit would read this in batches; a small memory map is read as any array is."""
    return (
        isinstance(X, LibsvmFiles) or is_stored(X) or (isinstance(X, np.memmap) and X.size > IN_MEMORY) or _is_dask(X)
    )


def require_in_memory(estimator: Any, X: Any) -> None:
    """Refuse a table in storage where rows are to be predicted; memory maps are read as any array is."""
    if opens(X) and not isinstance(X, np.memmap):
        raise InputError(
            f"{type(estimator).__name__}.predict(X=...): rows to be predicted are in memory; read the table, or a part "
            "of it at a time."
        )


def _is_dask(X: Any) -> bool:
    return type(X).__module__.startswith(("dask.dataframe", "dask_expr")) and hasattr(X, "npartitions")


def open_rows(
    estimator: Any,
    X: Any,
    y: Any,
    classes: NDArray[Any] | None,
    users: Any,
    rows_per_person: int,
    *,
    reset: bool = True,
) -> tuple[RowBatches, People | None]:
    """A table in storage as rows and targets; sets what scikit-learn keeps of the columns.

    users: the name of the column of ids, or one id for each row of a memory map. reset: whether columns may be others
    than those of an earlier fit.
    """
    owner = type(estimator).__name__
    coding = TargetCoding(owner, classes)
    if not np.isfinite(estimator.epsilon):
        raise InputError(f"{owner}(epsilon=inf): the exact fit needs its rows in memory; read the table first.")
    if isinstance(X, np.memmap):
        targets = np.asarray(y)
        if X.ndim != 2 or X.dtype.kind != "f" or targets.shape != X.shape[:1]:
            raise InputError(
                f"{owner}.fit(X=...): a memory map is a table of float32 or float64 numbers with one target per row, "
                f"but X is {X.dtype} of shape {X.shape} and y has the shape {targets.shape}."
            )
        _keep_columns(estimator, int(X.shape[1]), None, reset=reset)
        people = None if users is None else read_people(owner, users, len(X), rows_per_person)
        weights = None if people is None else people.spread(len(X))
        return _check(ArrayBatches(X, coding.code(targets, 0), weights)), people
    if isinstance(X, LibsvmFiles):
        _keep_columns(estimator, X.features, None, reset=reset)
        return _open_libsvm(owner, X, y, coding, users), None
    frames = None if _is_dask(X) else open_frames(X)
    kinds = _dask_kinds(X) if frames is None else frames.kinds
    if not isinstance(y, str) or y not in kinds:
        raise InputError(
            f"{owner}.fit(y={y if isinstance(y, str) else '...'!r}): of a table that is read in batches, y names the "
            f"column to be learnt; columns are {', '.join(list(kinds)[:8])}{', ...' if len(kinds) > 8 else ''}."
        )
    people = None if users is None else _find_people(owner, frames, y, users, rows_per_person)
    features = tuple(name for name in kinds if name not in (y, users))
    wrong = [name for name in features if not kinds[name]]
    if wrong or not features:
        raise InputError(
            f"{owner}.fit(X=...): features are columns of numbers, and {', '.join(wrong[:5]) or 'there is none'} is "
            "not; encode it first, or train a study with a schema."
        )
    _keep_columns(estimator, len(features), features, reset=reset)
    if frames is None:
        return DaskBatches(X, features, y, coding), None
    weights = None if people is None else people.spread(frames.rows)
    return _check(FrameBatches(frames, features, y, coding, weights)), people


def _find_people(owner: str, frames: Frames | None, y: str, users: Any, rows_per_person: int) -> People:
    """Whose rows they are: of the table only the column of ids is read whole."""
    if frames is None or not frames.keeps_places:
        raise InputError(
            f"{owner}.fit(users=...): whose a row is is known by its place, which a query or a cluster does not keep; "
            "write the table to Parquet files."
        )
    if not isinstance(users, str) or users not in frames.names or users == y:
        raise InputError(
            f"{owner}.fit(users=...): of a table that is read in batches, users names the column of ids, and there is "
            "no such column beside the target."
        )
    return read_people(owner, frames.column(users), frames.rows, rows_per_person)


def _keep_columns(estimator: Any, many: int, names: tuple[str, ...] | None, *, reset: bool) -> None:
    """Keep the number of columns, and their names if they have any, or compare them with those that are kept."""
    if reset:
        estimator.n_features_in_ = many
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    kept = getattr(estimator, "feature_names_in_", None)
    if many != estimator.n_features_in_ or (names is not None and kept is not None and list(names) != list(kept)):
        raise InputError(
            f"{type(estimator).__name__}.partial_fit(X=...): the columns are not those of the calls before, of which "
            f"there are {estimator.n_features_in_}; give the same ones in the same order."
        )


def _open_libsvm(owner: str, X: LibsvmFiles, y: Any, coding: TargetCoding, users: Any) -> LibsvmBatches:
    if users is not None:
        raise InputError(f"{owner}.fit(users=...): libsvm files have no column of ids; write Parquet files with one.")
    if not (isinstance(y, str) and y == "label"):
        raise InputError(f"{owner}.fit(y=...): of libsvm files the labels are learnt; pass y='label'.")
    batches = LibsvmBatches(X, coding)
    X.fingerprint()
    return replace(batches, rows=check_batches(batches))


def _dask_kinds(frame: Any) -> dict[str, bool]:
    return {str(name): getattr(kind, "kind", "O") in "biuf" for name, kind in frame.dtypes.items()}


def _check(batches: RowBatches) -> RowBatches:
    batches.fingerprint()
    check_batches(batches)
    return batches
