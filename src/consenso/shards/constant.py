"""Rows as a fit sees them: within the public bound, with a constant column for the intercept.

*The constant column.* Its value is a number c, and the intercept is c times its coefficient: any c gives the same exact
fit. Under privacy c is part of what one record can contribute, sqrt(row_bound^2 + c^2): a large c wastes noise on all
other coefficients, a small one drowns the intercept. The public rule is c = row_bound / 2, which costs 12 % of noise.
Rows are shortened to row_bound before the constant is put beside them, so that it is the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
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


def with_constant(
    X: Any,
    row_bound: float,
    constant: float,
    owner: str,
    *,
    single: bool = False,
    change: Callable[[Any], Any] | None = None,
) -> Any:
    """Rows of at most the bound, then a column of the constant; one copy is made.

    single: entries are cut towards zero to single precision, and dense rows are copied in it: that halves what every
    pass over them reads. change: what is done to dense rows first, each by itself.
    """
    if sparse.issparse(X):
        bounded = bound_rows(sparse.csr_array(X), row_bound, owner)[0]
        column = sparse.csr_array(np.full((X.shape[0], 1), constant, dtype=X.dtype))
        both = sparse.hstack([bounded, column], format="csr")
        if single and both.dtype == np.float64:
            both.data = _cut(both.data)
        return both
    rows, features = X.shape
    kind = X.dtype if change is None else change(X[:0]).dtype
    cuts = single and kind == np.float64
    out = np.empty((rows, features + 1), dtype=np.float32 if cuts else kind)
    out[:, features] = _cut(np.array([constant]))[0] if cuts else constant
    copy = partial(_copy_in_single, few=X.size <= FEW_PRODUCTS) if cuts else _copy
    # A block at a time: where most rows are long or changed, all of them at once would be another copy or two.
    length = max(1, BLOCK_NUMBERS // features)
    for start in range(0, rows, length):
        block = slice(start, start + length)
        part = X[block] if change is None else change(X[block])
        copy(np.ascontiguousarray(part), out[block], row_bound, owner, start)
    return out


def _copy(X: Array, out: Any, row_bound: float, owner: str, first: int) -> None:
    out[:, :-1] = bound_rows(X, row_bound, owner, first=first)[0]


def _copy_in_single(X: Array, out: Any, row_bound: float, owner: str, first: int, *, few: bool) -> None:
    """Entries are cut on the way; few: whether a compiled copy is not worth it."""
    rows, features = X.shape
    if few:
        squares = squared_norms(X)
        with np.errstate(over="ignore"):  # in rows that are yet to be shortened
            out[:, :features] = _cut(X)
    else:
        from consenso.kernels.copies import cut_rows

        squares = np.empty(rows)
        cut_rows(X, out, squares)
    long = near_bound(squares, features, row_bound)
    refuse_non_finite(X, long[~np.isfinite(squares[long])], owner, first=first)
    if long.size:
        out[long, :features] = _cut(bound_rows(X[long], row_bound, owner)[0])


def _cut(values: Array) -> Array:
    """Doubles without the bits that single precision has no room for."""
    cut: Array = (values.view(np.int64) & SINGLE_BITS).view(np.float64)
    return cut
