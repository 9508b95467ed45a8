"""How loops over parties are compiled and run.

A kernel does parties first..last and touches nothing of the others, so `run` can give ranges of parties to threads
without changing a bit of the result. Threads that release the lock are used rather than Numba's own parallel loops:
those abort a process that was forked after their first use.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numba
import numpy as np

from consenso.arrays import IntArray

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
# Below this many multiplications a call costs less than starting a thread.
WORTH_A_THREAD = 20_000_000


def compiled(kernel: Kernel) -> Kernel:
    """Compile without fast-math, so that sums keep their order; keep the result on disk where a folder allows it."""
    try:
        return numba.njit(nogil=True, cache=True)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(nogil=True)(kernel)  # type: ignore[no-any-return]


def run(kernel: Callable[..., None], offsets: IntArray, work_per_row: float, *arguments: Any) -> None:
    """Call kernel(*arguments, first, last) over all parties, in as many threads as the work is worth."""
    parties, rows = len(offsets) - 1, int(offsets[-1])
    workers = min(numba.config.NUMBA_NUM_THREADS, parties, int(rows * work_per_row / WORTH_A_THREAD) + 1)
    if workers <= 1:
        kernel(*arguments, 0, parties)
        return
    edges = [0, *np.searchsorted(offsets, np.arange(1, workers) * (rows // workers)).tolist(), parties]
    *others, own = pairwise(edges)
    with ThreadPoolExecutor(len(others)) as pool:
        shares = [pool.submit(kernel, *arguments, *share) for share in others]
        kernel(*arguments, *own)
        for share in shares:
            share.result()
