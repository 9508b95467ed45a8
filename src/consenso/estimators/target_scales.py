"""Where few targets that are far from 0 lie, from a second noisy histogram: test scores around 650, blood pressures.

Between powers of two all of them may lie in one bin, whose width says nothing of their spread, and a fit within so wide
a bound is lost in noise. Shapes are normal laws within the range that the first histogram found, weighed by how
probable the noisy counts of equal bins make them, as in `column_scales`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from consenso.arrays import Array
from consenso.estimators.column_scales import weigh_shapes

# A range within so many powers of two, of one sign, is worth a second look.
MOST_POWERS = 3
# Equal bins, middles that are tried, and spreads over the width of the range: down to half of a bin.
BINS, MIDDLES = 64, 129
SPREADS = 2.0 ** np.arange(-7, -1)


def enclose(low: float, high: float) -> tuple[float, float] | None:
    """The powers of two around a range that is far from 0; None for others."""
    if low * high <= 0:
        return None
    small, large = sorted((abs(low), abs(high)))
    first, last = math.floor(math.log2(small)), math.ceil(math.log2(large))
    if last - first > MOST_POWERS:
        return None
    ends = 2.0**first, 2.0 ** max(last, first + 1)
    return ends if low > 0 else (-ends[1], -ends[0])


def fine_edges(ends: tuple[float, float]) -> Array:
    """Edges of equal bins, (bins + 1,)."""
    return np.linspace(*ends, BINS + 1)


def read_center(counts: Array, edges: Array, noise: float, records: tuple[float, float]) -> tuple[float, float]:
    """Mean and standard deviation of the targets, the doubt about the mean included."""
    width = edges[-1] - edges[0]
    middles = np.tile(np.linspace(edges[0], edges[-1], MIDDLES), len(SPREADS))
    spreads = np.repeat(SPREADS * width, MIDDLES)
    outer = np.concatenate([[-np.inf], edges[1:-1], [np.inf]])  # what lies beyond is counted in the last bins
    parts = np.diff(ndtr((outer - middles[:, None]) / spreads[:, None]), axis=1)
    logs = weigh_shapes(counts[None], parts, noise, records)[0]
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    mean = float(chances @ middles)
    return mean, math.sqrt(float(chances @ (spreads**2 + (middles - mean) ** 2)))
