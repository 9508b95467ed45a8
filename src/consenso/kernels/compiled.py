"""How loops over parties are compiled and run.

A kernel does parties first..last and touches nothing of the others, so `run` can give ranges of parties to threads
without changing a bit of the result. Threads that release the lock are used rather than Numba's own parallel loops:
those abort a process that was forked after their first use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from consenso.arrays import IntArray
from consenso.speedups import Kernel, branchless
from consenso.threads import run_together

# Below this many multiplications a call costs less than starting a thread.
WORTH_A_THREAD = 20_000_000


def compile_inlined(kernel: Kernel) -> Kernel:
    """A part of a kernel. A call would cost more than most of them: Numba counts references to arrays around it."""
    return branchless(kernel, forceinline=True)


@intrinsic
def at(typing_context: Any, vector: Any, start: Any) -> Any:
    """The address of an entry of a vector, for functions of `consenso.speedups.compile_block`."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(vector)(context, builder, arguments[0])
        return cgutils.get_item_pointer(context, builder, vector, array, [arguments[1]])

    return types.CPointer(types.float64)(vector, types.intp), emit


@compile_inlined
def put(values: Any, out: Any) -> None:
    """out[:] = values, of one length: Numba would compile the text of an error about shapes, which takes seconds."""
    for j in range(len(values)):
        out[j] = values[j]


def hold(kernel: Any, *constants: Any) -> Callable[..., Any]:
    """The kernel with its first arguments given. Numba looks at the types of those once, instead of in each call.

    The type of a function takes it long to tell: 0.2 milliseconds for a kernel that is given those of a loss.
    """
    known = tuple(map(numba.typeof, constants))
    found: dict[Any, Callable[..., Any]] = {}

    def call(*others: Any) -> Any:
        kinds = tuple(map(numba.typeof, others))
        if kinds not in found:
            found[kinds] = kernel.compile(known + kinds)
        return found[kinds](*constants, *others)

    return call


def run(kernel: Callable[..., None], offsets: IntArray, work_per_row: float, *arguments: Any) -> None:
    """Call kernel(*arguments, first, last) over all parties, in as many threads as the work is worth."""
    parties, rows = len(offsets) - 1, int(offsets[-1])
    workers = min(numba.config.NUMBA_NUM_THREADS, parties, int(rows * work_per_row / WORTH_A_THREAD) + 1)
    if workers <= 1:
        kernel(*arguments, 0, parties)
        return
    edges = [0, *np.searchsorted(offsets, np.arange(1, workers) * (rows // workers)).tolist(), parties]
    run_together([partial(kernel, *arguments, *share) for share in pairwise(edges)])


def run_pieces(kernel: Any, count: int, length: int, *arguments: Any) -> None:
    """Call kernel(*arguments, first, last) over 0..count in pieces of this length, a thread taking one after the other.

    A thread that the machine is slow to serve takes fewer of them. What a piece does must not depend on the others.
    """
    starts = range(0, count, length)
    workers = min(numba.config.NUMBA_NUM_THREADS, len(starts))
    todo = iter(starts)  # next() on it is one step of the interpreter, which no other thread interrupts
    if len(starts) > 1:  # as in `hold`
        kernel = kernel.compile((*map(numba.typeof, arguments), types.intp, types.intp))

    def work() -> None:
        for first in todo:
            kernel(*arguments, first, min(first + length, count))

    run_together([work] * workers)
