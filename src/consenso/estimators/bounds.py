"""Bounds on rows and targets for those who know none: private quantiles, charged."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.histograms import Ranges, find_ranges
from consenso.estimators.privacy_params import check_terms, is_number, terms_of
from consenso.estimators.reading import read_arrays, without_warnings
from consenso.privacy.card import Card
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Ledger
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND, Adjacency
from consenso.shards.intake import squared_norms

_OWNER = "private_bounds"


@dataclass(frozen=True, kw_only=True)
class PrivateBounds:
    """Released bounds: for `row_bound=` and `target_bound=` of an estimator, and what they cost.

    count_noise: standard deviation of the noise on every count of records; with few times as many records the bounds
    say little.
    """

    row_bound: float
    target_bound: float | None
    guarantee: Guarantee
    count_noise: float
    _told: Ranges = field(repr=False)

    @property
    def card(self) -> Card:
        """The privacy card, for every observer; made when it is first looked at."""
        return self._told.card


@dataclass(frozen=True, kw_only=True)
class BoundsRequest:
    """What a function is asked for of privacy."""

    epsilon: float
    delta: float | None
    adjacency: Adjacency
    records: int | None
    ledger: Ledger | str | Path | None
    random_state: Any


def private_bounds(
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float | None = None,
    quantile: float = 0.95,
    adjacency: Adjacency = "replace-one",
    records: int | None = None,
    ledger: Ledger | str | Path | None = None,
    random_state: Any = None,
) -> PrivateBounds:
    """A private quantile of the 2-norms of the rows of X, and of the sizes of the targets if y is given.

    What it costs is spent in addition to what a model spends on the data: bounds.guarantee.compose(model.guarantee_).
    epsilon, delta, adjacency, records, ledger and random_state as for the estimators; `records` is needed under
    add-remove only for the default delta.
    """
    asked: Any = BoundsRequest(
        epsilon=epsilon, delta=delta, adjacency=adjacency, records=records, ledger=ledger, random_state=random_state
    )
    check_terms(asked, _OWNER)
    if not is_number(quantile) or not 0 < quantile <= 1:
        raise InputError(f"{_OWNER}(quantile={quantile!r}): a quantile lies in (0, 1]; 0.95 clips one row in twenty.")
    with without_warnings(math.isfinite(epsilon)):
        values = _sizes(X, y)
    terms = terms_of(asked, _OWNER, len(values), divides=False)
    with without_warnings(terms.is_private):
        found = find_ranges(values, (0.0, float(quantile)), terms, ranges=None, positive=True)
    return PrivateBounds(
        row_bound=min(max(float(found.high[0]), LEAST_ROW_BOUND), MOST_ROW_BOUND),
        target_bound=None if y is None else max(float(found.high[1]), math.ulp(0.0)),
        guarantee=found.guarantee,
        count_noise=found.count_noise,
        _told=found,
    )


def _sizes(X: Any, y: Any) -> Array:
    """Lengths of rows, and sizes of targets beside them, (records, 1 or 2)."""
    X, y = read_arrays(_OWNER, X, y)
    lengths = np.sqrt(squared_norms(X))
    columns = [lengths] if y is None else [lengths, np.abs(np.asarray(y, dtype=np.float64))]
    return np.stack(columns, axis=1)
