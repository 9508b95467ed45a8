"""The penalty where none is asked for, in the units of rows and slopes.

    square      R^2 / (p n)          1/n, scikit-learn's default, for columns of unit variance, whose rows are sqrt(p)
                                     long; of labels at most R^2 / (16 n); numbers, of which a model may
                                     explain nearly all, have a tenth of it, divided by the unit of residuals where
                                     the loss is one of absolute values
    1-norm      s R / sqrt(p n)      a standard deviation over the draw of the records of a coordinate of the mean
                                     gradient: then its bias costs as much as the draw of the records costs anyway;
                                     of numbers it says which coefficients are kept (`noise_levels.RELAXED`)

for rows of length R at most, p columns, n records, slopes of size s at most. As a prior the square allows scores a
variance of as many as there are columns: of labels at least the largest that they call for, however few columns there
are; of numbers ten times that, in units of what a model leaves of them. It fades as records are added and only
decides what no record speaks of. Both are stated for rows and slopes at their bounds. A solver that has released how
large they are takes less in proportion (`Request.penalty_follows`), and adds what privacy noise hides to the 1-norm:
then bounds that are generous cost noise, and no bias.
"""

from __future__ import annotations

import math

from consenso.algorithms.preconditioning.label_levels import LARGEST
from consenso.losses import Loss
from consenso.regularizers import L1, L2, ElasticNet, Regularizer

# Of the square, for numbers: chosen among three on ten small tables while looking at eleven others
# (docs/solvers-measured.md).
NUMBERS = 0.1


def usual_penalty(
    loss: Loss, *, row_bound: float, features: int, records: float, target_bound: float | None, l1_ratio: float = 0.0
) -> Regularizer:
    """l1_ratio times the 1-norm and (1 - l1_ratio) times the square."""
    real = loss.targets == "real"
    square = row_bound**2 / (features * records) * (NUMBERS if real else min(1.0, features / LARGEST))
    if math.isinf(loss.curvature_bound) and real:
        square /= float(target_bound or 1.0)
    if l1_ratio == 0:
        return L2(strength=square)
    slope = loss.slope_bound if math.isfinite(loss.slope_bound) else float(target_bound or 1.0)
    level = slope * row_bound / math.sqrt(features * records)
    if l1_ratio == 1:
        return L1(strength=level)
    return ElasticNet(l1=l1_ratio * level, l2=(1 - l1_ratio) * square)
