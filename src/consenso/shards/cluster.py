"""Rows on the workers of a Dask cluster, which are inside the trust of the party whose rows they are.

Workers hold batches and answer with whole numbers; the party adds them up and draws the noise, once. A worker that dies
costs the time to read its batches again on another: an answer is counted by the task that it belongs to, and a task
that is run again gives the same numbers, so that no row is lost or counted twice.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import math
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.problem import Problem
from consenso.shards.cohort import Cohort
from consenso.shards.stored import Intake, RowBatch, RowBatches, StoredCohort, StoredShards, require_same
from consenso.threads import read_ahead

#: How long a scheduler is waited for, in seconds.
PATIENCE = 15
#: Tasks of a pass for each thread of a worker at most, so that none waits long for the last; batches of a task at most.
TASKS, MOST_BATCHES = 4, 64
#: Numbers that a task is worth: adding them up takes about five times as long as Dask takes for a task.
TASK_NUMBERS = 1 << 24
#: Bytes that go with every task of a pass, rather than with a task of their own.
SHORT_MESSAGE = 1 << 16
#: What workers on this machine are started with: a thread of linear algebra for each process.
ONE_THREAD = {f"{library}_NUM_THREADS": 1 for library in ("OMP", "MKL", "OPENBLAS")}
ASSUMPTION = (
    "Rows are held by the workers of a Dask cluster, which are trusted as the curator is: whoever controls a worker or "
    "the scheduler sees them."
)


@dataclass(frozen=True, eq=False, repr=False)
class ClusterCohort(StoredCohort):
    """A party whose rows are held by workers."""

    client: Any = field(kw_only=True)
    held: tuple[Any, ...] = field(kw_only=True)  # futures of lists of cohorts, one cohort for each batch

    def add_up(self, term: Callable[..., IntArray], unit: float, *arguments: Any) -> Array:
        """Every worker adds up what it holds."""
        before = self.batches.fingerprint()
        # Where it is long, a task, which travels to a worker once. Not scattered data: those would be lost with the
        # worker that holds them. Where it is short, that task would cost more time than it saves.
        given: Any = (term, arguments)
        if len(pickle.dumps(given)) > SHORT_MESSAGE:
            given = self.client.submit(_give, term, arguments, pure=False)
        tasks = self.client.map(_add_up, self.held, given=given, pure=False)
        total: Any = 0
        rows = 0
        with _explain_losses() as dask:
            for _, (counted, found) in dask.as_completed(tasks, with_results=True):
                rows, total = rows + counted, total + found
                if self.watch is not None:
                    self.watch(counted)
        self._require_same(before, rows)
        summed: Array = np.multiply(total, unit, dtype=np.float64)
        return summed


@runtime_checkable
class ClusterBatches(RowBatches, Protocol):
    """Batches that the workers of a cluster hold already, such as those of a Dask data frame."""

    @property
    def client(self) -> Any:
        """Who talks to the scheduler."""
        ...


def hold_batches(problem: Problem, batches: RowBatches, **intake: Any) -> StoredShards:
    """Shards of batches where they are: in storage, or on the workers that hold them."""
    if isinstance(batches, ClusterBatches):
        return hold_rows(batches.client, problem, batches, **intake)
    return StoredShards.open(problem, batches, **intake)


def sum_batches(records: RowBatch | RowBatches, term: Callable[[RowBatch], Array]) -> Array:
    """What a term gives for the rows, summed over all batches where they are; exact for whole numbers.

    term: a function of a module, or a partial one.
    """
    if isinstance(records, RowBatch):
        return term(records)
    if isinstance(records, ClusterBatches):
        client = records.client
        told = client.submit(_give, records, term, pure=False)
        tasks = [client.submit(_measure, told, place, pure=False) for place in range(records.count)]
        with _explain_losses():
            found: Array = sum(client.gather(tasks))
        return found
    before = records.fingerprint()
    total: Any = 0
    for batch in read_ahead(iter(records)):
        total = total + term(batch)
    require_same(before, records.fingerprint(), "rows in storage")
    summed: Array = total
    return summed


def hold_rows(
    client: Any,
    problem: Problem,
    batches: RowBatches,
    **intake: Any,
) -> StoredShards:
    """The shards of a party whose batches are read, and then held, by the workers of a cluster.

    intake: as for `StoredShards.open`.
    """
    local = StoredShards.open(problem, batches, **intake)
    # Batches and rules travel once, not with every task.
    told = client.submit(_give, batches, local.whole.intake, pure=False)
    # A task costs a few milliseconds, whatever it does: as many for each thread as are worth it.
    workers = client.nthreads()
    threads = max(1, sum(workers.values()))
    for_each = min(max(1, math.prod(batches.shape) // (threads * TASK_NUMBERS)), TASKS)
    tasks = max(for_each * threads, -(-batches.count // MOST_BATCHES))
    groups = np.array_split(np.arange(batches.count), min(tasks, batches.count))
    # Dask would rather have few tasks where the rules are already. Other workers may have them where one is lost.
    turns = itertools.cycle(sorted(workers) or [None])
    held = tuple(
        client.submit(_read, told, group.tolist(), pure=False, workers=next(turns), allow_other_workers=bool(workers))
        for group in groups
    )
    whole = ClusterCohort(
        problem,
        local.parties,
        batches=batches,
        intake=local.whole.intake,
        client=client,
        held=held,
        watch=local.whole.watch,
    )
    return StoredShards(problem, local.parties, whole=whole)


def current_client() -> Any:
    """The client that this process has, or None."""
    try:
        return _import_dask().get_client()
    except ValueError:
        return None


@contextlib.contextmanager
def connect(address: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address, with the TLS that Dask is configured for.

    Without an address, of two processes on this machine that are stopped at the end.
    """
    dask = _import_dask()
    if address is None:
        # Without an address of its own Dask's page would ask for port 8787, which another cluster may have.
        own = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "host": "127.0.0.1"}
        with (
            _keep_environment(),
            # Dask's workers would give memory back to the system at once, which takes a third of a pass.
            importlib.import_module("dask").config.set({"distributed.nanny.pre-spawn-environ": ONE_THREAD}),
            dask.LocalCluster(
                **own, dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}
            ) as cluster,
            dask.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = dask.Client(address, timeout=PATIENCE)
    # Dask has a TypeError where it is configured for no certificates, a RuntimeError where it must encrypt and cannot.
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"--scheduler {address}: no Dask scheduler answered within {PATIENCE} s ({type(error).__name__}); start "
            "one with `dask scheduler`, or check the address and its certificates."
        ) from None
    with client:
        yield client


@contextlib.contextmanager
def _keep_environment() -> Iterator[None]:
    """Take back what Dask sets for its workers, which programs that this one starts later would be slowed down by."""
    names = {*ONE_THREAD, "PYTHONHASHSEED", "__DASK_PARENT_PID"}
    before = {name: os.environ[name] for name in names & set(os.environ)}
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)


@contextlib.contextmanager
def _explain_losses() -> Iterator[Any]:
    """Dask's package; a batch that no worker survives is an error that says what to do."""
    dask = _import_dask()
    try:
        yield dask
    except dask.KilledWorker:
        raise InputError(
            "cluster: a batch was lost with every worker that read it; give workers more memory, and resume."
        ) from None


def _import_dask() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise InputError("cluster: Dask is not installed; run pip install 'consenso[cluster]'.") from None


def _give(*told: Any) -> Any:
    return told


def _read(told: tuple[RowBatches, Intake], places: list[int]) -> list[Cohort]:
    batches, intake = told
    return [intake.cohort(batches.batch(place)) for place in places]


def _measure(told: tuple[RowBatches, Callable[[RowBatch], Array]], place: int) -> Array:
    batches, term = told
    return term(batches.batch(place))


def _add_up(parts: list[Cohort], given: tuple[Callable[..., IntArray], tuple[Any, ...]]) -> tuple[int, IntArray]:
    """On a worker: how many rows it has of some batches, and what they add up to."""
    term, arguments = given
    total: Any = 0
    for part in parts:
        total = total + term(part, *arguments)
    return sum(part.rows for part in parts), total
