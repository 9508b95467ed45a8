"""Bounds that nobody declared, found within the budget of a fit (docs/estimators.md#bounds-that-nobody-knows).

    1. histograms of the columns, and of the targets       [low, high] and the median of each
    2. x -> (clip(x, low, high) - median) / half width     post-processing, with a width of room at either end
    3. histograms of the lengths of these rows             row_bound

The median of a column of indicators is where most of them are, so that rows of many indicators stay short. Sparse rows
are not moved or rescaled, which would fill them: only their lengths are looked at. So it is where records are too few
for as many columns. What cannot be told from noise at all is taken to lie in [-1, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from consenso.arrays import Array
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.quantiles import DOUBT, POWERS, SIGNED_EDGES, Quantiles, count_exactly, noise_quantile, search
from consenso.estimators.row_map import Columns, RowMap
from consenso.estimators.stages import Stages
from consenso.privacy.earlier import Earlier
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND
from consenso.shards.cluster import sum_batches
from consenso.shards.intake import shrink_factors, squared_norms
from consenso.shards.stored import RowBatch, RowBatches

# Of the squared budget: what it costs, against what wrong bounds cost, on the development sets of benchmarks/tables.py.
COLUMNS_SHARE, LENGTHS_SHARE, TARGETS_SHARE = 0.04, 0.02, 0.02
# Few records need more, to be seen at all: so much that a bin with this part of them is clear of noise, and no more
# than that part of the budget.
SEEN, MOST_SHARE = 1 / 6, 0.15
# Most rows have lengths of one power of two: less will do.
MOST_FOR_LENGTHS = 0.1
# Columns are not looked at one by one where not even a bin with a third of the records would be clear.
HOPELESS = 1 / 3
# At epsilon 1 and delta 1e-5 the number of shortened rows then has a standard deviation of 117 records.
SHORTENED_SHARE = 0.001
# Of the width of a range: how far beyond it a cell is left where it is. Tails are left long, since scores may grow with
# them.
ROOM = 16.0
# Columns whose ranges differ by less than this factor stay as they are: rescaling would cost more in longer rows than
# it gains, on the development sets. Where one has a range that is so much smaller than another's, all are rescaled.
ALIKE = 64.0
# Share of the records beyond either end of a column, of rows beyond the bound, and of targets beyond either end.
COLUMN_TAIL, LENGTH_TAIL, TARGET_TAIL = 0.005, 0.005, 0.005
# Few records: more rows may be longer than the bound, as many as so many standard deviations of noise, up to a part of
# them. A bound that is too long costs noise then, and a shortened row little.
LENGTH_NOISES, MOST_LENGTH_TAIL = 2.0, 0.1
# Targets are clipped so many half widths of their range away from its middle: the fit sees how large residuals are by
# itself, so that a wide bound costs little, and targets that are clipped cost more. Few records: at the range.
TARGET_REACH = 2.0


Records = RowBatch | RowBatches


@dataclass(frozen=True, kw_only=True)
class RowShares:
    """Of the squared budget, what is spent on ranges of columns and on lengths of rows; no ranges for 0."""

    columns: float
    lengths: float

    @property
    def whole(self) -> float:
        """Both."""
        return self.columns + self.lengths


def share_rows(records: Records, terms: PrivacyParams) -> RowShares:
    """What finding bounds on rows costs, from public facts."""
    columns = 0.0 if is_sparse(records) else _needed(COLUMNS_SHARE, _width(records), terms)
    if columns and not terms.counts and _level(columns, _width(records), terms) > HOPELESS:
        columns = 0.0
    return RowShares(columns=columns, lengths=_needed(LENGTHS_SHARE, 1, terms, MOST_FOR_LENGTHS))


def is_sparse(records: Records) -> bool:
    """Whether rows are compressed."""
    return sparse.issparse(records.X) if isinstance(records, RowBatch) else bool(getattr(records, "sparse", False))


def _width(records: Records) -> int:
    return int(records.X.shape[1] if isinstance(records, RowBatch) else records.shape[1])


def share_targets(terms: PrivacyParams) -> float:
    """What finding bounds on targets costs."""
    return _needed(TARGETS_SHARE, 1, terms)


def _needed(usual: float, many: int, terms: PrivacyParams, most: float = MOST_SHARE) -> float:
    """The usual share, or what few records need; a number of records that is private decides nothing."""
    if terms.counts:
        return usual
    return float(np.clip(usual * (_level(usual, many, terms) / SEEN) ** 2, usual, most))


def _length_tail(share: float, terms: PrivacyParams) -> float:
    """The share of rows that may be longer than the bound: more where noise hides more, and hurts more than a bound."""
    if terms.counts:
        return LENGTH_TAIL
    return float(np.clip(LENGTH_NOISES * _noise(share, 1, terms) / terms.records, LENGTH_TAIL, MOST_LENGTH_TAIL))


def _level(share: float, many: int, terms: PrivacyParams) -> float:
    """What noise alone reaches in a bin of `many` histograms that are released twice, as a part of the records."""
    return _noise(share, many, terms) * noise_quantile(many * (len(SIGNED_EDGES) - 1)) / terms.records


def _noise(share: float, many: int, terms: PrivacyParams) -> float:
    """The standard deviation of the noise in such a bin."""
    worlds = 1.0 if terms.adjacency == "add-remove" else 2.0
    return math.sqrt(2 * worlds * many / share) / terms.whole_mu


def find_rows(records: Records, shares: RowShares, stages: Stages, *, centers: bool) -> RowMap:
    """Release where columns lie and how long rows are. centers: whether columns may be moved, not only rescaled.

    Where a unit has several rows, records have weights: what each of them counts.
    """
    columns = _find_columns(records, shares.columns, stages, centers=centers) if shares.columns else None
    lengths = partial(_lengths, rows=RowMap(row_bound=None, columns=columns))
    tail = _length_tail(shares.lengths, stages.terms)
    doubt = DOUBT if tail == LENGTH_TAIL else 0.0
    found = _search(
        stages, "lengths of rows", shares.lengths, records, lengths, 1, (0.0, 1 - tail), positive=True, doubt=doubt
    )
    bound = min(max(float(found.high[0]), LEAST_ROW_BOUND), MOST_ROW_BOUND, _longest_row(columns))
    return RowMap(row_bound=bound, columns=columns)


def _longest_row(columns: Columns | None) -> float:
    """How long a row can be within the ranges that were released: noise in the lengths may say more, and is wrong."""
    if columns is None:
        return math.inf
    reach = np.maximum(np.abs(columns.low - columns.center), np.abs(columns.high - columns.center)) / columns.scale
    return max(float(np.linalg.norm(reach)), LEAST_ROW_BOUND)


def find_targets(records: Records, share: float, stages: Stages, *, centers: bool) -> tuple[float, float]:
    """Release where targets lie: the middle of their range, and half of its width; without centers 0 is the middle."""
    tails = (TARGET_TAIL, 1 - TARGET_TAIL)
    found = _search(stages, "histograms of targets", share, records, _targets, 1, tails, positive=False)
    low, high = float(found.low[0]), float(found.high[0])
    if not centers:
        return 0.0, max(abs(low), abs(high), math.ulp(1.0))
    reach = TARGET_REACH if share <= TARGETS_SHARE else 1.0
    return low / 2 + high / 2, max(reach * (high / 2 - low / 2), math.ulp(1.0))


def plan_shortened(stages: Stages) -> Earlier:
    """Put the number of rows that a given bound shortens on the card."""
    told = {"name": "number of rows that were shortened", "add_remove": 1.0, "replace_one": 1.0, "size": 1}
    return stages.plan(SHORTENED_SHARE, **told)


def count_shortened(planned: Earlier, records: Records, bound: float, stages: Stages) -> float:
    """Release the share of rows that are longer than a bound that was given; 0 where noise alone may say as much."""
    exact = sum_batches(records, partial(_count_long, bound=bound))
    noisy = float(stages.release(planned, 0, exact)[0])
    terms = stages.terms
    # Three standard deviations: a false alarm in one fit of 700.
    clear = noisy - 3 * planned.scale(terms.adjacency)
    return noisy / max(terms.records, noisy) if clear > 0 else 0.0


def _find_columns(records: Records, share: float, stages: Stages, *, centers: bool) -> Columns:
    tails = (COLUMN_TAIL, 1 - COLUMN_TAIL)
    many = _width(records)
    # No doubt: a range that is a little short moves no cell, since there is room beyond it.
    found = _search(stages, "histograms of columns", share, records, _cells, many, tails, positive=False, doubt=0.0)
    if centers:
        center, size = found.middle, found.high / 2 - found.low / 2
    else:
        center, size = np.zeros(len(found.low)), np.maximum(np.abs(found.low), np.abs(found.high))
    width = found.high - found.low
    # Constant for nearly all records: what else such a column holds is taken for another value of an indicator.
    is_constant = (width <= 1.5 * found.bin) | (width <= 2 * POWERS[0]) | (size <= 0)
    size = np.where(is_constant, 1.0, size)
    room = np.where(is_constant, 1.0, ROOM * width)
    if _are_alike(size):
        center, size = np.where((found.low <= 0) & (found.high >= 0), 0.0, center), np.ones(many)
    return Columns(low=found.low - room, high=found.high + room, center=center, scale=size)


def _are_alike(size: Array) -> bool:
    """Whether columns can stay on their scales."""
    return float(size.max()) <= ALIKE * float(size.min())


def _search(
    stages: Stages,
    name: str,
    share: float,
    records: Records,
    values: Callable[[RowBatch], Array],
    many: int,
    tails: tuple[float, float],
    *,
    positive: bool,
    doubt: float = DOUBT,
) -> Quantiles:
    """Noisy quantiles of as many numbers of each record: a unit adds at most one to the bins of each histogram."""
    planned = stages.plan(
        share,
        name=name,
        add_remove=math.sqrt(many),
        replace_one=math.sqrt(2 * many),
        size=many * (len(SIGNED_EDGES) - 1),
        times=2,
    )
    return search(
        lambda stage, edges: stages.release(
            planned, stage, sum_batches(records, partial(_count, values=values, edges=edges))
        ),
        planned.scale(stages.terms.adjacency),
        many,
        tails,
        ranges=None,
        positive=positive,
        total=float(stages.terms.records) if _counts_once(stages.terms) else None,
        doubt=doubt,
    )


def _counts_once(terms: PrivacyParams) -> bool:
    """Whether every unit adds 1, and their number is public."""
    return terms.unit == "record" and terms.adjacency == "replace-one"


# Of the rows of a batch, wherever it is.


def _cells(batch: RowBatch) -> Array:
    cells: Array = batch.X
    return cells


def _targets(batch: RowBatch) -> Array:
    return batch.targets[:, None]


def _lengths(batch: RowBatch, rows: RowMap) -> Array:
    return np.sqrt(squared_norms(rows.scale(batch.X)))[:, None]


def _count(batch: RowBatch, values: Callable[[RowBatch], Array], edges: Array) -> Array:
    return count_exactly(values(batch), edges, batch.weights)


def _count_long(batch: RowBatch, bound: float) -> Array:
    long = shrink_factors(batch.X, bound) < 1
    return np.array([np.count_nonzero(long) if batch.weights is None else batch.weights[long].sum()], dtype=np.float64)
