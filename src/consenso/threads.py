"""Threads that live as long as a call: they share its work, or read what it needs next.

Unlike Numba's own they survive forks and calls from several threads. Where none can start, since a process that has
used up its memory has no room for a stack, the calling thread does everything, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from threading import Thread
from typing import Any, TypeVar

# Starting and joining a thread takes about a tenth of this, in nanoseconds.
_WORTH_A_THREAD = 1e6

Item = TypeVar("Item")


def run_together(calls: Sequence[Callable[[], object]]) -> None:
    """Make every call once, the first of them here, each other one in a thread; raises what the first to fail did."""
    raised: dict[int, BaseException] = {}

    def attempt(place: int) -> None:
        try:
            calls[place]()
        except BaseException as error:
            raised[place] = error

    mine, others = list(range(len(calls)))[:1], []
    for place in range(1, len(calls)):
        thread = Thread(target=attempt, args=(place,))
        try:
            thread.start()
        except RuntimeError:
            mine.append(place)
        else:
            others.append(thread)
    for place in mine:
        attempt(place)
    for thread in others:
        thread.join()
    if raised:
        raise raised[min(raised)]


def run_in_threads(kernel: Callable[..., None], records: int, nanoseconds: float, *arguments: Any) -> None:
    """Call kernel(*arguments, first, last) over all records, each of which takes about `nanoseconds`.

    A kernel that releases the interpreter lock and treats records apart gives the same bits in any number of threads.
    """
    from numba import config

    workers = min(config.NUMBA_NUM_THREADS, 1 + int(records * nanoseconds / _WORTH_A_THREAD))
    edges = pairwise(records * i // workers for i in range(workers + 1))
    run_together([partial(kernel, *arguments, *share) for share in edges])


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, none of them None, each read while the one before is worked on."""
    with ThreadPoolExecutor(1) as pool:
        try:
            coming = pool.submit(next, items, None)
        except RuntimeError:
            yield from items
            return
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
