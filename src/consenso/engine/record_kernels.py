"""The step of a party of one record, compiled by Numba: import it inside functions, it loads slowly.

Its prox moves along its row, to where a scalar equation says; how far that may be from the exact prox is bounded as in
`consenso.subproblems`. `consenso.engine.walk_kernels` and `consenso.engine.cohort_kernels` make rounds of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from consenso.arrays import IntArray
from consenso.kernels import HINGE, LOGISTIC, RESIDUAL
from consenso.kernels.compiled import branchless
from consenso.losses.kernels import solve_sigmoid
from consenso.subproblems.batch import ROUNDING
from consenso.subproblems.certificate import ON_KINK, STRONG

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

LINE = 8  # numbers in a cache line
TUBE = 3  # beside the kinds of `consenso.kernels`: the distance to an interval around the target


def compile_contracted(kernel: Kernel, *, compile_inlined: bool = False, loose: frozenset[str] = frozenset()) -> Kernel:
    """Compile so that a product and a sum may be one instruction, with one rounding instead of two."""
    return branchless(kernel, fastmath={"contract", *loose}, forceinline=compile_inlined)


def compile_inlined(kernel: Kernel) -> Kernel:
    """A part of a kernel. A call would cost more than most of them: Numba counts references to arrays around it."""
    return compile_contracted(kernel, compile_inlined=True)


def compile_sum(kernel: Kernel) -> Kernel:
    """Leave the order of sums to the compiler, which takes them in vectors; bounds on rounding cover every order."""
    return compile_contracted(kernel, compile_inlined=True, loose=frozenset({"reassoc", "nsz"}))


@compile_inlined
def prox_slope(kind: int, parameter: float, point: float, step: float, target: float) -> float:
    """The slope g of the loss at point - step * g."""
    if kind == LOGISTIC:
        return -target * solve_sigmoid(-target * point, step)
    if kind == RESIDUAL:
        return min(max((point - target) / (1.0 + step), -parameter), parameter)
    if kind == HINGE:
        shortfall = max(0.0, 1.0 - target * point)
        width = max(shortfall, parameter + step)
        return -target * shortfall / width if width > 0.0 else 0.0
    residual = point - target
    residual -= min(max(residual, -parameter), parameter)
    width = max(abs(residual), step)
    return residual / width if width > 0.0 else 0.0


@compile_inlined
def _slope(kind: int, parameter: float, score: float, target: float) -> float:
    """The slope of a smooth loss."""
    if kind == LOGISTIC:
        return -target / (1.0 + math.exp(target * score))
    return prox_slope(kind, parameter, score, 0.0, target)


@compile_inlined
def _valid(kind: int, parameter: float, target: float, slope: float) -> tuple[float, float]:
    """The interval of scores at which a number is a subgradient of a loss with kinks."""
    if kind == HINGE:
        lowest, highest = min(-target, 0.0), max(-target, 0.0)
        return (-np.inf if slope <= lowest else target), (np.inf if slope >= highest else target)
    left, right = target - parameter, target + parameter
    low = -np.inf if slope <= -1.0 else (left if slope <= 0.0 else right)
    high = np.inf if slope >= 1.0 else (right if slope >= 0.0 else left)
    return low, high


@compile_inlined
def smooth_distance(
    curvature: float, weight: float, norm: float, slope: float, gap: float, lengths: tuple[float, float]
) -> float:
    """`distance` for a smooth loss; gap: of its slope at x to `slope`."""
    rest = ROUNDING * (lengths[0] + lengths[1] + weight * norm * abs(slope))
    return weight * norm * abs(gap) + rest + ROUNDING * math.sqrt(weight * curvature) * norm * lengths[0] / 2


@compile_inlined
def distance(
    loss: tuple[int, float, float],
    target: float,
    weight: float,
    norm: float,
    slope: float,
    score: float,
    lengths: tuple[float, float],
    features: int,
) -> float:
    """The certificate of `consenso.subproblems` for one record: how far x = v - weight * slope * row is from the prox.

    score: that of x. lengths: of x and of v.
    """
    kind, parameter, curvature = loss
    length, start = lengths
    if curvature < np.inf:
        gap = _slope(kind, parameter, score, target) - slope
        return smooth_distance(curvature, weight, norm, slope, gap, lengths)
    rest = ROUNDING * (length + start + weight * norm * abs(slope))
    slack = ROUNDING * (1 + math.sqrt(features) / 8) * norm * length
    low, high = _valid(kind, parameter, target, slope)
    room = min(score - low, high - score)
    if norm == 0.0 or room > ON_KINK * slack:
        return rest
    jump = 1.0 if kind == HINGE else 2.0
    weak = rest + math.sqrt(weight * jump * (max(-room, 0.0) + slack))
    kink = low if score - low <= high - score else high
    return min(weak, STRONG * ((abs(kink - score) + slack) / norm + rest))


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
