"""The step of a party of one record, compiled by Numba: import it inside functions, it loads slowly.

Its prox moves along its row, to where a scalar equation says; how far that may be from the exact prox is bounded as in
`consenso.subproblems`. The equation is the loss's own, handed over as a function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from consenso.algorithms.shape import SingleRecords
from consenso.arrays import Array, IntArray
from consenso.clipping import shorten
from consenso.losses.formulas import compile_loss
from consenso.problem import Problem
from consenso.speedups import branchless
from consenso.subproblems import Worst
from consenso.subproblems.batch import ROUNDING
from consenso.subproblems.certificate import ON_KINK, STRONG
from consenso.subproblems.pieces import pieces

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
# Targets, weights and norms of the rows, and how long their points may be; kinks and slopes of the pieces of their
# losses, if these have kinks.
Records: TypeAlias = tuple[Array, Array, Array, Array, Array, Array]
# Parameters, prox slopes and derivatives of the loss; and its largest curvature, and how far its slope can jump.
LossParts: TypeAlias = tuple[Array, Any, Any, tuple[float, float]]

LINE = 8  # numbers in a cache line


def compile_contracted(kernel: Kernel, *, compile_inlined: bool = False, loose: frozenset[str] = frozenset()) -> Kernel:
    """Compile so that a product and a sum may be one instruction, with one rounding instead of two."""
    return branchless(kernel, fastmath={"contract", *loose}, forceinline=compile_inlined)


def compile_inlined(kernel: Kernel) -> Kernel:
    """A part of a kernel. A call would cost more than most of them: Numba counts references to arrays around it."""
    return compile_contracted(kernel, compile_inlined=True)


def compile_sum(kernel: Kernel) -> Kernel:
    """Leave the order of sums to the compiler, which takes them in vectors; bounds on rounding cover every order."""
    return compile_contracted(kernel, compile_inlined=True, loose=frozenset({"reassoc", "nsz"}))


clip_factor = compile_inlined(shorten)


def take_records(
    records: SingleRecords, problem: Problem, step: float, tolerance: float
) -> tuple[Any, Records, LossParts] | None:
    """Rows, records and loss as kernels take them; None for a loss without formulas.

    Points that public facts do not allow are left to the general engine, whose refusal no row may decide.
    """
    loss, weights = problem.loss, step * records.scales
    compiled = compile_loss(loss)
    if compiled is None:
        return None
    alike, which = np.unique(weights, return_inverse=True)
    worst = Worst(
        length=np.zeros(len(alike)),
        weights=alike,
        sizes=np.ones(len(alike), dtype=np.int64),
        loss=loss,
        row_bound=problem.row_bound,
        target_bound=problem.target_bound,
    )
    longest = worst.find_longest(tolerance)[which]
    kinks, slopes, jump = np.empty((0, 0)), np.empty((0, 0)), 0.0
    if loss.curvature_bound == np.inf:
        shape = pieces(loss, records.targets)
        kinks, slopes = np.ascontiguousarray(shape.kinks), np.ascontiguousarray(shape.slopes)
        jump = float(shape.jumps.max(initial=0.0))
    bends = float(loss.curvature_bound), jump
    parts = compiled.parameters, compiled.prox_slopes, compiled.derivatives, bends
    return records.rows, (records.targets, weights, records.norms, longest, kinks, slopes), parts


@compile_inlined
def find_valid(kinks: Array, slopes: Array, i: int, slope: float) -> tuple[float, float]:
    """The interval of scores at which a number is a subgradient: `Pieces.valid` of one record."""
    low, high = -np.inf, np.inf
    for k in range(kinks.shape[1]):
        # Between kinks k - 1 and k the slope is slopes[i, k].
        if slopes[i, k] < slope:
            low = kinks[i, k]
        if slopes[i, kinks.shape[1] - k] > slope:
            high = kinks[i, kinks.shape[1] - 1 - k]
    return low, high


@compile_inlined
def distance(
    bends: tuple[float, float],
    weight: float,
    norm: float,
    slope: float,
    there: float,
    valid: tuple[float, float],
    score: float,
    lengths: tuple[float, float],
    features: int,
) -> float:
    """The certificate of `consenso.subproblems` for one record: how far x = v - weight * slope * row is from the prox.

    bends: the loss's largest curvature and jump. score: that of x. there: the slope of a smooth loss at it. valid:
    where `slope` is one of a loss with kinks. lengths: of x and of v.
    """
    curvature, jump = bends
    length, start = lengths
    rest = ROUNDING * (length + start + weight * norm * abs(slope))
    if curvature < np.inf:
        blurred = ROUNDING * math.sqrt(weight * curvature) * norm * length / 2
        return weight * norm * abs(there - slope) + rest + blurred
    slack = ROUNDING * (1 + math.sqrt(features) / 8) * norm * length
    low, high = valid
    room = min(score - low, high - score)
    if norm == 0.0 or room > ON_KINK * slack:
        return rest
    weak = rest + math.sqrt(weight * jump * (max(-room, 0.0) + slack))
    kink = low if score - low <= high - score else high
    return min(weak, STRONG * ((abs(kink - score) + slack) / norm + rest))


@compile_sum
def measure(rows: Any, i: int, v: Array) -> tuple[float, float]:
    """The score of v and its squared length."""
    score, square = 0.0, 0.0
    for j in range(v.size):
        score += rows[i, j] * v[j]
        square += v[j] * v[j]
    return score, square


@compile_sum
def pull(rows: Any, i: int, pull: float, v: Array, z: Array, residual: Array) -> tuple[float, float, float]:
    """Write x - z with x = v - pull * row; the score of x and the squared lengths of x and of x - z."""
    score, square, moved = 0.0, 0.0, 0.0
    for j in range(v.size):
        x = v[j] - pull * rows[i, j]
        residual[j] = x - z[j]
        score += rows[i, j] * x
        square += x * x
        moved += residual[j] * residual[j]
    return score, square, moved


@intrinsic
def _fetch(typing_context: Any, table: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of an entry, without waiting for it."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(table)(context, builder, arguments[0])
        entry = cgutils.get_item_pointer(context, builder, table, array, arguments[1:])
        address, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(
            function, [builder.bitcast(entry, address), number(0), number(3), number(1)]
        )  # to read, keep, data
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), emit


@compile_inlined
def fetch_row(table: Any, path: IntArray, k: int) -> None:
    """Ask for the row of the k-th party of a path, which is known before the processor can see where it goes."""
    if k < path.size:
        for j in range(0, table.shape[1], LINE):
            _fetch(table, path[k], j)
