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

from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import compile_inlined
from consenso.speedups import compile_kernel
from consenso.whole_steps import LANES

# Rows that are multiplied with the same eight columns: their sums are what a processor has registers for.
TILE = 4
# Rows that stay in its cache while all columns pass.
AT_ONCE = 32
_DOUBLE, _WHOLE = ir.DoubleType(), ir.IntType(64)
_VECTOR, _STEPS = ir.VectorType(_DOUBLE, LANES), ir.VectorType(_WHOLE, LANES)
# A product and a sum in one operation have other last bits; of whole numbers there are none to differ in.
_FUSED = ("contract",)


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


def _make_adder(count: int) -> Any:
    """A function that adds up rows in whole steps over eight columns, `count` times."""

    @intrinsic
    def add(
        typing_context: Any, X: Any, first: Any, last: Any, weights: Any, column: Any, magic: Any, sums: Any, to: Any
    ) -> Any:
        _require_rows(X, weights, sums)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            X_value, start, stop, weights_value, at_column, large, sums_value, at_sum = arguments
            zero, one = ir.Constant(start.type, 0), ir.Constant(start.type, 1)
            lanes = [ir.Constant(start.type, k * LANES) for k in range(count)]
            places = [builder.add(at_column, lane) for lane in lanes]
            target = _find_entry(context, builder, sums, sums_value, at_sum)
            held = [builder.bitcast(builder.gep(target, [lane]), _STEPS.as_pointer()) for lane in lanes]
            totals = [cgutils.alloca_once_value(builder, builder.load(each, align=8)) for each in held]
            weight_of = _find_entry(context, builder, weights, weights_value, zero)
            larger = _spread(builder, large)
            with cgutils.for_range_slice(builder, start, stop, one, start.type) as (row, _):
                address = _find_entry(context, builder, X, X_value, row, zero)
                weight = _spread(builder, builder.load(builder.gep(weight_of, [builder.sub(row, start)])))
                for place, total in zip(places, totals, strict=True):
                    product = builder.fmul(weight, _load_lanes(builder, X, address, place))
                    steps = builder.bitcast(builder.fadd(product, larger), _STEPS)
                    builder.store(builder.add(builder.load(total), steps), total)
            for each, total in zip(held, totals, strict=True):
                builder.store(builder.load(total), each, align=8)
            return context.get_dummy_value()

        return types.void(X, types.intp, types.intp, weights, types.intp, types.float64, sums, types.intp), emit

    return add


_add_many, _add_few = _make_adder(4), _make_adder(1)


@compile_inlined
def add_steps(X: Any, first: int, last: int, weights: Array, magic: float, sums: IntArray) -> None:
    """sums[feature] += the bits of weights[row - first] * row + magic, over rows; LANES more numbers are room to work.

    Beside a number as large as 1.5 * 2^52 steps these bits count whole steps: they are those of that number alone, and
    one more for each step. Whole numbers are added modulo 2^64, so that nothing is lost.
    """
    features, column = X.shape[1], 0
    while column + 4 * LANES <= features:
        _add_many(X, first, last, weights, column, magic, sums, column)
        column += 4 * LANES
    while column + LANES <= features:
        _add_few(X, first, last, weights, column, magic, sums, column)
        column += LANES
    if column == 0:
        for i in range(features):
            for row in range(first, last):
                sums[i] += np.float64(weights[row - first] * X[row, i] + magic).view(np.int64)
    elif column < features:
        # Eight columns of which some are summed already, rather than those that are left one by one.
        sums[features:] = 0
        _add_few(X, first, last, weights, features - LANES, magic, sums, features)
        for i in range(column, features):
            sums[i] += sums[i + LANES]


def _make_tile(count: int) -> Any:
    """A function that multiplies `count` rows with eight columns."""

    @intrinsic
    def tile(typing_context: Any, X: Any, row: Any, panels: Any, panel: Any, out: Any) -> Any:
        _require_rows(X, panels, out)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            X_value, first, panels_value, at_panel, out_value = arguments
            zero, one = ir.Constant(first.type, 0), ir.Constant(first.type, 1)
            stop = builder.extract_value(context.make_array(X)(context, builder, X_value).shape, 1)
            places = [builder.add(first, ir.Constant(first.type, k)) for k in range(count)]
            rows = [_find_entry(context, builder, X, X_value, place, zero) for place in places]
            columns = _find_entry(context, builder, panels, panels_value, at_panel, zero, zero)
            totals = [cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES)) for _ in rows]
            with cgutils.for_range_slice(builder, zero, stop, one, first.type) as (f, _):
                factors = _load_lanes(builder, panels, columns, builder.mul(f, ir.Constant(first.type, LANES)))
                for address, total in zip(rows, totals, strict=True):
                    value = _spread(builder, _load_number(builder, X, address, f))
                    builder.store(builder.fadd(builder.load(total), builder.fmul(value, factors)), total)
            column = builder.mul(at_panel, ir.Constant(first.type, LANES))
            for place, total in zip(places, totals, strict=True):
                target = _find_entry(context, builder, out, out_value, place, column)
                builder.store(builder.load(total), builder.bitcast(target, _VECTOR.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.void(X, types.intp, panels, types.intp, out), emit

    return tile


_multiply_tile, _multiply_row = _make_tile(TILE), _make_tile(1)


@compile_inlined
def transform_block(X: Any, start: int, count: int, panels: Array, wide: Array, moved: Array, squares: Array) -> None:
    """moved[k] = row start + k times a matrix, and squares[k] its squared length; as `dense_transform` has them.

    wide: room for these rows in double precision, which single ones take once instead of for every panel.
    """
    for k in range(count):
        for f in range(X.shape[1]):
            wide[k, f] = X[start + k, f]
    tiled = count // TILE * TILE
    for panel in range(panels.shape[0]):
        for k in range(0, tiled, TILE):
            _multiply_tile(wide, k, panels, panel, moved)
        for k in range(tiled, count):
            _multiply_row(wide, k, panels, panel, moved)
    for k in range(count):
        squares[k] = _dot_lanes(moved, k, moved[k], moved.shape[1])


@compile_kernel
def dense_transform(X: Any, panels: Array, outputs: int, squares: Array, out: Array, first: int, last: int) -> None:
    """squares[row] = |row times a matrix|^2, and out[row] that product, unless out has no rows.

    panels: the columns of the matrix in eights, (panels, features, LANES), the last filled up with zeros. Products are
    added in the order of features, squares in that of `dot`.
    """
    wide, moved = np.empty((AT_ONCE, X.shape[1])), np.zeros((AT_ONCE, panels.shape[0] * LANES))
    for start in range(first, last, AT_ONCE):
        count = min(AT_ONCE, last - start)
        transform_block(X, start, count, panels, wide, moved, squares[start : start + count])
        if out.shape[0]:
            for k in range(count):
                for i in range(outputs):
                    out[start + k, i] = moved[k, i]


@intrinsic
def square_tile(typing_context: Any, rows: Any, count: Any, first: Any, second: Any, sums: Any) -> Any:
    """sums[i, j] += the sum over rows of row[i] * row[j] of whole numbers: TILE columns times LANES.

    i from `first`, j from `second` on.
    """
    _require_rows(rows, sums)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows_value, stop, at_first, at_second, sums_value = arguments
        zero, one = ir.Constant(stop.type, 0), ir.Constant(stop.type, 1)
        places = [builder.add(at_first, ir.Constant(stop.type, k)) for k in range(TILE)]
        targets = [_find_entry(context, builder, sums, sums_value, place, at_second) for place in places]
        held = [builder.bitcast(target, _VECTOR.as_pointer()) for target in targets]
        totals = [cgutils.alloca_once_value(builder, builder.load(each, align=8)) for each in held]
        with cgutils.for_range_slice(builder, zero, stop, one, stop.type) as (row, _):
            address = _find_entry(context, builder, rows, rows_value, row, zero)
            lanes = _load_lanes(builder, rows, address, at_second)
            for place, total in zip(places, totals, strict=True):
                value = _spread(builder, _load_number(builder, rows, address, place))
                product = builder.fmul(value, lanes, flags=_FUSED)
                builder.store(builder.fadd(builder.load(total), product, flags=_FUSED), total)
        for each, total in zip(held, totals, strict=True):
            builder.store(builder.load(total), each, align=8)
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp, types.intp, sums), emit
