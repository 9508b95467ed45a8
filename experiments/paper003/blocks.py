"""Images in blocks of similar ones, and the two products that pass over them.

Four fifths of the pixels are blank. A block is a few images of one agent that have much ink in common: it lists the
pixels that any of them has, and their values side by side. So a row of a model, which holds the numbers of all runs, is
read once for several images, and the sums stay in vector registers; a row at a time, as sparse matrices go, would wait
for memory most of the time. The order of the images does not matter: only sums over them are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import binding  # type: ignore[import-untyped]


def _has_wide_registers() -> bool:
    """Whether this processor has 32 registers of sixteen numbers, and not sixteen of eight (or their like)."""
    try:
        return bool(binding.get_host_cpu_features().get("avx512f", False))
    except RuntimeError:  # not known for this processor
        return False


# Numbers of a register, images of a block, and the most registers of a row: HEIGHT x REGISTERS sums are kept in
# registers, with a row of the model beside them. More images in a block are more blank pixels that are multiplied, and
# fewer rows that are read. TILE blocks go through both products before the next, while their pixels are at hand; the
# narrower the rows, the more of them stay in the nearest cache.
VECTOR, HEIGHT, REGISTERS, TILE = (16, 5, 5, 8) if _has_wide_registers() else (8, 4, 2, 32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Block b has the pixels columns[starts[b]:starts[b + 1]], values (pixels, HEIGHT), and the images rows[b].

    An agent's last block is filled up with blank images, whose row is -1.
    """

    starts: Any
    columns: Any
    values: Any
    rows: Any
    agents: Any  # block at which each agent begins, and the end

    @classmethod
    def of(cls, X: Any, offsets: Any) -> Blocks:
        """From a matrix (rows, features) and where each agent's rows begin."""
        columns, values, rows, agents = [], [], [], [0]
        for first, last in pairwise(offsets):
            inked = (X[first:last] != 0).astype(np.float32)
            order = np.array(_alike(inked, np.arange(last - first))) + first
            order = np.append(order, np.full(-len(order) % HEIGHT, -1)).reshape(-1, HEIGHT)
            for block in order:
                own = block[block >= 0]
                used = np.flatnonzero((X[own] != 0).any(axis=0))
                filled = np.zeros((len(used), HEIGHT), dtype=np.float32)
                filled[:, : len(own)] = X[own][:, used].T
                columns.append(used.astype(np.int32))
                values.append(filled)
            rows.append(order)
            agents.append(agents[-1] + len(order))
        return cls(
            starts=np.concatenate(([0], np.cumsum([len(each) for each in columns]))),
            columns=np.concatenate(columns),
            values=np.concatenate(values),
            rows=np.concatenate(rows).astype(np.int64),
            agents=np.array(agents),
        )


def _alike(inked: Any, chosen: Any) -> list[int]:
    """Rows in an order that keeps similar ones together: halved along the direction in which they differ most."""
    if len(chosen) <= HEIGHT:
        return list(map(int, chosen))
    apart = inked[chosen] - inked[chosen].mean(axis=0)
    direction = apart[int(np.einsum("ij,ij->i", apart, apart).argmax())]
    for _ in range(4):  # power iterations; a rough direction will do
        direction = apart.T @ (apart @ direction)
        direction /= np.linalg.norm(direction) + np.float32(1e-9)
    order = chosen[np.argsort(apart @ direction, kind="stable")]
    half = -(-len(order) // (2 * HEIGHT)) * HEIGHT  # whole blocks
    return _alike(inked, order[:half]) + _alike(inked, order[half:])


def aligned(shape: tuple[int, ...]) -> Any:
    """Zeros in single precision that begin on a line of the cache: no register's worth of them lies on two."""
    count = int(np.prod(shape))
    room = np.zeros(count + 16, dtype=np.float32)
    first = -room.ctypes.data % 64 // 4
    return room[first : first + count].reshape(shape)


def lanes_of(runs: int, classes: int) -> int:
    """Lanes that hold the classes of so many runs, in panels of one width: class k of run r is lane k * runs + r."""
    registers = -(-runs * classes // VECTOR)
    panels = -(-registers // REGISTERS)
    return -(-registers // panels) * panels * VECTOR


def width_of(lanes: int) -> int:
    """Lanes of a panel, which are computed together."""
    return lanes // -(-lanes // (REGISTERS * VECTOR))


@cache
def products(lanes: int) -> tuple[Callable[..., None], Callable[..., None]]:
    """score(columns, values, begin, end, z, lane, scores, row) and its transpose, for a block and a panel of lanes.

    The lanes begin at `lane`. The first sets scores[row : row + HEIGHT] to the block's images times z; the second adds
    the images, transposed, times these residuals to its gradient. Numba alone does not keep so many sums in registers.
    """
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    vector, index = ir.VectorType(ir.FloatType(), VECTOR), ir.IntType(64)
    registers = range(width_of(lanes) // VECTOR)

    class Code:
        """Places in the arrays of a call, and arithmetic on them."""

        def __init__(self, context: Any, builder: Any, signature: Any, given: Any) -> None:
            arrays = (0, 1, 4, 6)
            data = [context.make_array(signature.args[n])(context, builder, given[n]).data for n in arrays]
            self.columns, self.values, self.model, self.rows = data
            self.builder, (self.begin, self.end, self.lane, self.row) = builder, (given[n] for n in (2, 3, 5, 7))

        def at(self, data: Any, row: Any, place: int) -> Any:
            """Register `place` of a row of lanes."""
            build = self.builder
            here = build.add(build.mul(row, index(lanes)), build.add(self.lane, index(place * VECTOR)))
            return build.bitcast(build.gep(data, [here]), vector.as_pointer())

        def factor(self, pixel: Any, image: int) -> Any:
            """A pixel's value in an image of the block, in every place of a register."""
            build = self.builder
            value = build.load(build.gep(self.values, [build.add(build.mul(pixel, index(HEIGHT)), index(image))]))
            single = build.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), VECTOR), [0] * VECTOR)
            return build.shuffle_vector(single, ir.Constant(vector, ir.Undefined), zeros)

        def column(self, pixel: Any) -> Any:
            """The row of the model that a pixel belongs to."""
            return self.builder.zext(self.builder.load(self.builder.gep(self.columns, [pixel])), index)

        def of_block(self, image: int, place: int) -> Any:
            """A register of one of the block's scores or residuals."""
            return self.at(self.rows, self.builder.add(self.row, index(image)), place)

        def plus(self, value: Any, one: Any, other: Any) -> Any:
            """Add a product to a value."""
            return self.builder.fadd(self.builder.fmul(one, other, flags=["fast"]), value, flags=["fast"])

    def score_code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        code = Code(context, builder, signature, given)
        places = [(i, v) for i in range(HEIGHT) for v in registers]
        sums = {place: cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * VECTOR)) for place in places}
        for each in sums.values():  # allocated once, set for each block
            builder.store(ir.Constant(vector, [0.0] * VECTOR), each)
        with cgutils.for_range_slice(builder, code.begin, code.end, index(1)) as (pixel, _):
            column = code.column(pixel)
            rows = [builder.load(code.at(code.model, column, v), align=4) for v in registers]
            for i in range(HEIGHT):
                factor = code.factor(pixel, i)
                for v in registers:
                    builder.store(code.plus(builder.load(sums[i, v]), factor, rows[v]), sums[i, v])
        for i, v in places:
            builder.store(builder.load(sums[i, v]), code.of_block(i, v), align=4)
        return context.get_dummy_value()

    def transpose_code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        code = Code(context, builder, signature, given)
        own = [[builder.load(code.of_block(i, v), align=4) for v in registers] for i in range(HEIGHT)]
        with cgutils.for_range_slice(builder, code.begin, code.end, index(1)) as (pixel, _):
            column = code.column(pixel)
            factors = [code.factor(pixel, i) for i in range(HEIGHT)]
            for v in registers:
                place = code.at(code.model, column, v)
                value = builder.load(place, align=4)
                for i in range(HEIGHT):
                    value = code.plus(value, factors[i], own[i][v])
                builder.store(value, place, align=4)
        return context.get_dummy_value()

    def product(codegen: Any) -> Any:
        @intrinsic  # type: ignore[untyped-decorator]
        def made(
            _: Any, columns: Any, values: Any, begin: Any, end: Any, model: Any, lane: Any, rows: Any, row: Any
        ) -> Any:
            place = types.int64
            return types.void(columns, values, place, place, model, place, rows, place), codegen

        return made

    return product(score_code), product(transpose_code)
