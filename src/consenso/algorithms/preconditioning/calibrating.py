"""What steps make of labels that rows tell nothing of: the bias of the constant part of a model, which is taken off it.

With an intercept, the mean probability of a class is its share. Steps do not get quite there: clipped slopes let a rare
class weigh less than it should, few steps from zero end short of the scores of a rare class, and damping pulls. All of
that is known but for the shares, which were counted: the same steps, without noise, are taken on labels of these shares
whose rows are all alike. Where they end, less where they should, is the bias. This is post-processing of counts.

Where rows tell labels apart, few slopes are clipped, and those lie on both sides of the scores at which labels change.
In the same steps on scores of a normal law the bias falls with their variance: to two thirds of itself at 1, and beyond
10 it has the other sign. So less of it is taken off the more rows tell (`keep_bias`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from consenso.algorithms.preconditioning.label_levels import shares_of
from consenso.arrays import Array

# The variance that the first gradient speaks for at which half of the bias is left: that of scores is 1 then, since the
# gradient is taken for that of a loss which has flattened. Checked on 214 tables (docs/solvers-measured.md).
HALF_TOLD = 4.0


def keep_bias(variance: float) -> float:
    """The part of the bias of equal rows that is left where the first gradient spoke for scores of this variance."""
    return 1 / (1 + (variance / HALF_TOLD) ** 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConstantSteps:
    """Steps of the scores of a constant model."""

    start: Array  # scores (outputs,)
    origin: Array  # the constant model of the labels, to which damping pulls
    limit: float  # at which slopes are clipped
    pace: float  # how far a slope of 1 moves a score
    pulled: float  # the part of the way to the origin that damping takes
    momentum: float  # by which part of the last step the next one goes on
    steps: int
    first: int  # of the steps whose points are averaged

    def compute_bias(self) -> Array:
        """Where they end, less the origin, (outputs,)."""
        rest = self.limit, self.pace, self.pulled, self.momentum, self.steps, self.first
        return _compute_bias(tuple(self.start), tuple(self.origin), *rest)


@lru_cache(maxsize=4)  # the end of a fit asks several times
def _compute_bias(
    start: tuple[float, ...],
    origin: tuple[float, ...],
    limit: float,
    pace: float,
    pulled: float,
    momentum: float,
    steps: int,
    first: int,
) -> Array:
    centre, scores, total = np.array(origin), np.array(start), np.zeros(len(start))
    before, counted = scores, _list_shares(centre)
    for step in range(steps):
        # The slope at a record of class y is q - e_y, which for two labels is one number.
        q = _list_shares(scores)
        lengths = 1 - q if len(origin) == 1 else np.sqrt(np.maximum(q @ q - 2 * q + 1, 0.0))
        weights = counted * np.minimum(1.0, limit / np.maximum(lengths, limit))
        slope = weights.sum() * q - weights
        moved = scores - pace * slope[-len(scores) :] - pulled * (scores - centre) + momentum * (scores - before)
        before, scores = scores, moved
        total = total + scores if step >= first else total
    bias: Array = total / (steps - first) - centre
    bias.flags.writeable = False  # it is given out again
    return bias


def _list_shares(scores: Array) -> Array:
    """Of all classes, (classes,); scores of two labels are those of the second one."""
    shares = shares_of(scores)
    return np.append(1 - shares, shares) if len(shares) == 1 else shares
