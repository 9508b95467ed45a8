"""Compiled loops over the rows of parties; import it inside functions, since Numba takes a while to load."""

from __future__ import annotations

from consenso.kernels.compiled import run
from consenso.kernels.newton import score_newton
from consenso.kernels.products import (
    dense_grams,
    dense_pull,
    dense_pull_many,
    dense_scores,
    dense_scores_many,
    sparse_grams,
    sparse_pull,
    sparse_scores,
)
from consenso.kernels.systems import dense_column_solves, gram_products, row_solves, shift_lengths, sparse_column_solves

__all__ = [
    "dense_column_solves",
    "dense_grams",
    "dense_pull",
    "dense_pull_many",
    "dense_scores",
    "dense_scores_many",
    "gram_products",
    "row_solves",
    "run",
    "score_newton",
    "shift_lengths",
    "sparse_column_solves",
    "sparse_grams",
    "sparse_pull",
    "sparse_scores",
]
