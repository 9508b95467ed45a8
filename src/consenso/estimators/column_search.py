"""Where columns lie, found within the budget of a fit (docs/found-bounds.md).

    many records    two histograms of each column: [low, high] and the median
    few             is it worth it? a count of records whose cells are of very different sizes; if so, one
                    histogram of each column: centre and size
    too few         nothing: rows are only shortened

Columns become (clip(x, low, high) - centre) / size. Where their sizes are similar they keep their scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.estimators.column_scales import read_scales
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.quantiles import POWERS, SIGNED_EDGES
from consenso.estimators.row_histograms import (
    MOST_SHARE,
    Records,
    bound_total,
    count_columns,
    is_sparse,
    needed_share,
    noise_of,
    plan_histograms,
    release_histograms,
    search_quantiles,
)
from consenso.estimators.row_map import Columns, RowMap
from consenso.estimators.stages import Stages
from consenso.privacy.earlier import Earlier
from consenso.shards.cluster import sum_batches
from consenso.shards.intake import squared_norms
from consenso.shards.stored import RowBatch
from consenso.whole_steps import FEW_PRODUCTS

# Of the squared budget: what it costs, against what wrong bounds cost, on the development sets. Two histograms have at
# most MOST_TWICE.
COLUMNS_SHARE, MOST_TWICE = 0.04, 0.1
# Many records have less, so that noise in a bin is this part of them: ends of ranges are then off by some records,
# and there is room beyond them.
CLEARLY = 0.02
# One histogram has as much that there are so many times as many records as noise in a bin; where there are fewer than
# FEWEST times as many, columns are not looked at.
ENOUGH, FEWEST = 12.0, 2.0
# Cells are moved to within so many sizes of the centre.
REACH = 3.0
# What the question costs whether they are worth it: as much that its noise is a part of the records, within a range.
ASKING_NOISE, LEAST_TO_ASK, MOST_TO_ASK = 1 / 8, 0.002, 0.02
# A record speaks for it if its largest cell is so many times the lower quartile of those that are not 0; and so large a
# part of them has to.
APART, SPEAKING = 16.0, 1 / 3
APART_ROWS = "number of rows with cells of very different sizes"
# Of the width of a range: how far beyond it a cell is left where it is. Tails are left long, since scores may grow with
# them.
ROOM = 16.0
# Columns whose ranges differ by less than a factor stay as they are: rescaling costs longer rows. The fit learns second
# moments by itself, with an error like one over records times mu, and sees a column whose range is smaller than others
# by the root of that: that is the factor, within these limits. Where ranges differ by more, all are rescaled.
ALIKE, MOST_ALIKE = 8.0, 64.0
# Columns that keep their scales and have no 0 in their range are moved if that makes this part of the length of most
# rows out of them, by a noisy count: noise is less by the square of it. Rows of sparse or normalised tables hardly get
# shorter, and would lose their zeros and their common length.
SHORTER = 0.75
# Share of the records beyond either end of a column.
COLUMN_TAIL = 0.005


@dataclass(frozen=True, kw_only=True)
class ColumnShares:
    """Of the squared budget, what is spent on columns; no columns are looked at for 0.

    histograms: how many there are of each column. asking: for the question whether they are worth it. moving: for the
    question whether columns that keep their scales are to be moved. apart: by how much the cells of a record have to
    differ for it to speak for histograms.
    """

    columns: float = 0.0
    histograms: int = 2
    asking: float = 0.0
    moving: float = 0.0
    apart: float = APART

    @property
    def whole(self) -> float:
        """All of it, if they are."""
        return self.columns + self.asking + self.moving


def share_columns(records: Records, terms: PrivacyParams) -> ColumnShares:
    """What columns cost, from public facts. A number of records that is private decides nothing."""
    if is_sparse(records):
        return ColumnShares()
    many = count_columns(records)
    twice = needed_share(COLUMNS_SHARE, many, terms, enough=CLEARLY)
    if terms.counts:
        return ColumnShares(columns=twice)
    asking = (terms.whole_mu * terms.records * ASKING_NOISE) ** -2
    asking = float(np.clip(asking, LEAST_TO_ASK, MOST_TO_ASK))
    if twice <= COLUMNS_SHARE:
        return ColumnShares(columns=twice, moving=asking)
    if twice <= MOST_TWICE:
        return ColumnShares(columns=twice, asking=asking, moving=asking)
    needed = COLUMNS_SHARE * (ENOUGH * noise_of(COLUMNS_SHARE, many, terms, 1) / terms.records) ** 2
    columns = float(np.clip(needed, COLUMNS_SHARE, MOST_SHARE))
    if terms.records < FEWEST * noise_of(columns, many, terms, 1):
        return ColumnShares()
    return ColumnShares(columns=columns, histograms=1, asking=asking)


def find_columns(records: Records, shares: ColumnShares, stages: Stages, *, centers: bool) -> Columns | None:
    """Release where columns lie, if that is worth it. centers: whether columns may be moved, not only rescaled.

    What is not spent is left to the fit: stages.terms have less of a share then.
    """
    if not shares.columns:
        return None
    if shares.asking and not are_apart(records, shares, stages):
        leave_share(shares.columns + shares.moving, stages)
        return None
    if shares.histograms == 2:
        return _find_ranges(records, shares, stages, centers=centers)
    return _find_scales(records, shares.columns, stages, centers=centers)


def leave_share(share: float, stages: Stages) -> None:
    """What is not spent, by what was released, is left to the fit (docs/privacy.md#releases-before-a-fit)."""
    stages.terms = replace(stages.terms, share=stages.terms.share - share)


def are_apart(records: Records, shares: ColumnShares, stages: Stages) -> bool:
    """Whether cells of a record are of very different sizes, for many of them."""
    noisy = count_rows(APART_ROWS, records, partial(_count_apart, apart=shares.apart), shares.asking, stages)
    return noisy > SPEAKING * stages.terms.records


def _are_shorter(records: Records, columns: Columns, share: float, stages: Stages) -> bool:
    """Whether moving columns makes most rows shorter; where their number is private, nothing is asked."""
    if not share:
        return True
    if not columns.center.any():
        leave_share(share, stages)
        return True
    test = partial(_count_shorter, columns=columns)
    noisy = count_rows("number of rows that are shorter around medians", records, test, share, stages)
    return noisy > stages.terms.records / 2


def count_rows(name: str, records: Records, test: Callable[[RowBatch], Array], share: float, stages: Stages) -> float:
    """Release a number of rows."""
    planned: Earlier = stages.plan(share, name=name, add_remove=1.0, replace_one=1.0, size=1)
    return float(stages.release(planned, 0, sum_batches(records, test))[0])


def _find_ranges(records: Records, shares: ColumnShares, stages: Stages, *, centers: bool) -> Columns:
    tails = (COLUMN_TAIL, 1 - COLUMN_TAIL)
    many = count_columns(records)
    # No doubt: a range that is a little short moves no cell, since there is room beyond it.
    found = search_quantiles(
        stages, "histograms of columns", shares.columns, records, _cells, many, tails, positive=False, doubt=0.0
    )
    if centers:
        center, size = found.middle, found.high / 2 - found.low / 2
    else:
        center, size = np.zeros(len(found.low)), np.maximum(np.abs(found.low), np.abs(found.high))
    width = found.high - found.low
    # Constant for nearly all records: what else such a column holds is taken for another value of an indicator.
    is_constant = (width <= 1.5 * found.bin) | (width <= 2 * POWERS[0]) | (size <= 0)
    size = np.where(is_constant, np.maximum(1.0, found.bin), size)
    room = np.where(is_constant, size, ROOM * width)
    columns = Columns(low=found.low - room, high=found.high + room, center=center, scale=size)
    if not _are_alike(size[~is_constant], stages.terms):
        leave_share(shares.moving, stages)
        return columns
    center = np.where((found.low <= 0) & (found.high >= 0), 0.0, center)
    moved = replace(columns, center=center, scale=np.ones(many))
    if _are_shorter(records, moved, shares.moving, stages):
        return moved
    return replace(moved, center=np.zeros(many))


def _find_scales(records: Records, share: float, stages: Stages, *, centers: bool) -> Columns:
    many = count_columns(records)
    planned = plan_histograms(stages, "histograms of columns", share, many, times=1)
    edges = np.tile(SIGNED_EDGES, (many, 1))
    counts = release_histograms(stages, planned, 0, records, _cells, edges)
    found = read_scales(counts, planned.scale(stages.terms.adjacency), bound_total(stages.terms))
    reach = REACH * found.size
    center = found.center if centers else np.zeros(many)
    size = found.size if centers else np.hypot(found.center, found.size)
    return Columns(low=found.center - reach, high=found.center + reach, center=center, scale=size)


def _are_alike(size: Array, terms: PrivacyParams) -> bool:
    """Whether columns of these sizes can stay on their scales."""
    return not len(size) or float(size.max()) <= alike_factor(terms) * float(size.min())


def alike_factor(terms: PrivacyParams) -> float:
    """By how much sizes of columns may differ, if the fit is to see all of them."""
    return ALIKE if terms.counts else float(np.clip(math.sqrt(terms.records * terms.whole_mu), ALIKE, MOST_ALIKE))


def _cells(batch: RowBatch) -> Array:
    cells: Array = batch.X
    return cells


def _count_apart(batch: RowBatch, apart: float) -> Array:
    """Of the rows of a batch those whose lower quartile of cells that are not 0 is so many times below the largest."""
    X, which = batch.X, np.zeros(batch.X.shape[0], dtype=np.bool_)
    if X.size > FEW_PRODUCTS:
        from consenso.kernels.copies import find_apart

        find_apart(np.ascontiguousarray(X), apart, which)
        return sum_rows(which, batch)
    sizes = np.abs(X)
    most = sizes.max(axis=1)
    small, full = (np.count_nonzero(each & (sizes > 0), axis=1) for each in (sizes < most[:, None] / apart, sizes > 0))
    return sum_rows(small > full // 4, batch)


def _count_shorter(batch: RowBatch, columns: Columns) -> Array:
    moved = RowMap(row_bound=None, columns=columns).scale(batch.X)
    lengths = squared_norms(moved)
    kept = squared_norms(moved + columns.center)
    return sum_rows(lengths < SHORTER**2 * kept, batch)


def sum_rows(which: NDArray[np.bool_], batch: RowBatch) -> Array:
    return np.array([which.sum() if batch.weights is None else batch.weights[which].sum()], dtype=np.float64)
