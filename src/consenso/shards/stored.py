"""Rows that stay in storage and are read in batches, as often as an algorithm adds them up.

Nothing but the current batch, the next one and a few numbers for each row is held in memory. An algorithm that touches
its rows through `Cohort.add_up` alone (it says so by `adds_up_only`) runs on them unchanged, and gives the same model
to the last bit, because what it adds up are whole numbers.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, name_row
from consenso.problem import Problem
from consenso.rows import BLOCK_NUMBERS, Layout, Rows
from consenso.shards.cohort import Cohort
from consenso.shards.constant import with_constant
from consenso.shards.intake import bound_rows, bound_targets, check_matrix
from consenso.shards.row_states import RowStates
from consenso.shards.shards import Shards
from consenso.threads import read_ahead


class RowBatch(NamedTuple):
    """Some rows: features, targets as the loss takes them, and weights where rows have any."""

    X: Any
    targets: NDArray[Any]
    weights: Array | None = None


@runtime_checkable
class RowBatches(Protocol):
    """A table in storage: rows of features and targets as the loss takes them, in the same order in every pass."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def count(self) -> int:
        """How many batches there are."""
        ...

    def __iter__(self) -> Iterator[RowBatch]: ...

    def batch(self, place: int) -> RowBatch:
        """One batch; for storage that can only be read in order, an InputError."""
        ...

    def fingerprint(self) -> str:
        """Tells stored rows in their order from others; empty if storage cannot tell, an error if they changed."""
        ...


def read(batches: RowBatches) -> Iterator[RowBatch]:
    """One pass, the next batch being read while one is worked on: by a thread, unless storage does so by itself."""
    own = getattr(batches, "reads_ahead", False)
    return iter(batches) if own else read_ahead(iter(batches))


def require_same(before: str, now: str, source: str) -> str:
    """Refuse rows that are not those that were opened."""
    if now != before:
        raise InputError(f"{source}: it changed while it was read; put it back as it was, and resume or start again.")
    return now


@dataclass(frozen=True, eq=False)
class ArrayBatches:
    """Arrays in storage, such as NumPy memory maps."""

    X: NDArray[Any]
    targets: NDArray[Any]
    weights: Array | None = None

    @cached_property
    def _opened(self) -> str:
        return self._state()

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def _length(self) -> int:
        return max(1, 8 * BLOCK_NUMBERS // max(1, self.shape[1]))

    @property
    def count(self) -> int:
        """How many batches there are."""
        return -(-self.shape[0] // self._length)

    def __iter__(self) -> Iterator[RowBatch]:
        return (self.batch(place) for place in range(self.count))

    def batch(self, place: int) -> RowBatch:
        """One batch, read into memory."""
        rows = slice(place * self._length, (place + 1) * self._length)
        weights = None if self.weights is None else self.weights[rows]
        return RowBatch(np.array(self.X[rows]), np.array(self.targets[rows]), weights)

    def fingerprint(self) -> str:
        """That of the file that is mapped."""
        return require_same(self._opened, self._state(), "the memory map")

    def _state(self) -> str:
        name = getattr(self.X, "filename", None)
        if name is None:
            return ""
        state = os.stat(name)
        return f"{state.st_size}:{state.st_mtime_ns}"


@dataclass(frozen=True, kw_only=True)
class Intake:
    """What is done to a batch before it is a part of a cohort: public rules for each row by itself."""

    problem: Problem
    party: int = 0
    bound: float | None = None  # of the features, without the constant column
    constant: float | None = None
    single: bool = False  # as for `with_constant`

    def cohort(self, batch: RowBatch, remembered: MutableMapping[str, Array] | None = None) -> Cohort:
        """The rows of a batch, bounded, with what is remembered of them."""
        X, given, weights = batch
        if self.constant is not None:
            assert self.bound is not None
            X = with_constant(X, self.bound, self.constant, "batch", single=self.single)
        matrix = check_matrix(X, self.problem.features, "batch")
        targets, _ = bound_targets(given, self.problem, matrix.shape[0], "batch")
        # A batch was read for this pass, and nobody else has it.
        matrix, squared, _ = bound_rows(matrix, self.problem.row_bound, "batch", in_place=True)
        rows = Rows(matrix, Layout(np.array([0, matrix.shape[0]])), self.problem.outputs)
        here = np.array([self.party])
        known = {} if remembered is None else remembered
        return Cohort(self.problem, here, squared, rows, targets, weights, _remembered=known)


@dataclass(frozen=True, eq=False, repr=False)
class StoredCohort(Cohort):
    """A party whose rows are in storage."""

    # What a cohort in memory has is not there.
    squared_norms: Array = field(init=False)
    _rows: Rows = field(init=False)
    _targets: NDArray[Any] = field(init=False)
    batches: RowBatches = field(kw_only=True)
    intake: Intake = field(kw_only=True)
    parts: RowStates = field(default_factory=RowStates, kw_only=True)
    #: Told the rows of every batch that a pass has added up, for whoever shows progress.
    watch: Callable[[int], None] | None = field(default=None, kw_only=True)

    def __getattr__(self, name: str) -> Any:
        if name in ("squared_norms", "_rows", "_targets"):
            raise InputError(
                "rows in storage: only algorithms that add up their rows run on them; read the table into memory, or "
                "take solver='preconditioned'."
            )
        raise AttributeError(name)

    @property
    def rows(self) -> int:
        """How many rows the cohort has."""
        return self.batches.shape[0]

    @property
    def sizes(self) -> IntArray:
        """Rows of the party."""
        return np.array([self.rows])

    def add_up(self, term: Callable[..., IntArray], unit: float, *arguments: Any) -> Array:
        """One pass over the rows."""
        before, rows = self.batches.fingerprint(), 0
        total: Any = 0
        for place, batch in enumerate(read(self.batches)):
            # A factor of other rows would be wrong: a batch is known by its place only where storage can tell that it
            # has not changed, and else by its content.
            part = self.intake.cohort(batch, self.parts.of(place if before else _digest(batch), self.batches.count))
            rows += part.rows
            total = total + term(part, *arguments)
            if self.watch is not None:
                self.watch(part.rows)
        self._require_same(before, rows)
        summed: Array = np.multiply(total, unit, dtype=np.float64)
        return summed

    def _require_same(self, before: str, rows: int) -> None:
        """Refuse a pass over rows that changed meanwhile, or were not as many as before."""
        require_same(f"{before}:{self.rows}", f"{self.batches.fingerprint()}:{rows}", "rows in storage")

    def keyed_digest(self, key: bytes) -> str:
        """A hash of the rows, their order and their targets that tells nothing without the key."""
        rows, rest = hmac.new(key, digestmod="sha256"), hmac.new(key, digestmod="sha256")
        for batch in read(self.batches):
            rows.update(_bytes(batch.X))
            rest.update(batch.targets.tobytes())
            rest.update(b"" if batch.weights is None else batch.weights.tobytes())
        return hmac.new(key, rows.digest() + rest.digest(), digestmod="sha256").hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class StoredShards(Shards):
    """The rows of one party in storage."""

    _rows: Rows = field(init=False)
    _targets: NDArray[Any] = field(init=False)
    _squared_norms: Array = field(init=False)
    _scaled_rows: int = field(init=False)
    _clipped_targets: int = field(init=False)
    whole: StoredCohort = field(kw_only=True)

    @classmethod
    def open(
        cls,
        problem: Problem,
        batches: RowBatches,
        *,
        bound: float | None = None,
        constant: float | None = None,
        single: bool = False,
        party: int = 0,
        units: int | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> StoredShards:
        """Shards of a table in storage. bound, constant: of the features, and of the column beside them.

        single: whether both are then in single precision. units: how many there are, where a unit has several rows.
        """
        rows, features = batches.shape
        rows = rows if units is None else units
        own, declared = problem.features - (constant is not None), problem.sizes[party]
        if features != own:
            raise InputError(f"rows in storage: {own} features are due, and there are {features}.")
        if problem.adjacency == "replace-one" and rows != declared:
            raise InputError(
                f"rows in storage: under replace-one their number is public and exact, {declared} were "
                f"declared and there are {rows}; declare what the table has."
            )
        if problem.adjacency == "add-remove" and problem.capped and rows > declared:
            raise InputError(
                f"rows in storage: at most {declared} were declared, and there are more; declare a larger "
                "public number."
            )
        intake = Intake(problem=problem, party=party, bound=bound, constant=constant, single=single)
        here = np.array([party])
        return cls(problem, here, whole=StoredCohort(problem, here, batches=batches, intake=intake, watch=watch))

    def __repr__(self) -> str:
        return f"StoredShards({self.problem.features} features)"

    def cohort(self, parties: Any = None) -> Cohort:
        """The one cohort that there is."""
        return self.whole

    @property
    def offsets(self) -> IntArray:
        """Where the rows of the party begin and end."""
        return np.array([0, self.whole.rows])


def require_adding_up(algorithm: object, shards: Shards) -> None:
    """Refuse rows in storage for an algorithm that touches them otherwise than by adding them up."""
    if isinstance(shards, StoredShards) and not getattr(algorithm, "adds_up_only", False):
        raise InputError(
            f"{type(algorithm).__name__} needs its rows in memory, and they are in storage; read the table first, or "
            "take PreconditionedFixedPoint or DualAveraging (solver='auto')."
        )


def check_batches(batches: RowBatches) -> int:
    """Read every batch once, so that whatever is wrong with one is said before anything is charged; how many rows."""
    rows = 0
    for batch in read(batches):
        rows += check_batch(batch, rows)
    return rows


def check_batch(batch: RowBatch, first: int, part: str = "") -> int:
    """Refuse cells that are no finite numbers; how many rows there are.

    first: the number of the first row. part: of which part of a table, where numbers begin anew in each.
    """
    X, targets, _ = batch
    cells = X.data if sparse.issparse(X) else X
    if not (np.isfinite(cells).all() and (targets.dtype.kind != "f" or np.isfinite(targets).all())):
        own = X.tocoo() if sparse.issparse(X) else None
        bad = np.nonzero(~np.isfinite(cells)) if own is None else (own.coords[0][~np.isfinite(own.data)],)
        wrong = [*bad[0].tolist(), *np.flatnonzero(~np.isfinite(targets)).tolist()]
        raise InputError(
            f"rows in storage, {part}{name_row(first + min(wrong))}: cells are finite numbers, and one is not; drop or "
            "fill that record."
        )
    return int(X.shape[0])


def _digest(batch: RowBatch) -> str:
    found = hashlib.sha256(_bytes(batch.X))
    found.update(batch.targets.tobytes())
    return found.hexdigest()


def _bytes(X: Any) -> bytes:
    if sparse.issparse(X):
        return b"".join(part.tobytes() for part in (X.data, X.indices, np.diff(X.indptr)))
    return bytes(np.ascontiguousarray(X).tobytes())
