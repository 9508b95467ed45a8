"""Quantiles from noisy histograms, for those who have no public bounds.

Where no range is public, a first histogram has bins between powers of two, 2^-30 to 2^30, of either sign: whatever the
numbers are, a few bins hold them, and bins whose noisy count is no larger than noise alone would be are taken for
empty. A second histogram has equal bins between the quantiles that the first one found; what follows from the counts is
post-processing. The two share the budget equally.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from consenso.arrays import Array

FINE_BINS = 32
# How often noise alone fills a bin, in a release; and the standard deviations by which a range is clear of noise.
FALSE_ALARM, DOUBT = 1e-3, 1.0
# Standard deviations from which on a sign is there, in sizes that were found, or a size beside them: wrongly once in
# 160 times.
CLEAR = 2.5
EXPONENTS = np.arange(-30, 31)
POWERS = np.ldexp(1.0, EXPONENTS)
SIGNED_EDGES = np.concatenate([-POWERS[::-1], POWERS])
# Rows that somebody has normalised are a little longer or shorter than 1 by rounding, and belong into one bin.
POSITIVE_EDGES = np.concatenate([[0.0], POWERS * (1 + 1e-6)])


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Noisy quantiles of several quantities, their medians, and the widths of the bins, each (quantities,).

    inner: quantiles within these, beyond which there are ten times as many, (2, quantities).
    """

    low: Array
    high: Array
    middle: Array
    bin: Array
    inner: Array


def search(
    count: Callable[[int, Array], Array],
    scale: float,
    quantities: int,
    tails: tuple[float, float],
    *,
    ranges: Array | None,
    positive: bool,
    total: float | None = None,
    doubt: float = DOUBT,
) -> Quantiles:
    """Quantiles from noisy histograms; `count` gives the counts of a stage between edges (quantities, bins + 1).

    total: of the counts of each quantity, where it is public. doubt: by how many standard deviations of the noise a
    range has to be clear of it.
    """
    stage = 0
    if ranges is None:
        edges = np.tile(POSITIVE_EDGES if positive else SIGNED_EDGES, (quantities, 1))
        seen = count(stage, edges)
        coarse = _zero_out_noise(seen, scale) if positive else _zero_out_signed_noise(seen, scale)
        # What cannot be told from noise is taken for small: a range that noise chose may be anything up to 2^30.
        ranges = np.stack(
            [_support(row, edges[k], tails) if row.any() else np.array([-1.0, 1.0]) for k, row in enumerate(coarse)]
        )
        if positive:
            ranges[:, 0] = 0.0
        stage += 1
    steps = np.linspace(0.0, 1.0, FINE_BINS + 1)
    edges = ranges[:, :1] + (ranges[:, 1:] - ranges[:, :1]) * steps
    counts = count(stage, edges)
    found = np.stack([_quantiles(counts[k], edges[k], tails, doubt * scale, total) for k in range(quantities)])
    middles = np.array([_middle(counts[k], edges[k]) for k in range(quantities)])
    middles = np.clip(middles, found[:, 0], found[:, 1])
    beyond = [10 * tails[0], 10 * (1 - tails[1])]
    inner = np.stack(
        [
            [
                _upper_end(sign * edges[k][::sign], counts[k][::sign], tail, total) * sign
                for sign, tail in zip((-1, 1), beyond, strict=True)
            ]
            for k in range(quantities)
        ],
        axis=1,
    )
    inner = np.stack([np.clip(inner[0], found[:, 0], middles), np.clip(inner[1], middles, found[:, 1])])
    return Quantiles(low=found[:, 0], high=found[:, 1], middle=middles, bin=edges[:, 1] - edges[:, 0], inner=inner)


def count_exactly(values: Array, edges: Array, weights: Array | None = None) -> Array:
    """How many of values (records, quantities) lie between edges (quantities, bins + 1): not private.

    weights: what each record counts, (records,).
    """
    return np.stack([_counts(values[:, which], edges[which], weights) for which in range(len(edges))])


def _middle(counts: Array, edges: Array) -> float:
    """The median; in an outermost bin whose outer edge is next to 0 that edge, where zeros of indicators lie."""
    below = np.cumsum(np.maximum(counts, 0.0))
    place = int(np.searchsorted(below, below[-1] / 2)) if below[-1] > 0 else len(counts) // 2
    for end, edge in ((0, edges[0]), (len(counts) - 1, edges[-1])):
        if place == end and abs(edge) <= POWERS[0]:
            return float(edge)
    return float(edges[place] / 2 + edges[place + 1] / 2)


def _counts(values: Array, edges: Array, weights: Array | None = None) -> Array:
    """How many values lie between edges; what lies beyond is put into the outermost bins."""
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(place, weights, minlength=len(edges) - 1).astype(np.float64)


def _zero_out_noise(counts: Array, scale: float) -> Array:
    """Counts that noise alone does not reach in any bin, and their neighbours that it does not reach in these."""
    found = _grow(counts > scale * noise_quantile(counts.size), counts > CLEAR * scale)
    return np.where(found, counts, 0.0)


def _grow(found: NDArray[np.bool_], clear: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Bins (quantities, bins) that were found, and clear ones in a run beside them.

    Noise may fill one of many bins anywhere; one beside those that hold records is filled by tails of the records.
    """
    while True:
        beside = np.zeros_like(found)
        beside[:, 1:] |= found[:, :-1]
        beside[:, :-1] |= found[:, 1:]
        more = found | (beside & clear)
        if (more == found).all():
            return found
        found = more


def _zero_out_signed_noise(counts: Array, scale: float) -> Array:
    """The same for bins of either sign: sizes are looked for in both, then signs in all sizes that were found.

    A column around 0 has as many records on either side: a range that has seen one of them only is no scale for it.
    """
    level, half = scale * noise_quantile(counts.size), counts.shape[1] // 2
    sides = np.stack([counts[:, :half][:, ::-1], counts[:, half + 1 :]])  # (2, quantities, sizes)
    found = (sides.sum(axis=0) > math.sqrt(2) * level) | (sides > level).any(axis=0)
    found = _grow(found, (sides.sum(axis=0) > math.sqrt(2) * CLEAR * scale) | (sides > CLEAR * scale).any(axis=0))
    totals, noise = np.where(found, sides, 0.0).sum(axis=2), scale * np.sqrt(found.sum(axis=1))
    there = (totals > CLEAR * noise) | (sides > level).any(axis=2)
    kept = np.where(found & there[:, :, None], np.maximum(sides, 0.0), 0.0)
    middle = np.where(counts[:, half] > level, counts[:, half], 0.0)
    return np.hstack([kept[0][:, ::-1], middle[:, None], kept[1]])


def noise_quantile(many: int) -> float:
    """What the largest of so many noises passes once in a thousand releases, in standard deviations.

    A bin that noise alone fills may lie anywhere, and a column whose range reaches there is as good as lost.
    """
    return -float(special.ndtri(FALSE_ALARM / many))


def _support(counts: Array, edges: Array, tails: tuple[float, float]) -> Array:
    """Edges of the bins in which the two quantiles lie: the lower edge of the first, the upper edge of the second."""
    share = np.cumsum(counts) / counts.sum()
    low = int(np.searchsorted(share, tails[0], side="right"))
    high = int(np.searchsorted(share, tails[1], side="left"))
    return np.array([edges[min(low, len(counts) - 1)], edges[min(high, len(counts) - 1) + 1]])


def _quantiles(counts: Array, edges: Array, tails: tuple[float, float], doubt: float, total: float | None) -> Array:
    """The shortest range of bins that has all but the tails, clear of the noise of the bins in it.

    So noise of bins that are empty plays no part. Where it leaves a doubt the range is the longer one, longer by a
    factor of two at most, which costs as much noise in what follows, while one that is too short moves records.
    """
    whole = max(float(counts.sum()), 0.0) if total is None else total
    if tails[0] == 0:
        return _upper_quantile(counts, edges, tails[1], doubt, whole)
    below = np.concatenate([[0.0], np.cumsum(counts)])
    for many in range(1, len(counts)):
        inside = below[many:] - below[:-many]
        start = int(np.argmax(inside))
        if inside[start] >= (tails[1] - tails[0]) * whole + doubt * math.sqrt(many):
            return edges[[start, start + many]]
    return edges[[0, -1]]


def _upper_end(edges: Array, counts: Array, tail: float, total: float | None) -> float:
    """The number that a share `tail` exceeds, between edges. Noise of empty bins is of either sign, and cancels."""
    whole = max(float(counts.sum()), np.finfo(float).tiny) if total is None else total
    beyond = np.maximum.accumulate(np.concatenate([[0.0], np.cumsum(counts[::-1])])) / whole
    return float(np.interp(tail, beyond, edges[::-1]))


def _upper_quantile(counts: Array, edges: Array, level: float, doubt: float, whole: float) -> Array:
    """A range from the first edge: what lies beyond is counted from the top, over fewer bins than what lies below."""
    beyond, most = 0.0, len(counts)
    for many in range(1, len(counts)):
        beyond += float(counts[-many])
        if beyond + doubt * math.sqrt(many) <= (1 - level) * whole:
            most = len(counts) - many
    return edges[[0, most]]
