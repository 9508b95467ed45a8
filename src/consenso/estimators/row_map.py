"""Rows as a model sees them: the same map in `fit` and in `predict`, so that the model that is fitted predicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from consenso.arrays import Array
from consenso.rows import BLOCK_NUMBERS, Layout, Rows
from consenso.shards.intake import bound_rows, shrink_factors, squared_norms


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """How columns are brought to one scale: x is moved into [low, high] and becomes (x - center) / scale.

    low, high, center, scale: (features,). scale is positive. within: the bound to which rows are shortened before,
    where one was declared: a row and what is left of it by that bound have the same score.
    """

    low: Array
    high: Array
    center: Array
    scale: Array
    within: float | None = None

    def move(self, rows: Any) -> Array:
        """Dense rows on these scales, in double precision."""
        if self.within is not None:
            rows = _shorten(rows, self.within)
        moved: Array = (np.clip(rows, self.low, self.high) - self.center) / self.scale
        return moved


@dataclass(frozen=True, kw_only=True, eq=False)
class RowMap:
    """Columns on one scale, if there is one, then rows of at most the bound; None for a fit without privacy."""

    row_bound: float | None
    columns: Columns | None = None

    def scale(self, X: Any) -> Any:
        """Rows before they are shortened, in the type that they have."""
        if self.columns is None:
            return X
        out = np.empty(X.shape, dtype=X.dtype if X.dtype.kind == "f" else np.float64)
        for block in _blocks(X):
            out[block] = self.columns.move(X[block])
        return out

    def measure(self, X: Any) -> Array:
        """Their lengths then, (rows,), without a copy of all of them."""
        if self.columns is None:
            return np.asarray(np.sqrt(squared_norms(X)))
        lengths = np.empty(X.shape[0])
        for block in _blocks(X):
            lengths[block] = np.sqrt(squared_norms(self.scale(X[block])))
        return lengths

    def score(self, X: Any, coefficients: Array, intercepts: Any) -> Array:
        """Scores of rows in their own units, for coefficients (features,) or (features, outputs) in these units."""
        rows: Any = sparse.csr_array(X) if sparse.issparse(X) else X
        if self.columns is not None:
            rows = self.scale(rows)
            intercepts = intercepts + self.columns.center @ coefficients
            coefficients = (coefficients.T * self.columns.scale).T
        table = np.asarray(coefficients, dtype=np.float64)
        if self.row_bound is None:
            return np.asarray(_multiply(rows, table) + intercepts, dtype=np.float64)
        shrink = shrink_factors(rows, self.row_bound)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = _multiply(rows, table) * (shrink if table.ndim == 1 else shrink[:, None])
        far = np.flatnonzero(shrink == 0)
        if far.size:  # rows whose squared length is more than a number can be: shortened first, as in fit
            scores[far] = _multiply(bound_rows(rows[far], self.row_bound, "predict(X=...)")[0], table)
        return np.asarray(scores + intercepts, dtype=np.float64)

    def restore(self, coefficients: Array, intercepts: Array) -> tuple[Array, Array]:
        """Coefficients (features, outputs) and intercepts of scaled rows, in the units of the columns."""
        if self.columns is None:
            return coefficients, intercepts
        own = coefficients / self.columns.scale[:, None]
        return own, intercepts - self.columns.center @ own


def _blocks(X: Any) -> Iterator[slice]:
    """A block at a time: in double precision the whole table would be a copy of its own."""
    length = max(1, BLOCK_NUMBERS // max(1, X.shape[1]))
    return (slice(start, start + length) for start in range(0, X.shape[0], length))


def _shorten(rows: Any, bound: float) -> Array:
    """Rows of at most this length, up to rounding; they are shortened once more, exactly, on the scales of the map."""
    shrink = shrink_factors(rows, bound)
    short: Array = rows * shrink[:, None]
    far = np.flatnonzero(shrink == 0)
    if far.size:  # rows whose squared length is more than a number can be
        part = rows[far] / np.abs(rows[far]).max(axis=1, keepdims=True)
        short[far] = part * (bound / np.sqrt(squared_norms(part)))[:, None]
    return short


def _multiply(rows: Any, table: Array) -> Array:
    """By the product in which no row depends on the others: a threshold is counted over these scores."""
    outputs = 1 if table.ndim == 1 else table.shape[1]
    layout = Layout(np.array([0, rows.shape[0]]))
    return Rows(rows, layout, outputs).linear_predictor(table.reshape(-1)).reshape(-1, *table.shape[1:])
