"""Work that is shared among processes, none of which outlives an error or an interruption."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from threadpoolctl import threadpool_info, threadpool_limits

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def count_processors() -> int:
    """How many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def share_among(
    work: Callable[[_Task], _Result],
    tasks: Iterable[_Task],
    workers: int,
    *,
    prepare: Callable[..., None] | None = None,
    given: tuple[Any, ...] = (),
) -> Iterator[_Result]:
    """The result of each task, in their order. prepare(*given) is called once in every process.

    Each process has its share of the processors: as many threads of linear algebra in each as there are processors
    would wait for each other, which took twice the processor time.
    """
    before = set(multiprocessing.active_children())
    threads = max(1, count_processors() // workers)
    pool = ProcessPoolExecutor(workers, initializer=_begin, initargs=(threads, prepare, given))
    try:
        # Not `pool.map`, which cancels what is left over: a pool whose processes end then complains of it.
        waiting = [pool.submit(work, task) for task in tasks]
        for result in waiting:
            yield result.result()
    except BaseException:
        # A task may take minutes, and nobody waits for its result any more.
        _end(pool, before)
        raise
    pool.shutdown()


def _end(pool: ProcessPoolExecutor, before: set[BaseProcess]) -> None:
    """Terminate the processes of a pool, however often Ctrl-C is pressed meanwhile."""
    is_main = threading.current_thread() is threading.main_thread()  # others hear no signals
    try:
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if is_main else None
    except KeyboardInterrupt:
        return _end(pool, before)
    for child in set(multiprocessing.active_children()) - before:
        child.terminate()
    pool.shutdown()
    if is_main:
        signal.signal(signal.SIGINT, handler)
    return None


def _begin(threads: int, prepare: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; whoever shares the work ends it
    threadpool_limits({pool["prefix"]: min(threads, pool["num_threads"]) for pool in threadpool_info()})
    if "numba" in sys.modules:
        settings = sys.modules["numba"].config
        settings.NUMBA_NUM_THREADS = min(threads, settings.NUMBA_NUM_THREADS)
    else:
        os.environ.setdefault("NUMBA_NUM_THREADS", str(threads))
    if prepare is not None:
        prepare(*given)
