"""Gaussian noise on a sum to which a unit adds several sampled records (docs/privacy.md#sampled-records-of-a-party).

How many of them enter is binomial. The pair that dominates has one coordinate: j records that entered have moved the
mean by j contributions, all in one direction, under replace-one in opposite directions in the two worlds. Its loss
grows with the coordinate, so that the best sets are half lines.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from consenso.arrays import Array
from consenso.privacy.accountants import costs
from consenso.privacy.accountants.chords import Chords
from consenso.privacy.accountants.kinds.gaussian import simplify_rho
from consenso.privacy.accountants.logarithms import logsumexp
from consenso.privacy.events import Bounded, Event, Sampled, SampledGroup

# Up to so many records every number of them is a level of its own; above, numbers are rounded up to levels that lie
# a share of a standard deviation apart near the mean.
_MOST_LEVELS, _LEVELS_PER_DEVIATION, _NEAR = 256, 8.0, 12.0
_FAR_FACTOR = 1.05
# Points of the curve, and how far they reach beyond the levels: where mass is, and where there is next to none.
_POINTS, _FAR_POINTS = 6000, 600
_CORE, _REACH = 12.0, 38.0
_LEAST_MASS = 1e-30
_ROUNDING = 1e-12


@lru_cache(maxsize=64)
def levels(rate: float, records: int) -> tuple[Array, Array]:
    """Numbers of records that enter and their probabilities; numbers in between are rounded up, which costs more."""
    from scipy.stats import binom  # slow to import

    counts = np.arange(records + 1)
    masses = binom.pmf(counts, records, rate)
    if records > _MOST_LEVELS:
        mean, deviation = records * rate, math.sqrt(records * rate * (1 - rate))
        low, high = mean - _NEAR * deviation, mean + _NEAR * deviation
        kept, level = [0.0], max(low, 1.0)
        while level < records:
            kept.append(math.ceil(level))
            level += max(1.0, deviation / _LEVELS_PER_DEVIATION, (_FAR_FACTOR - 1) * level if level > high else 0.0)
        tops = np.unique([*kept, float(records)])
        masses = np.bincount(np.searchsorted(tops, counts), weights=masses, minlength=tops.size)
    else:
        tops = counts.astype(np.float64)
    there = masses > 0
    there[-1] = True
    return tops[there], np.maximum(masses[there], 5e-324)


@costs.find_rdp.register
def rdp(part: SampledGroup, orders: Array) -> Array:
    """The Renyi curve when the number that entered is revealed: never below that of the hidden one."""
    counts, masses = levels(part.rate, part.records)
    shift = _shift(part) * (1 if part.adjacency == "add-remove" else 2)
    exponents = np.log(masses) + (orders * (orders - 1))[:, None] * (counts * shift) ** 2 / 2
    return np.asarray(logsumexp(exponents, axis=1) / (orders - 1) * (1 + _ROUNDING), dtype=np.float64)


@lru_cache(maxsize=64)
def chords(part: SampledGroup, direction: costs.Direction) -> Chords:
    """The curve of the pair, exact at its points."""
    counts, masses = levels(part.rate, part.records)
    shifts, log_masses = counts * _shift(part), np.log(masses)
    symmetric = part.adjacency == "replace-one"
    x = _coordinates(shifts, masses, symmetric)
    log_with = _log_mixture(x, shifts, log_masses)
    log_without = _log_mixture(-x, shifts, log_masses) if symmetric else np.zeros_like(x)
    losses = log_with - log_without
    # The world in which records push upwards, and the other one; the best sets are {above x}.
    above, below = _lower(-x, -shifts, masses), _lower(x, shifts, masses)
    other = _lower(-x, shifts, masses) if symmetric else ndtr(-x)
    if direction == "add" and not symmetric:
        # The worlds exchanged: the best sets are {below x}.
        losses, x = -losses[::-1], x[::-1]
        above, below, other = ndtr(x), ndtr(-x), below[::-1]
    with np.errstate(divide="ignore", over="ignore"):
        weighted = np.exp(losses + np.log(other))
    deltas = np.clip(above - np.minimum(weighted, above) + _ROUNDING * above, 0.0, 1.0)
    strict = np.concatenate([[True], losses[1:] > np.maximum.accumulate(losses)[:-1]])
    return Chords(losses[strict], np.minimum.accumulate(deltas[strict]), above[strict], below[strict])


def _shift(part: SampledGroup) -> float:
    return part.contribution / part.std


def _coordinates(shifts: Array, masses: Array, symmetric: bool) -> Array:
    """Dense where either world has mass, sparse as far as anything can be told from 0."""
    there = shifts[np.cumsum(masses[::-1])[::-1] > _LEAST_MASS]
    top = float(there[-1]) if there.size else 0.0
    low, high = -_CORE - (top if symmetric else 0.0), top + _CORE
    lowest, highest = -_REACH - (float(shifts[-1]) if symmetric else 0.0), float(shifts[-1]) + _REACH
    parts = (
        np.linspace(lowest, low, _FAR_POINTS),
        np.linspace(low, high, _POINTS),
        np.linspace(high, highest, _FAR_POINTS),
    )
    return np.unique(np.concatenate(parts))


def _log_mixture(x: Array, shifts: Array, log_masses: Array) -> Array:
    """Logarithm of the likelihood ratio of the mixture against no record at all."""
    found = np.full_like(x, -np.inf)
    for shift, log_mass in zip(shifts, log_masses, strict=True):
        found = np.logaddexp(found, log_mass + shift * x - shift**2 / 2)
    return found


def _lower(x: Array, shifts: Array, masses: Array) -> Array:
    """Probability of less than x in the mixture."""
    found = np.zeros_like(x)
    for shift, mass in zip(shifts, masses, strict=True):
        found += mass * ndtr(x - shift)
    return found


@costs.simplify.register
def _(event: SampledGroup) -> Event:
    records = costs.whole(event, "records", least=1)
    # One record, and all of them: what is left after the checks of both is a group.
    one = costs.simplify(Sampled(event.std, event.contribution, event.rate, event.adjacency))
    if records == 1 or not isinstance(one, Sampled):
        return simplify_rho(one.rho * records**2) if isinstance(one, Bounded) else one
    return SampledGroup(1.0, one.contribution, one.rate, records, one.adjacency)


@costs.find_rho.register
def _(part: SampledGroup) -> float | None:
    total = part.records * part.contribution / part.std
    return 0.5 * (total if part.adjacency == "add-remove" else 2 * total) ** 2


@costs.is_lopsided.register
def _(part: SampledGroup) -> bool:
    return part.adjacency == "add-remove"


@costs.delta.register
def _(part: SampledGroup, epsilon: Array, direction: costs.Direction) -> Array:
    return chords(part, direction).at(epsilon)


@costs.span.register
def _(part: SampledGroup, log_tail: float, direction: costs.Direction) -> costs.Span:
    return costs.Span(*chords(part, direction).span(log_tail))
