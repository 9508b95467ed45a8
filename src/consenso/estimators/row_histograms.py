"""Noisy histograms of numbers of each record, released within the budget of a fit; and how loud their noise is."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse

from consenso.arrays import Array
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.quantiles import DOUBT, SIGNED_EDGES, Quantiles, count_exactly, noise_quantile, search
from consenso.estimators.stages import Stages
from consenso.privacy.earlier import Earlier
from consenso.shards.cluster import sum_batches
from consenso.shards.stored import RowBatch, RowBatches

# Few records need more of the budget, to be seen at all: so much that a bin with this part of them is clear of noise,
# and no more than that part of the budget.
SEEN, MOST_SHARE = 1 / 6, 0.15
# Less than this would save nothing that a fit notices.
LEAST_SHARE = 0.001

Records = RowBatch | RowBatches


def is_sparse(records: Records) -> bool:
    """Whether rows are compressed."""
    return sparse.issparse(records.X) if isinstance(records, RowBatch) else bool(getattr(records, "sparse", False))


def count_columns(records: Records) -> int:
    """How many columns there are."""
    return int(records.X.shape[1] if isinstance(records, RowBatch) else records.shape[1])


def needed_share(usual: float, many: int, terms: PrivacyParams, most: float = MOST_SHARE, *, enough: float) -> float:
    """The usual share, or what few or many records need; a number of records that is private decides nothing.

    enough: many records have less, so that noise in a bin is this part of them.
    """
    if terms.counts:
        return usual
    least = usual * (noise_of(usual, many, terms) / (enough * terms.records)) ** 2
    least = max(min(usual, least), LEAST_SHARE)
    return float(np.clip(usual * (largest_noise(usual, many, terms) / SEEN) ** 2, least, most))


def largest_noise(share: float, many: int, terms: PrivacyParams) -> float:
    """What noise alone reaches in a bin of `many` histograms that are released twice, as a part of the records."""
    return noise_of(share, many, terms) * noise_quantile(many * (len(SIGNED_EDGES) - 1)) / terms.records


def noise_of(share: float, many: int, terms: PrivacyParams, times: int = 2) -> float:
    """The standard deviation of the noise in a bin of `many` histograms that are released so many times."""
    worlds = 1.0 if terms.adjacency == "add-remove" else 2.0
    return math.sqrt(times * worlds * many / share) / terms.whole_mu


def plan_histograms(
    stages: Stages, name: str, share: float, many: int, *, times: int, bins: int = len(SIGNED_EDGES) - 1
) -> Earlier:
    """Put histograms of so many numbers on the card: a unit adds at most one to the bins of each."""
    return stages.plan(
        share,
        name=name,
        add_remove=math.sqrt(many),
        replace_one=math.sqrt(2 * many),
        size=many * bins,
        times=times,
    )


def release_histograms(
    stages: Stages, planned: Earlier, time: int, records: Records, values: Callable[[RowBatch], Array], edges: Array
) -> Array:
    """Noisy counts (numbers, bins) of values of each record between edges (numbers, bins + 1)."""
    return stages.release(planned, time, sum_batches(records, partial(_count, values=values, edges=edges)))


def search_quantiles(
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
    """Noisy quantiles of as many numbers of each record, from two histograms of each."""
    planned = plan_histograms(stages, name, share, many, times=2)
    return search(
        lambda stage, edges: release_histograms(stages, planned, stage, records, values, edges),
        planned.scale(stages.terms.adjacency),
        many,
        tails,
        ranges=None,
        positive=positive,
        total=float(stages.terms.records) if counts_once(stages.terms) else None,
        doubt=doubt,
    )


def counts_once(terms: PrivacyParams) -> bool:
    """Whether every unit adds 1, and their number is public."""
    return terms.unit == "record" and terms.adjacency == "replace-one"


def bound_total(terms: PrivacyParams) -> tuple[float, float]:
    """At least and at most so much is counted in a histogram; how much is private where units may count less than 1."""
    return (1.0 if counts_once(terms) else 0.5) * terms.records, float(terms.records)


def _count(batch: RowBatch, values: Callable[[RowBatch], Array], edges: Array) -> Array:
    return count_exactly(values(batch), edges, batch.weights)
