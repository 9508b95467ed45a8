"""Where few targets that are far from 0 lie, from a second noisy histogram: test scores around 650, blood pressures.

Between powers of two all of them may lie in one bin, whose width says nothing of their spread, and a fit within so wide
a bound is lost in noise. Shapes are normal laws within the range that the first histogram found, and such laws of half
of the targets only, with the other half wider around the same middle or to one side of it: twelve years of school, or
all the points that there are. They are weighed by how probable the noisy counts of equal bins make them, as in
`column_scales`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from consenso.arrays import Array
from consenso.estimators.column_scales import weigh_shapes

# A range within so many powers of two, of one sign, is worth a second look.
MOST_POWERS = 3
# Equal bins, middles that are tried, and spreads over the width of the range: down to half of a bin.
BINS, MIDDLES = 64, 129
SPREADS = 2.0 ** np.arange(-7, -1)
# The other half is so many times as wide, or wider; it lies on both sides, or to the right, or to the left.
WIDER, SIDES = 4.0, (0, 1, -1)


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
    parts, means, squares = _make_shapes()
    logs = weigh_shapes(counts[None], parts, noise, records)[0]
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    mean, width = float(chances @ means), float(edges[-1] - edges[0])
    return float(edges[0]) + width * mean, width * math.sqrt(float(chances @ squares) - mean**2)


@lru_cache(maxsize=1)
def _make_shapes() -> tuple[Array, Array, Array]:
    """Parts of the records in bins from 0 to 1, (shapes, bins), and their means and mean squares."""
    middles, inner = np.linspace(0, 1, MIDDLES), np.linspace(0, 1, BINS + 1)[1:-1]
    below = {spread: ndtr((inner - middles[:, None]) / spread) for spread in SPREADS}
    made = [(law, middles, middles**2 + spread**2) for spread, law in below.items()]
    pairs = [(near, far) for near in SPREADS for far in SPREADS if far >= WIDER * near]
    for near, far in pairs:
        for side in SIDES:
            # Half of a normal law has its mean sqrt(2 / pi) away from its end.
            away = side * far * math.sqrt(2 / math.pi)
            law = (
                below[far]
                if not side
                else np.clip(2 * below[far] - 1, 0, 1)
                if side > 0
                else np.minimum(2 * below[far], 1)
            )
            squares = middles**2 + (near**2 + far**2) / 2 + middles * away
            made.append(((below[near] + law) / 2, middles + away / 2, squares))
    laws, means, squares = (np.concatenate(each) for each in zip(*made, strict=True))
    # What lies beyond the ends is counted in the last bins.
    return np.diff(laws, axis=1, prepend=0.0, append=1.0), means, squares
