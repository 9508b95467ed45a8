"""Work that is shared among processes, none of which outlives an error or an interruption."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

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
    """The result of each task, in their order. prepare(*given) is called once in every process."""
    before = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=(prepare, given)) as pool:
        # Not `pool.map`, which cancels what is left over: a pool whose processes end then complains of it.
        waiting = [pool.submit(work, task) for task in tasks]
        try:
            for result in waiting:
                yield result.result()
        except BaseException:
            # A task may take minutes, and nobody waits for its result any more.
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise


def _begin(prepare: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; whoever shares the work ends it
    if prepare is not None:
        prepare(*given)
