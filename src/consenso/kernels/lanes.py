"""Products of rows in which eight numbers are multiplied and added side by side, always in the same order.

A processor does so with several numbers at once, but no compiler may choose that by itself: sums in another order have
other last bits. Here the order is stated, and no row depends on the rows beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils, errors
from numba.extending import intrinsic

from consenso.arrays import Array
from consenso.kernels.compiled import compile_inlined
from consenso.speedups import compile_kernel
from consenso.whole_steps import LANES

# Rows that are multiplied with the same eight columns: their sums are what a processor has registers for.
TILE = 4
# Rows that stay in its cache while all columns pass.
AT_ONCE = 32
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)


def _require_rows(*kinds: Any) -> None:
    """Refuse to compile for arrays whose last axis is not side by side in memory: other numbers would be read."""
    if any(kind.layout != "C" for kind in kinds):
        raise errors.TypingError("products of rows take arrays in C order")


def _find_entry(context: Any, builder: Any, kind: Any, array: Any, *place: Any) -> Any:
    """The address of an entry of an array."""
    held = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, held, list(place), wraparound=False)


def _load_lanes(builder: Any, kind: Any, address: Any, place: Any) -> Any:
    """LANES numbers from `place` on, in double precision."""
    own = ir.FloatType() if kind.dtype == types.float32 else _DOUBLE
    vector = ir.VectorType(own, LANES)
    found = builder.bitcast(builder.gep(address, [place]), vector.as_pointer())
    values = builder.load(found, align=kind.dtype.bitwidth // 8)
    return values if own == _DOUBLE else builder.fpext(values, _VECTOR)


def _load_number(builder: Any, kind: Any, address: Any, place: Any) -> Any:
    value = builder.load(builder.gep(address, [place]))
    return builder.fpext(value, _DOUBLE) if kind.dtype == types.float32 else value


def _spread(builder: Any, value: Any) -> Any:
    """A vector of one number."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), everywhere)


@intrinsic
def _dot_lanes(typing_context: Any, X: Any, row: Any, x: Any, even: Any) -> Any:
    """Sums of every eighth product of a row and a vector, then theirs, over the first `even` entries."""
    _require_rows(X, x)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        X_value, at_row, x_value, stop = arguments
        zero, step = ir.Constant(stop.type, 0), ir.Constant(stop.type, LANES)
        left = _find_entry(context, builder, X, X_value, at_row, zero)
        right = _find_entry(context, builder, x, x_value, zero)
        total = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))
        with cgutils.for_range_slice(builder, zero, stop, step, stop.type) as (place, _):
            product = builder.fmul(_load_lanes(builder, X, left, place), _load_lanes(builder, x, right, place))
            builder.store(builder.fadd(builder.load(total), product), total)
        found = builder.load(total)
        a, b, c, d, e, f, g, h = (
            builder.extract_element(found, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)
        )
        ends = builder.fadd(builder.fadd(a, e), builder.fadd(c, g))
        return builder.fadd(ends, builder.fadd(builder.fadd(b, f), builder.fadd(d, h)))

    return types.float64(X, types.intp, x, types.intp), emit


@compile_inlined
def dot(X: Any, row: int, x: Array) -> float:
    """<row, x>, in the order of `consenso.whole_steps.predict`."""
    features = X.shape[1]
    even = features // LANES * LANES
    rest = 0.0
    for i in range(even, features):
        rest += X[row, i] * x[i]
    score: float = _dot_lanes(X, row, x, even) + rest
    return score


def _make_tile(count: int) -> Any:
    """A function that multiplies `count` rows with eight columns."""

    @intrinsic
    def tile(typing_context: Any, X: Any, row: Any, panels: Any, panel: Any, out: Any, place: Any) -> Any:
        _require_rows(X, panels, out)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            X_value, first, panels_value, at_panel, out_value, at_place = arguments
            zero, one = ir.Constant(first.type, 0), ir.Constant(first.type, 1)
            features = context.make_array(X)(context, builder, X_value).shape
            stop = builder.extract_value(features, 1)
            steps = [ir.Constant(first.type, k) for k in range(count)]
            rows = [_find_entry(context, builder, X, X_value, builder.add(first, k), zero) for k in steps]
            columns = _find_entry(context, builder, panels, panels_value, at_panel, zero, zero)
            totals = [cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES)) for _ in rows]
            with cgutils.for_range_slice(builder, zero, stop, one, first.type) as (f, _):
                factors = _load_lanes(builder, panels, columns, builder.mul(f, ir.Constant(first.type, LANES)))
                for address, total in zip(rows, totals, strict=True):
                    value = _spread(builder, _load_number(builder, X, address, f))
                    builder.store(builder.fadd(builder.load(total), builder.fmul(value, factors)), total)
            column = builder.mul(at_panel, ir.Constant(first.type, LANES))
            for k, total in zip(steps, totals, strict=True):
                target = _find_entry(context, builder, out, out_value, builder.add(at_place, k), column)
                builder.store(builder.load(total), builder.bitcast(target, _VECTOR.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.void(X, types.intp, panels, types.intp, out, types.intp), emit

    return tile


_multiply_tile, _multiply_row = _make_tile(TILE), _make_tile(1)


@compile_kernel
def dense_transform(X: Any, panels: Array, outputs: int, squares: Array, out: Array, first: int, last: int) -> None:
    """squares[row] = |row times a matrix|^2, and out[row] that product, unless out has no rows.

    panels: the columns of the matrix in eights, (panels, features, LANES), the last filled up with zeros. Products are
    added in the order of features, squares in that of `dot`.
    """
    moved = np.zeros((AT_ONCE, panels.shape[0] * LANES))
    for start in range(first, last, AT_ONCE):
        count = min(AT_ONCE, last - start)
        tiled = count // TILE * TILE
        for panel in range(panels.shape[0]):
            for place in range(0, tiled, TILE):
                _multiply_tile(X, start + place, panels, panel, moved, place)
            for place in range(tiled, count):
                _multiply_row(X, start + place, panels, panel, moved, place)
        for place in range(count):
            squares[start + place] = _dot_lanes(moved, place, moved[place], moved.shape[1])
        if out.shape[0]:
            for place in range(count):
                for i in range(outputs):
                    out[start + place, i] = moved[place, i]
