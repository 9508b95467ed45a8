"""Targets whose bound was declared: it says how far one may be from 0, not where most are, nor how much they vary.

A fit counts its targets in bins of the bound. Where most lie in one of them, it knows nothing of their spread, and
noise that follows the bound is louder than they are. So it asks before it starts, for next to nothing
(docs/found-bounds.md): do half of the records lie in a narrow range? If so, targets are found as where no bound is
declared, within it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from consenso.estimators.column_search import leave_share
from consenso.estimators.declared_rows import FEW_SHARE, share_asking
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.private_rows import find_targets, share_targets, targets_of
from consenso.estimators.row_histograms import Records, noise_of, plan_histograms, release_histograms
from consenso.estimators.stages import Stages

# Equal bins of the bound, and how many of them are a narrow range. Of normal targets half lie in one if the bound is
# more than eleven standard deviations. The fit bears wider bounds where records are more than so many times the noise
# of a count that has the whole budget. The noise of a bin, as a part of the records, for few of them.
BINS, NARROW, BEARS, RANGE_NOISE = 32, 2, 250.0, 1 / 9
# Few records: whether half of the targets are within this part of the bound of 0.
SMALL = 1 / 8
# The noise of that, as a part of them, and what it may cost: of so few records targets are most of what is learnt, and
# a bound that is far too wide costs many times what they vary.
SMALL_NOISE, MOST_SHARE = 1 / 6, 0.08
# Half of the records, and of the fullest of many ranges so many standard deviations of noise.
HALF, CLEAR = 1 / 2, 1.0


@dataclass(frozen=True, kw_only=True)
class TargetShares:
    """Of the squared budget: the question where targets lie, asked in so many bins, and finding them."""

    asking: float
    finding: float
    bins: int

    @property
    def whole(self) -> float:
        """All of it, if they are looked for."""
        return self.asking + self.finding


def share_declared_targets(terms: PrivacyParams) -> TargetShares | None:
    """What it costs to look at targets whose bound was declared, from public facts; None where nothing is asked."""
    if terms.counts:
        return None
    clear = terms.records / noise_of(1.0, 1, terms, 1)
    many = BINS * 2 ** math.ceil(math.log2(max(clear / BEARS, 1.0)))
    for bins, noise, most in ((many, RANGE_NOISE, FEW_SHARE), (1, SMALL_NOISE, MOST_SHARE)):
        asking = share_asking(clear, noise)
        if asking <= most:
            return TargetShares(asking=asking, finding=share_targets(terms), bins=bins)
    return None


def find_declared_targets(
    records: Records, shares: TargetShares, stages: Stages, bound: float, *, centers: bool
) -> tuple[float, float] | None:
    """The middle of a narrower range and half of its width; None where the declared bound stays.

    centers: whether targets may be moved. What is not spent is left to the fit.
    """
    edges = np.array([-1, -SMALL, SMALL, 1]) if shares.bins == 1 else np.linspace(-1, 1, shares.bins + 1)
    planned = plan_histograms(
        stages, "targets within parts of target_bound", shares.asking, 1, times=1, bins=len(edges) - 1
    )
    (counts,) = release_histograms(stages, planned, 0, records, partial(targets_of, unit=bound), edges[None])
    most, least = float(counts[1]), HALF * stages.terms.records
    if shares.bins > 1:
        most = float(np.convolve(counts, np.ones(NARROW), "valid").max())
        least += CLEAR * math.sqrt(NARROW) * planned.scale(stages.terms.adjacency)
    if most < least:
        leave_share(shares.finding, stages)
        return None
    return find_targets(records, shares.finding, stages, centers=centers, declared=bound)
