"""A decision threshold for a target recall, released after the fit (docs/privacy.md#a-threshold).

    q(t) = (1 - recall) * (records of the second class with a score above t) - recall * (those at or below t)

The recall at t is at least the target exactly if q(t) >= 0. q falls as t grows, so that its root is found by halving a
public grid of scores; each step releases one noisy q. A step counts as passed only if q is clear of its noise: with a
probability of CONFIDENCE no step passes wrongly, and the recall on the rows of the fit is what was asked for.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from consenso.arrays import Array
from consenso.estimators.stages import Stages
from consenso.privacy.earlier import Earlier

# Of the squared budget. At epsilon 1 and delta 1e-5 a step then has a standard deviation of 29 records.
THRESHOLD_SHARE = 0.1
# Halvings of the grid; more make it finer and noise louder.
STEPS = 6
CONFIDENCE = 0.95
# What rounding adds to how far q moves: four roundings of a number of records in either world, up to 2^31 of them.
ROUNDING = 2.0**-18
# The grid of scores reaches so far to either side: log odds of 8 are one record in 3,000.
REACH = 8.0


class ThresholdWarning(UserWarning):
    """A threshold that was found, and decides alike for everybody."""


def warn_of_threshold(owner: str, recall: float, threshold: float, reach: float) -> None:
    """Warn where a released threshold lies at an end of the public grid: all scores are on one side of it."""
    if abs(threshold) < reach:
        return
    everybody = threshold < 0
    said = (
        "all records are predicted to be of the second class, because no threshold holds this recall clear of noise: "
        "there are too few records of it for this budget; ask for a lower recall, or give a larger epsilon or more "
        "records"
        if everybody
        else "no record is predicted to be of the second class but those with scores beyond the grid; the model is "
        "surer than its records allow, so give a penalty alpha or a larger epsilon"
    )
    warnings.warn(f"{owner}(target_recall={recall:g}): {said}.", ThresholdWarning, stacklevel=4)


@dataclass(frozen=True, kw_only=True)
class ThresholdSearch:
    """A threshold that is still to be found. reach: largest score of the grid."""

    recall: float
    reach: float
    planned: Earlier

    @classmethod
    def plan(cls, stages: Stages, recall: float, reach: float) -> ThresholdSearch:
        """Put it on the card, before the fit is planned."""
        one = max(recall, 1 - recall)
        told = {"name": "recall at thresholds", "add_remove": one + ROUNDING, "replace_one": 1 + ROUNDING, "size": 1}
        return cls(recall=recall, reach=reach, planned=stages.plan(THRESHOLD_SHARE, times=STEPS, **told))

    def find(self, stages: Stages, scores: Array, positive: NDArray[np.bool_], own: Array | None) -> float:
        """The largest threshold of the grid whose recall is clear of noise; -inf where none is.

        own: what each row counts where a unit has several, at most 1 together, (rows,).
        """
        grid = np.linspace(-self.reach, self.reach, 2**STEPS - 1)
        counts = positive.astype(np.float64) if own is None else positive * own
        clear = -float(special.ndtri((1 - CONFIDENCE) / STEPS)) * self.planned.scale(stages.terms.adjacency)
        low, high = -1, len(grid)  # passed, and not passed
        for step in range(STEPS):
            middle = (low + high) // 2
            above = scores > grid[middle]
            exact = (1 - self.recall) * math.fsum(counts[above]) - self.recall * math.fsum(counts[~above])
            noisy = float(stages.release(self.planned, step, np.array([exact]))[0])
            low, high = (middle, high) if noisy >= clear else (low, middle)
        return float(grid[low]) if low >= 0 else -math.inf
