"""Stacked rows of parties, dense or compressed, and the products that every solver is made of.

All sums are taken in double precision, also for rows kept in single precision. A model is (dim,) when all parties share
it and (parties, dim) when each has its own; scores are (rows,) for one output and (rows, outputs) for several.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consenso import whole_steps
from consenso.arrays import Array, IntArray
from consenso.clipping import shorten
from consenso.errors import StepError
from consenso.row_products import LANES, multiply, split_columns, transform, transformed_squares

# Single-precision rows are widened a block at a time, never as a whole.
BLOCK_NUMBERS = 1 << 18
# Numbers of a block that stay in the cache of a processor. What is computed of them takes no new memory from the
# system, whose pages cost a third of the time of a pass over a table in storage when blocks were eight times as large.
CACHED_NUMBERS = 1 << 15
# Rows whose products are added up in double precision before they are added as integers.
MOMENT_ROWS = 1 << 13
SQUARED_ROWS = 1 << 12
# Columns that `einsum` adds up in one order; of more, a row that is alone is added up in another than one among others.
COLUMNS_AT_ONCE = 1 << 13
# What is said of rows that give no sum.
NOT_FINITE = "exact_sums: coefficients are finite, and one is not."
# Rows whose products, rounded to a grid, are added up in double precision without an error.
CHUNK = 1 << 12


@dataclass(frozen=True, eq=False)
class Layout:
    """Which rows belong to which party: offsets[i]:offsets[i + 1] to party i."""

    offsets: IntArray

    @property
    def parties(self) -> int:
        """How many parties there are."""
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> IntArray:
        """Rows of each party, (parties,)."""
        return np.diff(self.offsets)

    @cached_property
    def one_each(self) -> bool:
        """Whether every party holds exactly one row."""
        return bool(np.all(self.sizes == 1))

    @cached_property
    def chunks(self) -> IntArray:
        """All rows in pieces of one party and at most CHUNK rows, as (party, first, last)."""
        counts = -(-self.sizes // CHUNK)
        party = np.repeat(np.arange(self.parties), counts)
        place = np.arange(len(party)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = self.offsets[:-1][party] + place * CHUNK
        return np.stack([party, first, np.minimum(first + CHUNK, self.offsets[1:][party])], axis=1)

    def place(self, parties: IntArray) -> slice | IntArray:
        """Where the rows of some parties are: a slice if they lie side by side, else positions in their order."""
        if len(parties) and np.all(np.diff(parties) == 1):
            return slice(int(self.offsets[parties[0]]), int(self.offsets[parties[-1] + 1]))
        if self.one_each:
            return parties
        sizes = self.sizes[parties]
        shifts = np.repeat(self.offsets[:-1][parties] - (np.cumsum(sizes) - sizes), sizes)
        return shifts + np.arange(len(shifts), dtype=np.int64)

    def take(self, parties: IntArray) -> Layout:
        """The layout of some parties' rows put one after the other."""
        return Layout(np.concatenate(([0], np.cumsum(self.sizes[parties]))).astype(np.int64))

    def repeat_per_row(self, per_party: NDArray[Any]) -> NDArray[Any]:
        """Repeat a number per party for each of its rows."""
        return per_party if self.one_each else np.repeat(per_party, self.sizes)

    def sums(self, per_row: Array) -> Array:
        """Sum over the rows of each party, and over outputs if there are several."""
        flat = per_row if per_row.ndim == 1 else per_row.sum(axis=1)
        if self.one_each:
            return flat
        return flat.sum(keepdims=True) if self.parties == 1 else np.add.reduceat(flat, self.offsets[:-1])

    def whole_sums(self, per_row: IntArray) -> IntArray:
        """Sums over the rows of each party of whole numbers (rows, k), (parties, k)."""
        before = np.concatenate([np.zeros((1, per_row.shape[1]), dtype=np.int64), np.cumsum(per_row, axis=0)])
        return np.diff(before[self.offsets], axis=0)


@dataclass(frozen=True, eq=False)
class Rows:
    """A matrix of rows with their layout."""

    matrix: Any  # (rows, features): float64 or float32 array in C order, or scipy.sparse.csr_array
    layout: Layout
    outputs: int = 1

    @property
    def parties(self) -> int:
        """How many parties hold these rows."""
        return self.layout.parties

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.matrix.shape[0])

    @property
    def features(self) -> int:
        """Length of a row."""
        return int(self.matrix.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are compressed."""
        return bool(sparse.issparse(self.matrix))

    def take(self, parties: IntArray) -> Rows:
        """The rows of some parties: a view if they lie side by side, else a copy."""
        if len(parties) == self.parties and np.array_equal(parties, np.arange(self.parties)):
            return self
        return Rows(self.matrix[self.layout.place(parties)], self.layout.take(parties), self.outputs)

    def squared_norms(self) -> Array:
        """Squared 2-norm of every row, (rows,)."""
        if self.is_sparse:
            entries = np.repeat(np.arange(self.count), np.diff(self.matrix.indptr))
            squares = np.square(self.matrix.data, dtype=np.float64)
            sums: Array = np.bincount(entries, weights=squares, minlength=self.count).astype(np.float64, copy=False)
        else:
            sums = np.zeros(self.count)
            for start in range(0, self.features, COLUMNS_AT_ONCE):
                part = self.matrix[:, start : start + COLUMNS_AT_ONCE]
                sums += np.einsum("ij,ij->i", part, part, dtype=np.float64)
        return sums

    def norms_1(self) -> Array:
        """1-norm of every row, (rows,)."""
        if self.is_sparse:
            return np.asarray(abs(self.matrix).sum(axis=1, dtype=np.float64)).reshape(-1)
        out = np.empty(self.count)
        for block in self._blocks():
            np.abs(self.matrix[block]).sum(axis=1, dtype=np.float64, out=out[block])
        return out

    def linear_predictor(self, x: Array) -> Array:
        """<row, x> for every row."""
        if x.ndim == 1 or self.parties == 1:
            return self._predict_shared(x.reshape(self._model_shape()))
        from consenso.kernels import compiled, products

        out, offsets = np.empty((self.count, self.outputs)), self.layout.offsets
        x = np.ascontiguousarray(x).reshape(self.parties, self.features, self.outputs)
        work = self._row_work()
        if self.is_sparse:
            compiled.run(products.sparse_scores, offsets, work, *self._compress(), offsets, x, out)
        elif self.outputs == 1:
            compiled.run(products.dense_scores, offsets, work, self.matrix, offsets, x[:, :, 0], out[:, 0])
        else:
            compiled.run(products.dense_scores_many, offsets, work, self.matrix, offsets, x, out)
        return out[:, 0] if self.outputs == 1 else out

    def products(self, vectors: Array) -> Array:
        """<row, vector> for every row and every column of vectors (features, k), (rows, k)."""
        return self._predict_shared(np.ascontiguousarray(vectors))

    def rmatvec(self, coefficients: Array) -> Array:
        """Sum over the rows of each party of coefficient times row, (parties, dim)."""
        if self.parties == 1:
            return self.total(coefficients)[None]
        from consenso.kernels import compiled, products

        out, offsets = np.empty((self.parties, self.features, self.outputs)), self.layout.offsets
        coefficients = np.ascontiguousarray(coefficients)
        work = self._row_work()
        if self.is_sparse:
            weights = coefficients.reshape(self.count, self.outputs)
            compiled.run(products.sparse_pull, offsets, work, *self._compress(), offsets, weights, out)
        elif self.outputs == 1:
            flat = out[:, :, 0]
            compiled.run(products.dense_pull, offsets, work, self.matrix, offsets, coefficients, flat)
        else:
            compiled.run(products.dense_pull_many, offsets, work, self.matrix, offsets, coefficients, out)
        return out.reshape(self.parties, -1)

    def total(self, coefficients: Array) -> Array:
        """Sum over all rows of coefficient times row, (dim,)."""
        if self.is_sparse or self.matrix.dtype == np.float64:
            return np.asarray(self.matrix.T @ coefficients, dtype=np.float64).reshape(-1)
        out = np.zeros(self._model_shape())
        for block in self._blocks():
            out += self.matrix[block].astype(np.float64).T @ coefficients[block]
        return out.reshape(-1)

    def exact_sums(self, coefficients: Array, step: float) -> IntArray:
        """`rmatvec` in whole steps, each product rounded to the nearest: no order or batch of rows changes a bit."""
        columns = 1 if coefficients.ndim == 1 else coefficients.shape[1]
        weights = np.ascontiguousarray(coefficients, dtype=np.float64).reshape(self.count, columns)
        given: tuple[Any, ...] = (*self._compress(), self.features) if self.is_sparse else (self.matrix,)
        work, offsets = self._row_work() / self.outputs * columns, self.layout.offsets
        if self._is_small(work):
            add_up: Any = whole_steps.sum_sparse if self.is_sparse else whole_steps.sum_dense
            return cast(IntArray, add_up(*given, weights, offsets, step).reshape(self.parties, -1))
        from consenso.kernels import exact_sums

        out = np.zeros((self.parties, self.features, columns), dtype=np.int64)
        of_rows = exact_sums.sparse_exact_sums_of_one if columns == 1 else exact_sums.sparse_exact_sums
        kernel: Any = of_rows if self.is_sparse else exact_sums.dense_exact_sums
        exact_sums.run_chunks(kernel, self.layout.chunks, self.count * work, (*given, weights), step, out)
        return out.reshape(self.parties, -1)

    def exact_residual_sums(self, x: Array, targets: Array, factors: Array, limit: float, step: float) -> IntArray:
        """`exact_sums` of dense rows for the coefficients factor * clip(<row, x> - target, limit), in one pass."""
        if self._is_small(self.features):
            slopes = factors * np.clip(whole_steps.predict(self.matrix, x) - targets, -limit, limit)
            if not np.isfinite(slopes).all():
                raise StepError(NOT_FINITE)
            return self.exact_sums(slopes, step)
        from consenso.kernels import exact_sums

        out = np.zeros((self.parties, self.features + 1, 1), dtype=np.int64)
        given = (self.matrix, *(np.ascontiguousarray(each, np.float64) for each in (x, targets, factors)), limit)
        work = 2.0 * self.count * self.features
        exact_sums.run_chunks(exact_sums.dense_residual_sums, self.layout.chunks, work, given, step, out)
        if out[0, self.features, 0]:
            raise StepError(NOT_FINITE)
        return out[:, : self.features, 0]

    def _is_small(self, work: float) -> bool:
        """Whether so many products a row take less time than loading what would compute them faster."""
        loaded = "consenso.kernels.exact_sums" in sys.modules
        return self.count * work <= whole_steps.FEW_PRODUCTS and not loaded

    def exact_moments(
        self, step: float, factors: Array | None = None, whitening: tuple[Array, float] | None = None
    ) -> IntArray:
        """Sums over each party's rows of row times its transpose, in whole squared steps.

        Entries are cut to whole steps towards zero, so that no row gets longer; see `moment_step` for how many there
        may be. Products of such numbers and their sums over a chunk are exact in double precision. factors: what rows
        are multiplied with first, (rows,). whitening: a matrix (features, features) that they are multiplied with
        before that, and the length to which they are then shortened.
        """
        out = np.zeros((self.parties, self.features, self.features), dtype=np.int64)
        factors = np.empty(0) if factors is None else factors
        if not self.is_sparse:
            self._add_moments(self.matrix, factors, whitening, self.layout.chunks, step, out)
            return out
        # No fewer rows than columns: else adding up the products of blocks would cost more than the products.
        numbers = max(2 * CACHED_NUMBERS, self.features**2)
        for party, (start, stop) in enumerate(pairwise(self.layout.offsets.tolist())):
            for block in self._blocks(start, stop, numbers=numbers):
                rows = self.matrix[block].toarray()
                own = factors[block] if factors.size else factors
                self._add_moments(rows, own, whitening, np.array([[party, 0, len(rows)]]), step, out)
        return out

    def _add_moments(
        self,
        rows: Array,
        factors: Array,
        whitening: tuple[Array, float] | None,
        chunks: IntArray,
        step: float,
        out: IntArray,
    ) -> None:
        """Add up the chunks (party, first, last) of some rows."""
        if self._is_small(self.features):
            if whitening is not None:
                rows, squares = transform(rows, whitening[0])
                shortened = shorten(np.sqrt(squares), whitening[1])
                factors = shortened * factors if factors.size else shortened
            if factors.size:
                rows = np.multiply(rows, factors[:, None], dtype=np.float64)
            whole_steps.add_moments(rows, chunks, step, out)
            return
        from consenso.kernels import exact_sums, moments

        work = len(rows) * self.features**2 / 2
        if whitening is None:
            exact_sums.run_chunks(moments.dense_exact_moments, chunks, work, (rows, factors), step, out)
            return
        given = (rows, split_columns(whitening[0]), whitening[1], factors)
        exact_sums.run_chunks(moments.dense_whitened_moments, chunks, 3 * work, given, step, out)

    def exact_squares(self, step: float) -> IntArray:
        """Sums over each party's rows of squared entries in whole steps, each cut towards zero, (parties, features)."""
        out = np.zeros((self.parties, self.features), dtype=np.int64)
        for party, (start, stop) in enumerate(zip(self.layout.offsets[:-1], self.layout.offsets[1:], strict=True)):
            if self.is_sparse:
                for first in range(int(start), int(stop), SQUARED_ROWS):
                    entries = slice(*self.matrix.indptr[[first, min(first + SQUARED_ROWS, stop)]])
                    cut = np.trunc(np.square(self.matrix.data[entries], dtype=np.float64) / step)
                    out[party] += np.bincount(self.matrix.indices[entries], cut, self.features).astype(np.int64)
                continue
            for block in self._blocks(int(start), int(stop)):
                cut = np.trunc(np.square(self.matrix[block], dtype=np.float64) / step)
                out[party] += cut.sum(axis=0).astype(np.int64)
        return out

    def scaled_squared_norms(self, scales: Array) -> Array:
        """Squared lengths of the rows after each column is multiplied by its scale, (rows,)."""
        weights = np.square(scales)
        out = np.empty(self.count)
        if self.is_sparse:
            entries = np.repeat(np.arange(self.count), np.diff(self.matrix.indptr))
            squares = np.square(self.matrix.data, dtype=np.float64) * weights[self.matrix.indices]
            return np.bincount(entries, weights=squares, minlength=self.count).astype(np.float64, copy=False)
        for block in self._blocks(numbers=CACHED_NUMBERS):
            part = self.matrix[block].astype(np.float64, copy=False)
            np.einsum("ij,ij,j->i", part, part, weights, out=out[block])
        return out

    def transformed_squared_norms(self, transform: Array) -> Array:
        """Squared lengths of the rows times a (features, k) matrix, or times one for each party, (rows,)."""
        out, offsets = np.empty(self.count), self.layout.offsets
        if transform.ndim == 2:
            transform, offsets = transform[None], np.array([0, self.count])
        for own, (start, stop) in zip(transform, pairwise(offsets.tolist()), strict=True):
            if not self.is_sparse:
                out[start:stop] = transformed_squares(self.matrix[start:stop], own)
                continue
            for block in self._blocks(start, stop, numbers=CACHED_NUMBERS):
                moved = np.asarray(self.matrix[block] @ own, dtype=np.float64)
                out[block] = np.einsum("ij,ij->i", moved, moved)
        return out

    @cached_property
    def grams(self) -> tuple[Array, IntArray]:
        """Inner products of each party's rows, packed one matrix after the other, and where each starts."""
        from consenso.kernels import compiled, products

        offsets, areas = self.layout.offsets, self.layout.sizes**2
        starts = np.cumsum(areas) - areas
        out = np.empty(int(areas.sum()))
        work = self._row_work() * float(self.layout.sizes.max())
        if self.is_sparse:
            arguments = (*self._compress(), self.features, offsets, starts, out)
            compiled.run(products.sparse_grams, offsets, work, *arguments)
        else:
            compiled.run(products.dense_grams, offsets, work, self.matrix, offsets, starts, out)
        return out, starts

    def column_solves(self, weights: Array, right: Array) -> Array:
        """(I + sum over the party's rows of weight row row')^-1 right, (parties, features); weights >= 0."""
        from consenso.kernels import compiled, systems

        out, offsets = np.empty((self.parties, self.features)), self.layout.offsets
        work = self._row_work() * self.features
        if self.is_sparse:
            arguments = (*self._compress(), offsets, weights, right, out)
            compiled.run(systems.sparse_column_solves, offsets, work, *arguments)
        else:
            compiled.run(systems.dense_column_solves, offsets, work, self.matrix, offsets, weights, right, out)
        return out

    def _predict_shared(self, x: Array) -> Array:
        if self.is_sparse:
            return np.asarray(self.matrix @ x, dtype=np.float64)
        if self.matrix.dtype == np.float64:
            return multiply(self.matrix, x)
        out = np.empty((self.count, *x.shape[1:]))
        for block in self._blocks():
            out[block] = multiply(self.matrix[block].astype(np.float64), x)
        return out

    def _model_shape(self) -> tuple[int, ...]:
        return (self.features,) if self.outputs == 1 else (self.features, self.outputs)

    def _compress(self) -> tuple[Any, Any, Any]:
        return self.matrix.data, self.matrix.indices, self.matrix.indptr

    def _row_work(self) -> float:
        entries = self.matrix.nnz / max(self.count, 1) if self.is_sparse else self.features
        return float(entries) * self.outputs

    def _blocks(
        self, start: int = 0, stop: int | None = None, *, numbers: int = BLOCK_NUMBERS, multiple: int = LANES
    ) -> list[slice]:
        stop = self.count if stop is None else stop
        length = min(max(1, numbers // self.features // multiple) * multiple, MOMENT_ROWS)
        return [slice(here, min(here + length, stop)) for here in range(start, stop, length)]


def sum_step(length: float, rows: int) -> float:
    """The step of a grid for `exact_sums` of at most so many rows, of contributions of at most this length.

    A power of two: sums over a chunk are exact in 53 bits, and those over all rows in 63.
    """
    return 2.0 ** (math.ceil(math.log2(length)) - min(40, 61 - math.ceil(math.log2(max(rows, 1)))))


def moment_step(length: float, rows: int) -> float:
    """The step of a grid for `exact_moments` of at most so many rows of at most this length.

    Sums of products over a block are exact in 53 bits, and those over all rows in 63.
    """
    block, all_ = (math.ceil(math.log2(max(count, 1))) for count in (min(rows, MOMENT_ROWS), rows))
    bits = min(53 - block, 62 - all_) // 2
    return 2.0 ** (math.ceil(math.log2(length)) - bits)
