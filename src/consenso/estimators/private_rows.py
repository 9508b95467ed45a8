"""Bounds that nobody declared, found within the budget of a fit (docs/found-bounds.md).

    1. where columns lie, and where targets do             centres and sizes: see column_search
    2. x -> (clip(x, low, high) - centre) / size           post-processing
    3. histograms of the lengths of these rows             row_bound

Sparse rows are not moved or rescaled, which would fill them: only their lengths are looked at. So it is where records
are too few for as many columns. What cannot be told from noise at all is taken to lie in [-1, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from consenso.arrays import Array
from consenso.estimators.column_scales import read_scales
from consenso.estimators.column_search import ColumnShares, find_columns, leave_share, share_columns
from consenso.estimators.length_scales import LENGTH_EDGES, read_length
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.quantiles import SIGNED_EDGES
from consenso.estimators.row_histograms import (
    MOST_SHARE,
    Records,
    bound_total,
    count_columns,
    needed_share,
    noise_of,
    plan_histograms,
    release_histograms,
    search_quantiles,
)
from consenso.estimators.row_map import Columns, RowMap
from consenso.estimators.stages import Stages
from consenso.estimators.target_scales import enclose, fine_edges, read_center
from consenso.privacy.earlier import Earlier
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND
from consenso.shards.cluster import sum_batches
from consenso.shards.intake import shrink_factors
from consenso.shards.stored import RowBatch

# Of the squared budget: what it costs, against what wrong bounds cost, on the development sets.
LENGTHS_SHARE, TARGETS_SHARE = 0.02, 0.02
# Most rows have lengths of one power of two: few records need less here than for targets.
MOST_FOR_LENGTHS = 0.05
# At epsilon 1 and delta 1e-5 the number of shortened rows then has a standard deviation of 117 records.
SHORTENED_SHARE = 0.001
# Share of the rows beyond the bound, and of targets beyond either end.
LENGTH_TAIL, TARGET_TAIL = 0.005, 0.005
# Fewer records: more rows may be longer than the bound, as many as so many standard deviations of noise, up to a part
# of them. A bound that is too long costs noise then, and a shortened row little.
LENGTH_NOISES, MOST_LENGTH_TAIL = 2.0, 0.1
# What noise adds outweighs what shortened rows lose, and the best public bounds of small development sets leave a fifth
# to a half of the rows longer; but rows whose lengths tell something lose it where they are shortened.
FEW_TAIL = 0.25
# They have one histogram, with as much of the budget that records are so many times the noise in a bin, over several of
# which lengths may scatter.
CLEAR_LENGTHS = 16.0
# Many records for as many columns, so that noise moves a model less than shortened rows do: the bound is longer by a
# part of what lies between the median length and it, and the longest rows are left alone. Many: records times mu are so
# many times the columns.
LENGTH_REACH, CLOSELY = 0.5, 100.0
# Few targets are clipped so many half widths of their range away from its middle: the fit sees how large residuals are
# by itself. Many are as far away as their tails reach (`_stretch`), up to a limit, which is lower the louder noise is:
# what is cut off pulls the mean to one side where one tail is long, but the fit counts targets and residuals in bins of
# the bound, and after two steps that have its noise; that noise stays the same if the limit falls as records times mu
# over columns do.
TARGET_REACH, FAR_REACH = 2.0, 4.0
# Normal targets need half of this, and noise may have moved the end of a range in by half.
NEAR_REACH = 3.0
# Few records: targets have one histogram, with as much of the budget that there are so many times as many records as
# noise in a bin. The fit counts targets within the range by itself.
ENOUGH = 12.0
# Most for a second one, and the range in standard deviations, which leaves a fortieth of normal targets at either end.
MOST_SECOND, SPREADS_AROUND = 0.05, 2.0


@dataclass(frozen=True, kw_only=True)
class RowShares:
    """Of the squared budget, what is spent on columns and on lengths of rows."""

    columns: ColumnShares
    lengths: float

    @property
    def whole(self) -> float:
        return self.columns.whole + self.lengths


def share_rows(records: Records, terms: PrivacyParams) -> RowShares:
    """What finding bounds on rows costs, from public facts."""
    return RowShares(columns=share_columns(records, terms), lengths=share_lengths(terms))


def share_lengths(terms: PrivacyParams) -> float:
    """What the lengths of rows cost."""
    if _are_few(LENGTHS_SHARE, terms):
        return _share_once(LENGTHS_SHARE, terms, MOST_FOR_LENGTHS, CLEAR_LENGTHS)
    return needed_share(LENGTHS_SHARE, 1, terms, enough=LENGTH_TAIL)


def share_targets(terms: PrivacyParams) -> float:
    """What finding bounds on targets costs."""
    if _are_few(TARGETS_SHARE, terms):
        return _share_first(terms) + _share_second(terms)
    return needed_share(TARGETS_SHARE, 1, terms, enough=TARGET_TAIL / 4)


def _share_first(terms: PrivacyParams) -> float:
    """For the powers of two between which few targets lie."""
    return _share_once(TARGETS_SHARE, terms, MOST_SHARE, ENOUGH)


def _share_second(terms: PrivacyParams) -> float:
    """For equal bins between these; what is not spent is left to the fit."""
    return _share_once(TARGETS_SHARE, terms, MOST_SECOND, ENOUGH)


def _share_once(usual: float, terms: PrivacyParams, most: float, clear: float) -> float:
    """What one histogram costs: the usual share, or so much that records are so many times the noise in a bin."""
    needed = usual * (clear * noise_of(usual, 1, terms, 1) / terms.records) ** 2
    return float(np.clip(needed, usual, most))


def _are_few(usual: float, terms: PrivacyParams) -> bool:
    """Whether records are too few for two histograms at their usual share."""
    return needed_share(usual, 1, terms, enough=1.0) > usual


def _length_tail(share: float, columns: int, terms: PrivacyParams) -> float:
    """The share of rows that may be longer than the bound: more where noise hides more, and hurts more than a bound."""
    if terms.counts:
        return LENGTH_TAIL
    hidden = min(LENGTH_NOISES * noise_of(share, 1, terms) / terms.records, MOST_LENGTH_TAIL)
    return max(hidden, _noise_tail(columns, terms), LENGTH_TAIL)


def _noise_tail(columns: int, terms: PrivacyParams) -> float:
    """The share of rows that may be longer for what noise costs.

    What noise adds to the error of a model is like the square of columns over records times mu, and so is what rows
    that are shortened may add.
    """
    return min(LENGTH_TAIL / _closeness(columns, terms) ** 2, FEW_TAIL)


def find_rows(records: Records, shares: RowShares, stages: Stages, *, centers: bool) -> RowMap:
    """Release where columns lie and how long rows are. centers: whether columns may be moved, not only rescaled.

    Where a unit has several rows, records have weights: what each of them counts.
    """
    columns = find_columns(records, shares.columns, stages, centers=centers)
    return find_lengths(records, columns, shares.lengths, stages)


def find_lengths(
    records: Records, columns: Columns | None, share: float, stages: Stages, declared: float | None = None
) -> RowMap:
    """Release how long rows are; declared: none is longer, or is shortened to that."""
    # In units of what was declared, so that the unit of a table does not matter.
    unit = 1.0 if declared is None else declared
    lengths = partial(_lengths, rows=RowMap(row_bound=None, columns=columns), unit=unit)
    longest = min(MOST_ROW_BOUND, _longest_row(columns)) if declared is None else declared
    if _are_few(LENGTHS_SHARE, stages.terms):
        scaled = None if columns is None else count_columns(records)
        usual = None if declared is None else 1.0
        bound = unit * _find_few_lengths(records, lengths, share, stages, scaled, usual)
        return RowMap(row_bound=min(max(bound, LEAST_ROW_BOUND), longest), columns=columns)
    tail = _length_tail(share, count_columns(records), stages.terms)
    # No doubt: where a bound that is a little short would cost much, there is the reach below.
    found = search_quantiles(
        stages, "lengths of rows", share, records, lengths, 1, (0.0, 1 - tail), positive=True, doubt=0.0
    )
    bound, middle = unit * float(found.high[0]), unit * float(found.middle[0])
    if not stages.terms.counts and _closeness(count_columns(records), stages.terms) >= 1:
        bound += LENGTH_REACH * (bound - middle)
    bound = min(max(bound, LEAST_ROW_BOUND), longest)
    return RowMap(row_bound=bound, columns=columns)


def _find_few_lengths(
    records: Records,
    lengths: Callable[[RowBatch], Array],
    share: float,
    stages: Stages,
    scaled: int | None,
    usual: float | None,
) -> float:
    """The length that a part of few rows exceeds.

    scaled: the number of columns, if they were brought to size 1. usual: a length that they are rather near than far
    from.
    """
    planned = plan_histograms(stages, "lengths of rows", share, 1, times=1, bins=len(LENGTH_EDGES) - 1)
    (counts,) = release_histograms(stages, planned, 0, records, lengths, LENGTH_EDGES[None])
    noise = planned.scale(stages.terms.adjacency)
    level = 1 - _noise_tail(count_columns(records), stages.terms)
    return read_length(counts, noise, bound_total(stages.terms), level, scaled, usual)


def _closeness(many: int, terms: PrivacyParams) -> float:
    """From 1 on noise moves a model of so many columns less than shortened rows do, by public facts."""
    return terms.records * terms.whole_mu / (CLOSELY * many)


def _longest_row(columns: Columns | None) -> float:
    """How long a row can be within the ranges that were released: noise in the lengths may say more, and is wrong."""
    if columns is None:
        return math.inf
    reach = np.maximum(np.abs(columns.low - columns.center), np.abs(columns.high - columns.center)) / columns.scale
    return max(float(np.linalg.norm(reach)), LEAST_ROW_BOUND)


def find_targets(
    records: Records, share: float, stages: Stages, *, centers: bool, declared: float | None = None
) -> tuple[float, float]:
    """Release where targets lie: the middle of their range, and half of its width; without centers 0 is the middle.

    declared: none is further from 0, or is moved to there.
    """
    # In units of what was declared, so that the unit of targets does not matter.
    unit = 1.0 if declared is None else declared
    low, high = _find_range(records, share, stages, partial(targets_of, unit=unit))
    if declared is not None:
        low, high = max(low, -1.0), min(high, 1.0)
    if not centers:
        return 0.0, unit * max(abs(low), abs(high), math.ulp(1.0))
    return unit * (low / 2 + high / 2), unit * max(high / 2 - low / 2, math.ulp(1.0))


def _find_range(
    records: Records, share: float, stages: Stages, targets: Callable[[RowBatch], Array]
) -> tuple[float, float]:
    """Release how far targets reach to either side."""
    if _are_few(TARGETS_SHARE, stages.terms):
        return _reach(*_find_few_targets(records, stages, targets))
    ends = (TARGET_TAIL, 1 - TARGET_TAIL)
    found = search_quantiles(stages, "histograms of targets", share, records, targets, 1, ends, positive=False)
    low, high, middle, inner = float(found.low[0]), float(found.high[0]), float(found.middle[0]), found.inner[:, 0]
    if stages.terms.counts:
        return _reach(low, high)
    most = FAR_REACH * _closeness(count_columns(records), stages.terms)
    most = float(np.clip(most, TARGET_REACH, FAR_REACH))
    return (
        middle - _stretch(middle - float(inner[0]), middle - low, most),
        middle + _stretch(float(inner[1]) - middle, high - middle, most),
    )


def _stretch(inner: float, outer: float, most: float) -> float:
    """How far a tail reaches that one in 20 passes at `inner` and one in 200 at `outer`, from the median.

    From there on it is taken to grow in every power of ten by the same part of what it grew by in the one before, as it
    did in the last one: to 1.5 times `outer` in all for normal targets, and to `most` times where it grows by as much
    in each, as that of exponential ones, or by more. But to three times `outer` at least, if that is allowed.
    """
    last = max(outer - inner, 0.0)
    grows = last / inner if inner > 0 else math.inf
    end = outer + last * grows / (1 - grows) if grows < 1 else math.inf
    return min(max(end, NEAR_REACH * outer), most * outer)


def _reach(low: float, high: float) -> tuple[float, float]:
    """A range around the same middle that is TARGET_REACH times as wide."""
    more = (TARGET_REACH - 1) * (high / 2 - low / 2)
    return low - more, high + more


def _find_few_targets(records: Records, stages: Stages, targets: Callable[[RowBatch], Array]) -> tuple[float, float]:
    """The powers of two between which few targets lie, or a range between these if 0 is far from it."""
    terms, total = stages.terms, bound_total(stages.terms)
    first, second = _share_first(terms), _share_second(terms)
    planned = plan_histograms(stages, "histogram of targets", first, 1, times=1)
    counts = release_histograms(stages, planned, 0, records, targets, SIGNED_EDGES[None])
    found = read_scales(counts, planned.scale(terms.adjacency), total)
    low, high = float(found.low[0]), float(found.high[0])
    ends = enclose(low, high)
    if ends is None:
        leave_share(second, stages)
        return low, high
    edges = fine_edges(ends)
    planned = plan_histograms(stages, "targets between these", second, 1, times=1, bins=len(edges) - 1)
    (fine,) = release_histograms(stages, planned, 0, records, targets, edges[None])
    mean, spread = read_center(fine, edges, planned.scale(terms.adjacency), total)
    return mean - SPREADS_AROUND * spread, mean + SPREADS_AROUND * spread


def plan_shortened(stages: Stages) -> Earlier:
    """Put the number of rows that a given bound shortens on the card."""
    told = {"name": "number of rows that were shortened", "add_remove": 1.0, "replace_one": 1.0, "size": 1}
    return stages.plan(SHORTENED_SHARE, **told)


def count_shortened(planned: Earlier, records: Records, bound: float, stages: Stages) -> float:
    """Release the share of rows that are longer than a bound that was given; 0 where noise alone may say as much."""
    exact = sum_batches(records, partial(count_long, bound=bound))
    noisy = float(stages.release(planned, 0, exact)[0])
    terms = stages.terms
    # Three standard deviations: a false alarm in one fit of 700.
    clear = noisy - 3 * planned.scale(terms.adjacency)
    return noisy / max(terms.records, noisy) if clear > 0 else 0.0


# Of the rows of a batch, wherever it is.


def targets_of(batch: RowBatch, unit: float) -> Array:
    return batch.targets[:, None] / unit


def _lengths(batch: RowBatch, rows: RowMap, unit: float) -> Array:
    return rows.measure(batch.X)[:, None] / unit


def count_long(batch: RowBatch, bound: float) -> Array:
    long = shrink_factors(batch.X, bound) < 1
    return np.array([np.count_nonzero(long) if batch.weights is None else batch.weights[long].sum()], dtype=np.float64)
