"""Where numbers lie, from one noisy histogram between powers of two: for tables whose records are few for a second one.

A shape says which part of the records lies in which bin: sizes that scatter around a power of two, or numbers that
scatter around 0; of one sign, or of both; with a part of zeros; or zeros and ones. The shape is taken that is the most
probable given the noisy counts (docs/found-bounds.md):

    log P(shape | counts)  =  (n <counts, shape> - n^2 |shape|^2 / 2) / noise^2  +  log P(shape)

All bins of a column speak together, so that it is found in noise in which no bin of it stands out. How probable a
size is beforehand is learnt from all columns together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from consenso.arrays import Array, IntArray
from consenso.estimators.quantiles import EXPONENTS, POWERS, SIGNED_EDGES

# Standard deviations of sizes around their middle, in powers of two, and how frequent they are beforehand: ages and
# heights; incomes; sales.
SPREADS = {0.3: 1.0, 0.8: 1.0, 1.6: 1.0, 3.0: 0.2}
ZEROS = (0.0, 0.3, 0.6, 0.85)
# Beforehand: half of the columns are within 16 times 4, tables in thousandths or millions are rare. One in ten is
# negative, one in five has zeros and ones.
USUAL, FALLING, NEGATIVE, INDICATORS = 2.0, 6.0, 0.1, 0.25
# So many columns count as much as what is thought beforehand; and so often it is learnt from them.
COLUMNS, TIMES = 4.0, 8
# Of the records, at either end of a range; and of sizes, those of which the typical one is computed.
TAIL, HIGHEST = 0.02, 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class Shapes:
    """Shapes, as parts of the records in the bins, (shapes, bins); and of each the middle size in half powers of two.

    center, size: mean and standard deviation without the longest tails; 0 and the typical size where 0 is among the
    numbers. chances: beforehand. ends: TAIL of the records lie beyond either, (2, shapes).
    """

    parts: Array
    place: IntArray
    center: Array
    size: Array
    chances: Array
    ends: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Scales:
    """Centres and sizes of the most probable shape, and the median range by their chances; each (columns,)."""

    center: Array
    size: Array
    low: Array
    high: Array


def read_scales(counts: Array, noise: float, records: tuple[float, float]) -> Scales:
    """From counts (columns, bins) between SIGNED_EDGES, with noise of this standard deviation.

    records: at least and at most so many are counted in a column.
    """
    shapes = _make_shapes()
    evidence = weigh_shapes(counts, shapes.parts, noise, records)
    places = np.bincount(shapes.place, shapes.chances).astype(np.float64)
    usual, within = places, shapes.chances / places[shapes.place]
    chances = np.zeros_like(evidence)
    for _ in range(TIMES):
        logs = evidence + np.log(places[shapes.place] * within)
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        seen = np.convolve(np.bincount(shapes.place, chances.sum(axis=0)), [0.25, 0.5, 0.25], "same")
        places = (COLUMNS * usual + seen) / (COLUMNS + len(counts))
    best = chances.argmax(axis=1)
    low, high = (_find_median(each, chances) for each in shapes.ends)
    return Scales(center=shapes.center[best], size=shapes.size[best], low=low, high=high)


def _find_median(values: Array, chances: Array) -> Array:
    """Of a value of each shape, for each column: what few improbable shapes say, however far away, does not matter."""
    order = np.argsort(values)
    below = np.cumsum(chances[:, order], axis=1)
    return np.asarray(values[order][(below < below[:, -1:] / 2).sum(axis=1)])


def weigh_shapes(counts: Array, parts: Array, noise: float, records: tuple[float, float]) -> Array:
    """How probable noisy counts (quantities, bins) are given each shape (shapes, bins): log likelihoods.

    records: at least and at most so many are counted; the most probable number in between is taken.
    """
    overlap, square = counts @ parts.T, (parts**2).sum(axis=1)
    many = np.clip(overlap / square, *records)
    logs: Array = many * (overlap - many * square / 2) / noise**2
    return logs


@lru_cache(maxsize=1)
def _make_shapes() -> Shapes:
    middles = np.arange(2 * EXPONENTS[0], 2 * EXPONENTS[-1] + 1) / 2
    laws = [np.diff(ndtr((EXPONENTS - middles[:, None]) / spread), axis=1) for spread in SPREADS]
    around = np.diff(2 * ndtr(POWERS / 2 ** middles[:, None]), axis=1)
    signs = (((0, 1), 1.0), ((1, 0), NEGATIVE))
    made = [
        _spread(law, sign, zeros, chance * usual)
        for law, usual in zip(laws, SPREADS.values(), strict=True)
        for sign, chance in signs
        for zeros in ZEROS
    ]
    made += [_spread(around, sign, 0.0, chance) for sign, chance in signs]
    made += [_spread(around, (0.5, 0.5), zeros, 1.0) for zeros in ZEROS]
    usual = np.exp(-np.abs(middles - USUAL) / FALLING)
    parts, center, size, chances = (np.concatenate(part) for part in zip(*made, strict=True))
    chances = chances * np.tile(usual, len(made))
    one = np.zeros(len(POWERS) - 1)
    one[np.searchsorted(POWERS, 1.0)] = 1.0
    indicators = np.stack([_sign(one[None], (0, 1), zeros)[0] for zeros in (0.3, 0.5, 0.7, 0.85, 0.95, 1.0)])
    rare = np.full(len(indicators), INDICATORS * chances.sum() / len(indicators))
    parts = np.vstack([parts, indicators])
    ends = [np.interp([TAIL, 1 - TAIL], np.cumsum(each), SIGNED_EDGES[1:]) for each in parts]
    return Shapes(
        parts=parts,
        ends=np.array(ends).T,
        place=np.append(np.tile(np.arange(len(middles)), len(made)), np.full(len(rare), len(middles) // 2)),
        center=np.append(center, np.zeros(len(rare))),
        size=np.append(size, np.ones(len(rare))),
        chances=np.append(chances, rare) / (chances.sum() + rare.sum()),
    )


def _spread(law: Array, signs: tuple[float, float], zeros: float, chance: float) -> tuple[Array, ...]:
    """Shapes of a law of sizes (middles, sizes), with these parts of negative and positive numbers and of zeros."""
    law = law / law.sum(axis=1, keepdims=True)
    cumulated = np.cumsum(law, axis=1)
    top = np.argmax(cumulated >= HIGHEST, axis=1)
    width = np.diff(POWERS)
    inside = np.arange(law.shape[1]) <= top[:, None]
    sizes = np.where(inside, POWERS[:-1] + width / 2, (POWERS[:-1] + width / 2)[top][:, None])
    if zeros or min(signs) > 0:
        center, size = np.zeros(len(law)), np.sqrt((law * sizes**2).sum(axis=1))
    else:
        mean = (law * sizes).sum(axis=1)
        spread = (sizes - mean[:, None]) ** 2 + np.where(inside, width, 0.0) ** 2 / 12
        center, size = (signs[1] - signs[0]) * mean, np.sqrt((law * spread).sum(axis=1))
    return _sign(law, signs, zeros), center, size, np.full(len(law), chance)


def _sign(law: Array, signs: tuple[float, float], zeros: float) -> Array:
    """Parts of the records in the bins of either sign, and around 0 between them."""
    middle = np.full((len(law), 1), zeros)
    return np.hstack([(1 - zeros) * signs[0] * law[:, ::-1], middle, (1 - zeros) * signs[1] * law])
