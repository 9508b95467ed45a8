"""Rows as a fit sees them: within the public bound, with a constant column for the intercept.

*The constant column.* Its value is a number c, and the intercept is c times its coefficient: any c gives the same exact
fit. Under privacy c is part of what one record can contribute, sqrt(row_bound^2 + c^2): a large c wastes noise on all
other coefficients, a small one drowns the intercept. The public rule is c = row_bound / 2, which costs 12 % of noise.
Rows are shortened to row_bound before the constant is put beside them, so that it is the same for all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from consenso.arrays import Array
from consenso.rows import BLOCK_NUMBERS
from consenso.shards.intake import bound_rows, near_bound, refuse_non_finite, squared_norms
from consenso.whole_steps import FEW_PRODUCTS, SINGLE_BITS

# The value of the constant column over the bound of the rows.
CONSTANT_SHARE = 0.5


def constant_for(row_bound: float) -> float:
    """The value of the constant column."""
    return CONSTANT_SHARE * row_bound


def whole_bound(row_bound: float, constant: float | None) -> float:
    """The bound of rows with their constant."""
    return row_bound if constant is None else math.hypot(row_bound, constant)


def with_constant(X: Any, row_bound: float, constant: float, owner: str, *, single: bool = False) -> Any:
    """Rows of at most the bound, then a column of the constant; one copy is made.

    single: entries are cut towards zero to single precision, and dense rows are copied in it: that halves what every
    pass over them reads.
    """
    rows, features = X.shape
    if sparse.issparse(X):
        bounded = bound_rows(sparse.csr_array(X), row_bound, owner)[0]
        column = sparse.csr_array(np.full((rows, 1), constant, dtype=X.dtype))
        both = sparse.hstack([bounded, column], format="csr")
        if single and both.dtype == np.float64:
            both.data = _cut(both.data)
        return both
    if single and X.dtype == np.float64:
        return _in_single(np.ascontiguousarray(X), row_bound, constant, owner)
    out = np.empty((rows, features + 1), dtype=X.dtype)
    out[:, features] = constant
    # A block at a time: where most rows are long, all of them at once would be another copy or two.
    length = max(1, BLOCK_NUMBERS // features)
    for start in range(0, rows, length):
        block = slice(start, start + length)
        out[block, :features] = bound_rows(np.ascontiguousarray(X[block]), row_bound, owner)[0]
    return out


def _in_single(X: Array, row_bound: float, constant: float, owner: str) -> Any:
    rows, features = X.shape
    out, squares = np.empty((rows, features + 1), dtype=np.float32), np.empty(rows)
    out[:, features] = _cut(np.array([constant]))[0]
    if X.size <= FEW_PRODUCTS:
        squares = squared_norms(X)
        with np.errstate(over="ignore"):  # in rows that are yet to be shortened
            out[:, :features] = _cut(X)
    else:
        from consenso.kernels.copies import cut_rows

        cut_rows(X, out, squares)
    long = near_bound(squares, features, row_bound)
    refuse_non_finite(X, long[~np.isfinite(squares[long])], owner)
    length = max(1, BLOCK_NUMBERS // features)
    for start in range(0, len(long), length):
        block = long[start : start + length]
        out[block, :features] = _cut(bound_rows(X[block], row_bound, owner)[0])
    return out


def _cut(values: Array) -> Array:
    """Doubles without the bits that single precision has no room for."""
    cut: Array = (values.view(np.int64) & SINGLE_BITS).view(np.float64)
    return cut
