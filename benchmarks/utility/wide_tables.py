"""Made-up tables with more columns than a second moment can be taken of.

Words are drawn by Zipf's law, or all alike; dense columns are independent, correlated, or of many sizes. Most rows are
within 1, the public bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from consenso.arrays import Array

TEST, COLUMNS, TOLD = 2000, 1300, 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """Rows (records, columns) that are at most 1 long but for a few, and signs; the first `records` are fitted."""

    rows: Any
    signs: Array
    records: int = 8000

    @property
    def training(self) -> tuple[Any, Array]:
        """What is fitted."""
        return self.rows[: self.records], self.signs[: self.records]

    @property
    def majority(self) -> float:
        """Share of test records that have the more frequent sign of the fitted ones."""
        often = 1.0 if np.mean(self.signs[: self.records] > 0) >= 0.5 else -1.0
        return float(np.mean(self.signs[self.records :] == often))

    def loss(self, scores: Array) -> Array:
        """Mean log loss of scores (test records, ...) of the test part."""
        found: Array = np.logaddexp(0.0, -self._test_signs(scores) * scores).mean(axis=0)
        return found

    def accuracy(self, scores: Array) -> Array:
        """Share of test records whose sign is that of the score."""
        return np.mean((scores > 0) == (self._test_signs(scores) > 0), axis=0)

    def _test_signs(self, scores: Array) -> Array:
        return self.signs[self.records :].reshape(-1, *[1] * (scores.ndim - 1))

    @cached_property
    def rows_with_constant(self) -> Any:
        """Rows of at most 1 with a constant of 1/2 beside them, as the library has them, divided to a length of 1."""
        X = self.rows
        lengths = np.sqrt(np.asarray((X * X).sum(axis=1)).ravel())
        short = np.minimum(1.0, 1.0 / np.maximum(lengths, 1e-300)) / math.sqrt(1.25)
        constant = np.full((X.shape[0], 1), 0.5 / math.sqrt(1.25))
        if sparse.issparse(X):
            return sparse.csr_array(sparse.hstack([sparse.diags_array(short) @ X, constant]))
        return np.hstack([X * short[:, None], constant])


def _dense(correlation: float = 0.0, decades: float = 0.0) -> Made:
    rng, records = np.random.default_rng(3), Made.records
    X = rng.normal(size=(records + TEST, COLUMNS))
    X = math.sqrt(1 - correlation) * X + math.sqrt(correlation) * rng.normal(size=(len(X), 1))
    scores = X[:, :TOLD] @ rng.normal(size=TOLD)
    sizes = 10.0 ** rng.permutation(np.linspace(-decades / 2, decades / 2, COLUMNS))
    return _label(X * sizes, scores, rng)


def _words() -> Made:
    rng = np.random.default_rng(0)
    columns, each, many = 2000, 30, Made.records + TEST
    often = 1.0 / np.arange(1, columns + 1)
    words = rng.choice(columns, size=many * each, p=often / often.sum())
    X = sparse.csr_array((np.ones(many * each), (np.repeat(np.arange(many), each), words)), (many, columns))
    weights = np.where(rng.random(columns) < 0.1, rng.normal(size=columns), 0.0)
    return _label(X, X @ weights, rng)


def _label(X: Any, scores: Array, rng: np.random.Generator) -> Made:
    signs = np.where(rng.random(len(scores)) < expit(3 * (scores - scores.mean()) / scores.std()), 1.0, -1.0)
    lengths = np.sqrt(np.asarray((X * X).sum(axis=1)).ravel())
    return Made(rows=X / np.quantile(lengths, 0.95), signs=signs)


def _weighed_words(columns: int) -> Made:
    """Texts of 75 words by Zipf's law, rare words weighing more, rows of length 1; 200 words tell of the label."""
    rng, many, each = np.random.default_rng(0), 20_000, 75
    often = 1.0 / np.arange(1, columns + 1)
    often /= often.sum()
    words = rng.choice(columns, size=many * each, p=often)
    values = rng.gamma(2.0, size=many * each) * np.log(1 / np.clip(each * often[words], 1e-9, 1) + 1.0)
    X = sparse.csr_array((values, (np.repeat(np.arange(many), each), words)), (many, columns))
    X = sparse.csr_array(sparse.diags_array(1 / np.sqrt(np.asarray((X * X).sum(axis=1)).ravel())) @ X)
    weights = np.zeros(columns)
    weights[rng.choice(columns, size=200, p=often, replace=False)] = rng.normal(size=200)
    scores = X @ weights
    chances = expit(3 * scores / scores.std())
    return Made(rows=X, signs=np.where(rng.random(many) < chances, 1.0, -1.0), records=16_000)


def _alike_words(columns: int) -> Made:
    """Six words a record, all as frequent as each other, and all of them tell of the label: little can be learnt."""
    rng, many = np.random.default_rng(0), 20_000
    X = sparse.random_array((many, columns), density=6 / columns, rng=rng, format="csr", data_sampler=_ones)
    X = sparse.csr_array(sparse.diags_array(1 / np.sqrt(np.maximum(1, np.asarray(X.sum(axis=1)).ravel()))) @ X)
    scores = X @ (2 * rng.normal(size=columns)) + 0.3 * rng.normal(size=many)
    return Made(rows=X, signs=np.where(scores > 0, 1.0, -1.0), records=16_000)


def _ones(size: int) -> Array:
    return np.ones(size)


TABLES: dict[str, Callable[[], Made]] = {
    "2,000 words": _words,
    "dense, independent": _dense,
    "dense, correlated by 0.9": lambda: _dense(correlation=0.9),
    "dense, sizes over two decades": lambda: _dense(decades=2.0),
    "5,000 words by weight": lambda: _weighed_words(5000),
    "20,000 words by weight": lambda: _weighed_words(20_000),
    "2,000 words, all alike": lambda: _alike_words(2000),
    "5,000 words, all alike": lambda: _alike_words(5000),
}
