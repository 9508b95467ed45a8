"""How long most rows are, from one noisy histogram: for tables whose records are few for a second one.

Lengths scatter around a size that nobody knows, more or less: a shape is a middle and a spread, on a scale of powers of
two. All shapes are weighed by how probable the noisy counts make them, as in `column_scales`, and the bound is the
lower third of what they say. So it is found in noise in which no bin stands out.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from consenso.arrays import Array
from consenso.estimators.column_scales import FALLING, USUAL, weigh_shapes
from consenso.estimators.quantiles import EXPONENTS

# Bins in a power of two: more of them have more noise for lengths that scatter.
STEPS = 2
# Standard deviations of lengths around their middle, in powers of two: normalised rows; many columns of similar scales;
# few columns; heavy tails.
SPREADS = (0.03, 0.15, 0.3, 0.6, 1.2)
# Where shapes say different things: a bound that is too long costs noise in proportion, and one that is too short only
# makes rows alike.
CAREFUL = 1 / 3
# So many times less far are lengths from what they usually are, if columns were brought to size 1.
SCALED = 6.0
_LOGS = np.arange(STEPS * EXPONENTS[0], STEPS * EXPONENTS[-1] + 1) / STEPS
# A little more than powers of two, so that rows that somebody has normalised lie in one bin.
LENGTH_EDGES = np.append(0.0, np.exp2(_LOGS) * (1 + 1e-6))


def read_length(
    counts: Array,
    noise: float,
    records: tuple[float, float],
    level: float,
    columns: int | None = None,
    usual: float | None = None,
) -> float:
    """A length that a share `level` of the rows does not exceed, from counts between LENGTH_EDGES.

    records: at least and at most so many are counted. columns: how many there are, if each was brought to size 1; rows
    are then about as long as the root of it. usual: a length that they are rather near than far from.
    """
    parts, middles, spreads = _make_shapes()
    away = middles - (USUAL if usual is None else math.log2(usual))
    if columns is not None:
        away = (middles - math.log2(columns) / 2) * SCALED
    logs = weigh_shapes(counts[None], parts, noise, records)[0] - np.abs(away) / FALLING
    weights = np.exp(logs - logs.max())
    reach = middles + float(ndtri(level)) * spreads
    order = np.argsort(reach)
    below = np.cumsum(weights[order])
    return float(np.exp2(reach[order][np.searchsorted(below, CAREFUL * below[-1])]))


@lru_cache(maxsize=1)
def _make_shapes() -> tuple[Array, Array, Array]:
    """Parts of the records in the bins, (shapes, bins), and middles and spreads of the shapes."""
    middles = np.arange(2 * _LOGS[0] * STEPS, 2 * _LOGS[-1] * STEPS + 1) / (2 * STEPS)
    ends = np.append(-np.inf, _LOGS)
    laws = [np.diff(ndtr((ends - middles[:, None]) / spread), axis=1) for spread in SPREADS]
    return np.vstack(laws), np.tile(middles, len(SPREADS)), np.repeat(SPREADS, len(middles))
