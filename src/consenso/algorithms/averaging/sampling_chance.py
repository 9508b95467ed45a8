"""What chance in the choice of the records does to sums of slopes: columns seem to tell that do not, without any noise.

At a model whose odds are right, slopes of labels have the mean 0 and a variance that scores tell,

    one column    the mean of slope times entry has the variance E[slope^2] v / n
    all steps     hear the same records, so that u = - rate * (sum of all gradients) has chance in proportion to rate

E[slope^2] is that of normal scores. Where columns move together, scores are larger than their squares tell, and slopes
smaller: so chance is taken for no larger than the columns that moved least allow (Efron 2004, "empirical null").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

from consenso.algorithms.preconditioning.length_laws import NORMAL
from consenso.arrays import Array

# The part of the columns that moved least. Where few columns tell, any part shows the same; of words that nearly all
# tell, a smaller part is less of a signal. A tenth was as good on words and dense columns, and is known less exactly.
LEAST_MOVED = 0.25
# Slopes of scores that are not normal have less variance than the law says: 0.95 of it was there for dense columns, 0.7
# for drawn words, 0.35 to 0.5 for real texts. All of it costs texts 2 % of their loss, half of it dense columns 10 %.
# Fitted on these. On tables that were made afterwards (benchmarks.utility.wide_unseen) 0.4 to 1 changes the loss of
# drawn texts by 0.8 % at most; that of dense columns at epsilon 5 by +2.3 (0.4) to -2.8 % (1), at epsilon 1 by 0.4.
MOST = 0.6


@dataclass(frozen=True, kw_only=True)
class SlopeLaw:
    """What is expected of the slopes of records at a model."""

    deviation: float  # the root of their mean square
    size: float  # their mean absolute value
    heard: float  # by how much they change with a score

    @classmethod
    def of_labels(cls, constant: float, size: float, width: float) -> SlopeLaw:
        """Of log loss clipped at this width, where odds are those of normal scores around a constant."""
        odds = expit(constant + size * NORMAL)
        up, down = np.minimum(1 - odds, width), np.minimum(odds, width)
        free = odds * (1 - odds <= width) + (1 - odds) * (odds <= width)  # slopes that are not clipped
        return cls(
            deviation=math.sqrt(float(np.mean(odds * up**2 + (1 - odds) * down**2))),
            size=float(np.mean(odds * up + (1 - odds) * down)),
            heard=float(np.mean(odds * (1 - odds) * free)),
        )


def find_chance_share(moved: Array, noise: Array, chance: Array) -> float:
    """The part of the expected variance by chance that the numbers show beside that of their noise, up to MOST.

    If all of them were noise and chance, LEAST_MOVED of them would be within this quantile of a normal law.
    """
    if not chance.any():
        return 0.0
    shown = np.square(moved / ndtri((1 + LEAST_MOVED) / 2)) - noise
    share = np.quantile(shown / np.maximum(chance, np.finfo(float).tiny), LEAST_MOVED)
    return float(np.clip(share, 0.0, MOST))
