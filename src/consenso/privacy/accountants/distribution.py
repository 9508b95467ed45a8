"""Privacy loss distributions: exact curves are put on a grid and composed by Fourier transform (`readout` reads them).

Two things are done differently from the usual implementations, because their result is a guarantee:

*Tilting.* A transform has an absolute error, about count * 1e-16, however small the probabilities that matter; after
1e5 rounds that understates epsilon at delta = 1e-10 already. Here every distribution carries the weight
exp(tilt * loss), with a tilt that the Renyi curve recommends for the delta in question (up to order - 1). The composed
distribution is then centred nearer to the losses that decide, its transform is accurate relative to the answer, and a
bound on the error is added to delta.

*Only upward.* Losses are put on the grid by connecting the dots of the exact curve (Doroshenko et al. 2022), which
dominates it; what does not fit into the window goes to infinity; the curve between grid points is its chord.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from consenso.arrays import Array
from consenso.privacy.accountants import costs
from consenso.privacy.accountants.costs import Direction
from consenso.privacy.accountants.logarithms import logsumexp
from consenso.privacy.events import Event

# Probability, in the tilted distribution, that a composition may have outside of its window: exp(-WINDOW).
WINDOW = 34.0
# Relative rounding of the weights of one distribution, and of its transform when it is raised to a power: the sum of
# the errors of all weights was measured as at most 1.5 eps per round (in extended precision), and is taken as 16.
_ROUNDING = 4 * np.finfo(float).eps
_TRANSFORM_ROUNDING = 16 * np.finfo(float).eps
_MOST_STRIDES = 12
# Relative rounding of grid points that stand for the largest loss of a part.
ROUNDED_LOSS = 1e-14


@dataclass(frozen=True)
class Grid:
    """What all distributions of one computation share."""

    interval: float
    tilt: float
    log_tail: float  # of the probability that a part may move to infinity
    direction: Direction

    def points(self, first: int, size: int) -> Array:
        """Consecutive multiples of the interval."""
        return np.asarray((first + np.arange(size)) * self.interval, dtype=np.float64)


@dataclass(frozen=True)
class Losses:
    """A distribution of losses (first + i) * interval with masses proportional to weights[i] * exp(-tilt * loss)."""

    grid: Grid
    first: int
    weights: Array  # sum to 1
    log_moment: float  # of exp(tilt * loss), over all finite losses
    escaped: float  # logarithm of the probability of an infinite loss
    error: float  # bound on the sum of the errors of the weights

    def losses(self) -> Array:
        return self.grid.points(self.first, self.weights.size)

    def cumulant(self, order: float) -> float:
        """Logarithm of the mean of exp(order * (loss - mean)) in the tilted distribution; infinite if it overflows."""
        centred = self.losses() - self.mean
        if max(order * float(centred[0]), order * float(centred[-1])) > 700:
            return math.inf
        exponents = order * centred
        return math.log(float(np.maximum(self.weights, 0.0) @ np.exp(exponents)))

    def log_moments(self, tilts: Array) -> Array:
        """Logarithms of the means of exp(tilt * loss), over finite losses, of a distribution that is not tilted."""
        losses, logs = self._positive
        return self.log_moment + np.array([logsumexp(tilt * losses + logs) for tilt in tilts])

    @cached_property
    def _positive(self) -> tuple[Array, Array]:
        """The losses that have a weight, and its logarithm."""
        there = self.weights > 0
        return self.losses()[there], np.log(self.weights[there])

    @cached_property
    def mean(self) -> float:
        """Mean loss of the tilted distribution."""
        return float(self.weights @ self.losses())

    @cached_property
    def variance(self) -> float:
        """Variance of the loss in the tilted distribution."""
        return max(float(self.weights @ (self.losses() - self.mean) ** 2), 0.0)


def nothing(grid: Grid) -> Losses:
    """No loss, for certain."""
    return Losses(grid, 0, np.ones(1), 0.0, -math.inf, 0.0)


def discretize(part: Event, grid: Grid) -> Losses:
    """The pair of a part on the grid: between grid points its curve is replaced by the chord in exp(epsilon)."""
    limits = costs.span(part, grid.log_tail, grid.direction)
    first = math.floor(limits.low / grid.interval + 1e-9)
    last = max(math.ceil(limits.high / grid.interval - 1e-9), first + 1)
    epsilons = grid.points(first, last - first + 1)
    curve = costs.delta(part, epsilons, grid.direction)
    if limits.has_top and epsilons[-1] >= limits.high * (1 - ROUNDED_LOSS):
        curve[-1] = 0.0  # a grid point that misses the largest loss by rounding is meant to be it
    rises = np.diff(curve)
    up, down = np.expm1(grid.interval), np.expm1(-grid.interval)
    masses = np.empty_like(curve)
    masses[0] = 1 - curve[0] + rises[0] / up
    masses[1:-1] = rises[1:] / up + rises[:-1] / down
    masses[-1] = rises[-1] / down
    escaped = math.log(curve[-1]) if curve[-1] > 0 else -math.inf
    return _tilt(grid, first, masses, escaped)


def _tilt(grid: Grid, first: int, masses: Array, escaped: float) -> Losses:
    exponents = grid.tilt * grid.points(first, masses.size)
    with np.errstate(divide="ignore"):
        top = float(np.max(np.where(masses > 0, exponents + np.log(np.abs(masses)), -np.inf)))
    with np.errstate(over="ignore", under="ignore"):
        # The far side of a bound that is exceeded by rounding only; keep it from overflowing.
        weights = masses * np.exp(np.minimum(exponents - top, 700.0))
    total = float(weights.sum())
    return Losses(grid, first, weights / total, top + math.log(total), escaped, _ROUNDING)


def mix_losses(weights: Sequence[float], losses: Sequence[Losses]) -> Losses:
    """One of the distributions, drawn with these probabilities and revealed."""
    grid = losses[0].grid
    log_weights = [math.log(weight) for weight in weights]
    log_moments = np.array([log + each.log_moment for log, each in zip(log_weights, losses, strict=True)])
    log_moment = float(logsumexp(log_moments))
    first = min(each.first for each in losses)
    last = max(each.first + each.weights.size for each in losses)
    total = np.zeros(last - first)
    shares = np.exp(log_moments - log_moment)
    for share, each in zip(shares, losses, strict=True):
        total[each.first - first : each.first - first + each.weights.size] += share * each.weights
    escaped = float(logsumexp([log + each.escaped for log, each in zip(log_weights, losses, strict=True)]))
    error = math.fsum(share * each.error for share, each in zip(shares, losses, strict=True)) + _ROUNDING
    return Losses(grid, first, total, log_moment, escaped, error)


def compose_losses(factors: Sequence[tuple[Losses, int]]) -> Losses:
    """The sum of independent losses, each counted as often as stated."""
    if len(factors) == 1 and factors[0][1] == 1:
        return factors[0][0]
    grid = factors[0][0].grid
    rounds = sum(count for _, count in factors)
    log_moment = math.fsum(count * each.log_moment for each, count in factors)
    low, high, beyond = _window(factors, log_moment)
    size = next_fast_len(high - low + 1, real=True)
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    with np.errstate(under="ignore"):
        for each, count in factors:
            product *= rfft(_fold(each.weights, size), size) ** count
    start = sum(count * each.first for each, count in factors)
    weights = np.roll(irfft(product, size), (start - low) % size)
    escaped = float(logsumexp([beyond, *(math.log(count) + each.escaped for each, count in factors)]))
    error = math.fsum(count * each.error for each, count in factors) + transform_error(rounds)
    return Losses(grid, low, weights, log_moment, escaped, error)


def transform_error(rounds: int) -> float:
    """Bound on the sum of the errors of tilted weights after a transform: rounding, and what wraps around."""
    return (rounds + 1) * _TRANSFORM_ROUNDING + 2 * math.exp(-WINDOW)


def reach(cumulant: Callable[[float], float], deviation: float, depth: float = WINDOW, tilt: float = 0.0) -> float:
    """The least distance a from the mean at which cumulant(order) + depth <= (order + tilt) a for some order.

    Without tilt, that is how far above its mean a loss comes but for a probability exp(-depth) (Chernoff). The search
    starts at the order that is best for a Gaussian of this standard deviation.
    """

    def bound(log_order: float) -> float:
        order = math.exp(log_order)
        return (cumulant(order) + depth) / (order + tilt)

    place = math.log(math.sqrt(2 * WINDOW) / deviation)
    while math.isinf(found := bound(place)):
        place -= 1.0
    for stride in (1.4, -1.4, 0.5, -0.5, 0.2, -0.2):
        for _ in range(_MOST_STRIDES):
            further = bound(place + stride)
            if further >= found:
                break
            place, found = place + stride, further
    return found


def _window(factors: Sequence[tuple[Losses, int]], log_moment: float) -> tuple[int, int, float]:
    """First and last place that the sum takes, but for a tilted probability exp(-WINDOW) on either side.

    And the logarithm of the probability of what lies above, once the tilt is taken back: at most log_tail.
    """
    grid = factors[0][0].grid
    mean = math.fsum(count * each.mean for each, count in factors)
    lowest = sum(count * each.first for each, count in factors)
    highest = sum(count * (each.first + each.weights.size - 1) for each, count in factors)
    variance = math.fsum(count * each.variance for each, count in factors)
    if variance == 0:
        return lowest, highest, -math.inf
    deviation = math.sqrt(variance)

    def cumulant(order: float) -> float:
        return math.fsum(count * each.cumulant(order) for each, count in factors)

    above = reach(cumulant, deviation)
    below = reach(lambda order: cumulant(-order), deviation)
    untilted = log_moment - grid.tilt * mean - grid.log_tail
    if untilted > WINDOW + grid.tilt * above:
        above = max(above, reach(cumulant, deviation, untilted, grid.tilt))
    low = max(lowest, math.floor((mean - below) / grid.interval))
    high = math.ceil((mean + above) / grid.interval)
    return (low, high, grid.log_tail) if high < highest else (low, highest, -math.inf)


def _fold(weights: Array, size: int) -> Array:
    """The weights modulo the length of the transform."""
    if weights.size <= size:
        return weights
    rows = -(-weights.size // size)
    folded = np.pad(weights, (0, rows * size - weights.size)).reshape(rows, size).sum(axis=0)
    return np.asarray(folded, dtype=np.float64)
