"""Compiled loops over records, in as many threads as they are worth."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

# Starting and joining a thread takes about a tenth of this.
_WORTH_A_THREAD = 1e6


def run_in_threads(kernel: Callable[..., None], records: int, nanoseconds: float, *arguments: Any) -> None:
    """Call kernel(*arguments, first, last) over all records, each of which takes about `nanoseconds`.

    A kernel that releases the interpreter lock and treats records apart gives the same bits in any number of threads.
    The threads live as long as the call: unlike Numba's own, they survive forks and calls from several threads.
    """
    from numba import config

    workers = min(config.NUMBA_NUM_THREADS, 1 + int(records * nanoseconds / _WORTH_A_THREAD))
    if workers == 1:
        kernel(*arguments, 0, records)
        return
    edges = [records * i // workers for i in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(kernel, *arguments, first, last) for first, last in pairwise(edges)]:
            done.result()
