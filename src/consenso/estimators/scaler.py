"""Columns scaled by private quantiles, so that rows have a public bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.histograms import find_ranges
from consenso.estimators.parameter_checks import check_row_bound
from consenso.estimators.privacy_params import is_number, terms_of
from consenso.estimators.private import PrivateEstimator
from consenso.estimators.reading import read_rows, without_warnings
from consenso.privacy.card import Card


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Maps each column from its private quantiles to [-1, 1] / sqrt(features) * row_bound, clipping what is beyond.

    Rows then have a 2-norm of at most row_bound, whatever the data are: give the model after it the same row_bound. The
    budget of the scaler is spent in addition to that of the model: scaler.guarantee_.compose(model.guarantee_).

    tail: share of the records beyond either end of a column. ranges: public (low, high), numbers or one per column,
    within which the quantiles are looked for; None looks for them among all powers of two, at half of the budget.
    epsilon, delta, adjacency, records, ledger and random_state as for the estimators; `records` is needed under
    add-remove only for the default delta.

    Fitted: lower_, upper_, guarantee_, card_, n_features_in_, and count_noise_, the standard deviation of the noise on
    every count of records; with few times as many records the quantiles say little.
    """

    tail: float = 0.01
    ranges: Any = None
    row_bound: float = 1.0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the quantiles of the columns within the budget; y is not looked at."""
        owner = type(self).__name__
        self._check_privacy()
        if not is_number(self.tail) or not 0 <= self.tail < 0.5:
            raise InputError(f"{owner}(tail={self.tail!r}): the share beyond either end lies in [0, 0.5).")
        if self.row_bound is None:
            raise InputError(f"{owner}(row_bound=None): a bound for the scaled rows is needed; 1 is as good as any.")
        check_row_bound(owner, self.row_bound)
        self._warn_of_spending()
        with without_warnings(math.isfinite(self.epsilon)):
            self._fit(X, owner)
        return self

    def _fit(self, X: Any, owner: str) -> None:
        X = read_rows(self, X)
        ranges = self._public_ranges(X.shape[1])
        terms = terms_of(self, owner, X.shape[0], divides=False)
        tails = (float(self.tail), 1.0 - float(self.tail))
        found = find_ranges(X, tails, terms, ranges=ranges, positive=False)
        self.lower_, self.upper_, self.count_noise_ = found.low, found.high, found.count_noise
        self.guarantee_, self._claims = found.guarantee, found

    def _make_card(self) -> Card:
        return self._claims.card

    def transform(self, X: Any) -> Array:
        """Scaled rows, (records, features)."""
        check_is_fitted(self)
        X = read_rows(self, X, reset=False)
        middle, half = self.lower_ / 2 + self.upper_ / 2, self.upper_ / 2 - self.lower_ / 2
        half = np.where(half > 0, half, 1.0)
        side = float(self.row_bound) / math.sqrt(X.shape[1])
        with np.errstate(over="ignore"):  # what overflows is clipped
            scaled: Array = np.clip((X - middle) / half, -1.0, 1.0) * side
        return scaled.astype(X.dtype, copy=False)

    def _public_ranges(self, features: int) -> Array | None:
        if self.ranges is None:
            return None
        owner = type(self).__name__
        try:
            low, high = self.ranges
            found = np.stack([np.broadcast_to(np.asarray(end, dtype=np.float64), features) for end in (low, high)], 1)
        except (TypeError, ValueError):
            found = np.full((features, 2), np.nan)
        if not (np.isfinite(found).all() and (found[:, 0] < found[:, 1]).all()):
            raise InputError(
                f"{owner}(ranges=...): (low, high) is two numbers, or two lists with one number for each of the "
                f"{features} columns, every low below its high."
            )
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
