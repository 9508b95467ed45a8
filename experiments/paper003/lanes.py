"""Softmax gradients of several runs in one pass over sparse images.

Four fifths of the pixels are blank, and a row is read twice while it is still at hand: for the scores, and for the
gradient. A model is (features, lanes): the classes of the first run, then those of the second, filled up with zeros, so
that a feature's numbers of all runs lie side by side in a few vector registers. Numba does not see that in a loop over
so short an axis, so the four operations on a row of lanes are given to it as such.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

REGISTER = 16  # single-precision numbers; rows of lanes are a whole number of these


@dataclass(frozen=True, kw_only=True, eq=False)
class Sparse:
    """Rows without their zeros: row i has values[starts[i]:starts[i + 1]] in the columns of the same places."""

    starts: Any
    columns: Any
    values: Any
    sums: Any  # of a row, which is its 1-norm: pixels are not negative

    @classmethod
    def of(cls, rows: Any) -> Sparse:
        """From a matrix (rows, features)."""
        filled = rows != 0
        return cls(
            starts=np.concatenate(([0], np.cumsum(filled.sum(axis=1)))),
            columns=np.nonzero(filled)[1].astype(np.int32),
            values=rows[filled].astype(np.float32),
            sums=rows.sum(axis=1, dtype=np.float32),
        )


def lanes_of(runs: int, classes: int) -> int:
    """Lanes that hold the classes of so many runs."""
    return -(-runs * classes // REGISTER) * REGISTER


@cache
def gradient_pass(runs: int, classes: int) -> Callable[..., None]:
    """The compiled add_gradient(starts, columns, values, sums, labels, first, last, z, gradient, largest).

    It adds X'(softmax(X z) - Y) of the rows first..last to `gradient`, and raises largest[run] to the largest
    |x|_1 |softmax(x z) - y|_1 of a row.
    """
    import numba

    lanes = lanes_of(runs, classes)
    nothing, load, store, plus = _operations(lanes)

    @numba.njit(nogil=True, fastmath=True, error_model="numpy")  # type: ignore[untyped-decorator]
    def add_gradient(
        starts: Any,
        columns: Any,
        values: Any,
        sums: Any,
        labels: Any,
        first: int,
        last: int,
        z: Any,
        gradient: Any,
        largest: Any,
    ) -> None:
        scores = np.zeros((1, lanes), dtype=np.float32)
        for i in range(first, last):
            begin, end = starts[i], starts[i + 1]
            one, two = nothing(), nothing()  # two sums, so that an addition need not wait for the one before
            at = begin
            while at + 2 <= end:
                one = plus(one, values[at], load(z, np.int64(columns[at])))
                two = plus(two, values[at + 1], load(z, np.int64(columns[at + 1])))
                at += 2
            if at < end:
                one = plus(one, values[at], load(z, np.int64(columns[at])))
            store(scores, 0, plus(one, np.float32(1), two))
            for run in range(runs):
                of_run = scores[0, run * classes : (run + 1) * classes]
                top = of_run[0]
                for k in range(1, classes):
                    top = max(top, of_run[k])
                total = np.float32(0)
                for k in range(classes):
                    of_run[k] = np.exp(of_run[k] - top)
                    total += of_run[k]
                for k in range(classes):
                    of_run[k] /= total
                of_run[labels[i]] -= np.float32(1)
                norm = np.float32(0)
                for k in range(classes):
                    norm += abs(of_run[k])
                largest[run] = max(largest[run], norm * sums[i])
            residual = load(scores, 0)
            for at in range(begin, end):
                j = np.int64(columns[at])
                store(gradient, j, plus(load(gradient, j), values[at], residual))

    compiled: Callable[..., None] = add_gradient
    return compiled


def _operations(lanes: int) -> tuple[Any, Any, Any, Any]:
    """Zero, load, store and a + factor b on a row of lanes."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.extending import intrinsic, models, register_model

    class Lanes(types.Type):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(name=f"Lanes({lanes})")

    vector = ir.VectorType(ir.FloatType(), lanes)

    @register_model(Lanes)
    class _Model(models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, vector)

    row = Lanes()

    def address(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, given[0])
        place = builder.mul(given[1], ir.Constant(ir.IntType(64), lanes))
        return builder.bitcast(builder.gep(array.data, [place]), vector.as_pointer())

    @intrinsic  # type: ignore[untyped-decorator]
    def nothing(_: Any) -> Any:
        return row(), lambda context, builder, signature, given: ir.Constant(vector, [0.0] * lanes)

    @intrinsic  # type: ignore[untyped-decorator]
    def load(_: Any, array: Any, place: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.load(address(context, builder, signature, given), align=4)

        return row(array, types.int64), made

    @intrinsic  # type: ignore[untyped-decorator]
    def store(_: Any, array: Any, place: Any, value: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            builder.store(given[2], address(context, builder, signature, given), align=4)
            return context.get_dummy_value()

        return types.void(array, types.int64, row), made

    @intrinsic  # type: ignore[untyped-decorator]
    def plus(_: Any, value: Any, factor: Any, other: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            unset = ir.Constant(vector, ir.Undefined)
            first = builder.insert_element(unset, given[1], ir.Constant(ir.IntType(32), 0))
            spread = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
            factors = builder.shuffle_vector(first, unset, spread)
            return builder.fadd(builder.fmul(factors, given[2], flags=["fast"]), given[0], flags=["fast"])

        return row(row, types.float32, row), made

    return nothing, load, store, plus
