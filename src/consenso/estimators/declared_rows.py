"""Rows whose bound was declared: it says how long one may be, not how long most are, nor where columns lie.

Columns far below the others, columns that vary little around means far from 0, and all columns where most rows are far
shorter than the bound, hide in noise. So a fit asks before it starts, for next to nothing (docs/found-bounds.md):

    1. a number of records: are cells of very different sizes?  if so, rows are found as where no bound is declared
    2. a number of records: are rows longer than half of the    if not, a shorter bound is found
       bound (a smaller part where noise is low)?
    3. the mean row, and a number of records: are rows much     if so, columns are moved by it, and lengths are found
       shorter around it?

Otherwise the declared bound stays, and the fit has what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from consenso.arrays import Array
from consenso.estimators.column_search import (
    ColumnShares,
    alike_factor,
    are_apart,
    count_rows,
    find_columns,
    leave_share,
    share_columns,
    sum_rows,
)
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.private_rows import count_long, find_lengths, share_lengths
from consenso.estimators.row_histograms import Records, count_columns, is_sparse
from consenso.estimators.row_map import Columns, RowMap
from consenso.estimators.stages import Stages
from consenso.rows import BLOCK_NUMBERS, Layout, Rows
from consenso.shards.cluster import sum_batches
from consenso.shards.intake import shrink_factors, squared_norms
from consenso.shards.stored import RowBatch
from consenso.whole_steps import FEW_PRODUCTS

# Of the squared budget: nothing that a fit notices.
LEAST_SHARE, MOST_SHARE, MOST_FOR_MEAN = 0.0005, 0.005, 0.01
# The noise of a number of records, as a part of them. Few records have more noise, and then spend more; where that
# would be more than FEW_SHARE, nothing is asked.
ASKING_NOISE, FEW_NOISE, FEWEST_NOISE, FEW_SHARE = 1 / 16, 1 / 8, 1 / 4, 0.02
# Of normal numbers of one size the largest of some is so many times their lower quartile.
NORMAL_QUARTILES = 6.0
# A bound is that of few long rows, or of none, if no more rows than a part of them, and so many standard deviations of
# noise, are longer than this part of it: half of a bound that one row in twenty exceeds is passed by a third of those
# that lie along one direction. Where records times mu are more than so many, shortened rows cost a fit more than noise
# does: then it bears wider bounds, in proportion, down to a part of which most rows are longer unless their tails are
# heavy.
SHORT, BEARS, SHORTEST, LONG_ROWS, CLEAR = 1 / 2, 500.0, 1 / 8, 1 / 8, 1.5
# Rows are much shorter around their mean if that takes off all but one in so many of their length: the fit sees around
# what columns lie by itself if that is up to the root of records times mu away, in the size of the columns; a part of
# that, within a range. Noise in the mean row, over all columns, is at most half of what is left then.
SHORTER, LEAST_SHORTER, MOST_SHORTER, HALF = 1 / 4, 4.0, 8.0, 1 / 2
# A column has a mean if that is so many standard deviations of its noise away from 0.
STANDS_OUT = 3.0
# The grid of the mean row has so many bits below the bound on rows: sums over all records are exact in 53.
BITS = 20
# Rows are shortened to this part less than their bound, which rounding does not reach.
CLOSE = 1e-9


@dataclass(frozen=True, kw_only=True)
class DeclaredShares:
    """Of the squared budget: questions of sizes and of short rows; the mean row, and what it is worth; and lengths."""

    columns: ColumnShares
    short: float
    mean: float
    shorter: float
    lengths: float

    @property
    def scales(self) -> float:
        """What columns of very different sizes cost, once that is known."""
        return self.columns.columns + self.columns.moving + self.lengths

    @property
    def means(self) -> float:
        """The most that the mean row costs, and what follows it."""
        return self.mean + self.shorter + self.lengths if self.mean else 0.0

    @property
    def following(self) -> float:
        """The most that follows where columns are alike."""
        return self.short + self.lengths + self.means

    @property
    def whole(self) -> float:
        """The most of all that may be asked."""
        return self.columns.asking + max(self.scales if self.columns.columns else 0.0, self.following)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangedRows:
    """The map of rows that replaces a declared bound, why, and how columns are changed."""

    rows: RowMap
    why: str
    how: str = ""

    @property
    def bound(self) -> float:
        """How long rows may be now."""
        assert self.rows.row_bound is not None
        return self.rows.row_bound

    def say(self, share: float) -> str:
        """For whoever declared the bound; share: of the squared budget, what it took."""
        there, after = (" there", ", after they were shortened to row_bound") if self.how else ("", "")
        return (
            f"{self.why}, so that most would be lost in the noise: {self.how}rows are shortened to the 2-norm "
            f"{self.bound:.4g}{there}, in fit and in predict, by what was found in the data for {share:.1%} of "
            f"the squared budget{after}."
        )


def share_declared(records: Records, terms: PrivacyParams, *, centers: bool) -> DeclaredShares | None:
    """What it costs to look at rows whose bound was declared, from public facts; None where nothing is asked."""
    if terms.counts:
        return None
    many = terms.whole_mu * terms.records
    asking, short = (share_asking(many, most) for most in (FEW_NOISE, FEWEST_NOISE))
    if short > FEW_SHARE:
        return None
    shares = share_columns(records, terms)
    if asking > FEW_SHARE:
        shares = ColumnShares()
    worlds = 1.0 if terms.adjacency == "add-remove" else 2.0
    mean = (worlds * _shorter_factor(terms) * math.sqrt(count_columns(records)) / (HALF * many)) ** 2
    mean = max(LEAST_SHARE, mean) if centers and mean <= MOST_FOR_MEAN and not is_sparse(records) else 0.0
    return DeclaredShares(
        columns=replace(shares, asking=asking if shares.columns else 0.0, apart=NORMAL_QUARTILES * alike_factor(terms)),
        short=short,
        mean=mean,
        shorter=asking if mean else 0.0,
        lengths=share_lengths(terms),
    )


def find_declared(
    records: Records, shares: DeclaredShares, stages: Stages, row_bound: float, *, centers: bool
) -> ChangedRows | None:
    """Rows on scales of their own, if that is worth it; None where the declared bound stays.

    centers: whether columns may be moved, not only rescaled. What is not spent is left to the fit.
    """
    left = shares.whole - shares.columns.asking
    if shares.columns.columns and are_apart(records, shares.columns, stages):
        leave_share(left - shares.scales, stages)
        columns = find_columns(records, replace(shares.columns, asking=0.0), stages, centers=centers)
        assert columns is not None
        rows = find_lengths(records, replace(columns, within=row_bound), shares.lengths, stages)
        why = "Columns are of very different sizes"
        return ChangedRows(rows=rows, why=why, how="columns are moved into ranges and ")
    leave_share(left - shares.following, stages)
    shorter = _find_shorter(records, shares, stages, row_bound)
    columns = None
    if shares.mean:
        columns = _find_means(records, shares, stages, row_bound if shorter is None else shorter.bound)
    if columns is None:
        return shorter
    rows = find_lengths(records, columns, shares.lengths, stages)
    why = "Columns lie far from 0 for how much they vary"
    return ChangedRows(rows=rows, why=why, how="columns are moved by their means and ")


def _find_shorter(records: Records, shares: DeclaredShares, stages: Stages, row_bound: float) -> ChangedRows | None:
    """Release a shorter bound, if most rows are far within the declared one."""
    many = stages.terms.whole_mu * stages.terms.records
    part = float(np.clip(SHORT * BEARS / many, SHORTEST, SHORT))
    test = partial(count_long, bound=part * row_bound)
    long = count_rows("number of rows longer than a part of row_bound", records, test, shares.short, stages)
    noise = 1 / (math.sqrt(shares.short) * stages.terms.whole_mu)
    if long > LONG_ROWS * stages.terms.records + CLEAR * noise:
        leave_share(shares.lengths, stages)
        return None
    found = find_lengths(records, None, shares.lengths, stages, declared=row_bound)
    return ChangedRows(rows=found, why="Most rows are far shorter than row_bound")


def share_asking(many: float, most: float) -> float:
    """For a number of records with noise of a part of them; many: records over the noise with the whole budget."""
    return max(LEAST_SHARE, min(MOST_SHARE, (many * ASKING_NOISE) ** -2), (many * most) ** -2)


def _shorter_factor(terms: PrivacyParams) -> float:
    return float(np.clip(SHORTER * math.sqrt(terms.records * terms.whole_mu), LEAST_SHORTER, MOST_SHORTER))


def _find_means(records: Records, shares: DeclaredShares, stages: Stages, row_bound: float) -> Columns | None:
    """Release the mean row; columns are moved by it if most rows are much shorter then. row_bound: of all rows."""
    many, step = count_columns(records), 2.0 ** (math.ceil(math.log2(row_bound)) - BITS)
    # A unit's rows are rounded to the grid each by itself; its weights are at most 1 together.
    most = row_bound / step + stages.terms.rows_per_unit * math.sqrt(many) / 2
    planned = stages.plan(shares.mean, name="mean row", add_remove=most, replace_one=2 * most, size=many)
    total = stages.release(planned, 0, sum_batches(records, partial(_sum_cells, row_bound=row_bound, step=step)))
    mean, noise = (each * step / stages.terms.records for each in (total, planned.scale(stages.terms.adjacency)))
    center = np.where(np.abs(mean) > STANDS_OUT * noise, mean, 0.0)
    if not center.any():
        leave_share(shares.shorter + shares.lengths, stages)
        return None
    test = partial(_count_shorter, center=center, factor=_shorter_factor(stages.terms))
    shorter = count_rows("number of rows that are shorter around the mean", records, test, shares.shorter, stages)
    if shorter <= stages.terms.records / 2:
        leave_share(shares.lengths, stages)
        return None
    ends = np.full(many, row_bound)
    return Columns(low=-ends, high=ends, center=center, scale=np.ones(many), within=row_bound)


# Of the rows of a batch, wherever it is.


def _sum_cells(batch: RowBatch, row_bound: float, step: float) -> Array:
    """The sum of the rows, none longer than the bound, in whole steps."""
    X = np.ascontiguousarray(batch.X, dtype=batch.X.dtype if batch.X.dtype == np.float32 else np.float64)
    total, weights = np.zeros(X.shape[1]), batch.weights
    if weights is None and X.size > FEW_PRODUCTS:
        from consenso.kernels.copies import sum_within

        # Most rows are clearly within the bound, whatever the order in which their squares are added.
        is_long = np.zeros(len(X), dtype=np.bool_)
        sum_within(X, (row_bound * (1 - 2 * CLOSE)) ** 2, 1 / step, total, is_long)
        X = X[is_long]
    factors = shrink_factors(X, row_bound * (1 - CLOSE))
    own = factors if weights is None else factors * weights
    return total + Rows(X, Layout(np.array([0, len(X)]))).exact_sums(own, step).reshape(-1)


def _count_shorter(batch: RowBatch, center: Array, factor: float) -> Array:
    X, shorter = batch.X, np.empty(len(batch.X), dtype=np.bool_)
    length = max(1, BLOCK_NUMBERS // max(1, len(center)))
    for start in range(0, len(X), length):
        block = X[start : start + length]
        shorter[start : start + length] = squared_norms(block - center) * factor**2 < squared_norms(block)
    return sum_rows(shorter, batch)
