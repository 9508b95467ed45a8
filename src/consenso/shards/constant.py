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

from consenso.rows import BLOCK_NUMBERS
from consenso.shards.intake import bound_rows

# The value of the constant column over the bound of the rows.
CONSTANT_SHARE = 0.5


def constant_for(row_bound: float) -> float:
    """The value of the constant column."""
    return CONSTANT_SHARE * row_bound


def whole_bound(row_bound: float, constant: float | None) -> float:
    """The bound of rows with their constant."""
    return row_bound if constant is None else math.hypot(row_bound, constant)


def with_constant(X: Any, row_bound: float, constant: float, owner: str) -> Any:
    """Rows of at most the bound, then a column of the constant; one copy is made."""
    rows, features = X.shape
    if sparse.issparse(X):
        bounded = bound_rows(sparse.csr_array(X), row_bound, owner)[0]
        column = sparse.csr_array(np.full((rows, 1), constant, dtype=X.dtype))
        return sparse.hstack([bounded, column], format="csr")
    out = np.empty((rows, features + 1), dtype=X.dtype)
    out[:, features] = constant
    # A block at a time: where most rows are long, all of them at once would be another copy or two.
    length = max(1, BLOCK_NUMBERS // features)
    for start in range(0, rows, length):
        block = slice(start, start + length)
        out[block, :features] = bound_rows(np.ascontiguousarray(X[block]), row_bound, owner)[0]
    return out
