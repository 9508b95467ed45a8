"""Reading epsilon and delta off a distribution of losses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.privacy.accountants.distribution import Losses

# Where weights would overflow, epsilon is too far below the point of interest to be read off.
_MOST_EXPONENT = 60.0


@dataclass(frozen=True)
class Readout:
    """delta at increasing epsilons, as multiples of exp(log_unit); between them the chord in exp(epsilon) holds.

    `slack` is the part of it that rounding and escaped mass account for.
    """

    epsilons: Array
    deltas: Array
    slack: Array
    log_unit: float

    @classmethod
    def around(cls, losses: Losses, epsilon: float) -> Readout:
        """The curve from well below an epsilon of interest to the end."""
        grid = losses.grid
        points = losses.losses()
        exponents = -grid.tilt * (points - epsilon)
        keep = exponents <= _MOST_EXPONENT
        keep[-1] = True  # an epsilon above all losses reads what escaped
        exponents = np.minimum(exponents, _MOST_EXPONENT)
        points, weights, factors = points[keep], losses.weights[keep], np.exp(exponents[keep])
        log_unit = losses.log_moment - grid.tilt * epsilon
        # tails[k] = sum over losses l >= l_k of mass * exp(l_k - l); delta falls by (1 - exp(-interval)) tails[k + 1].
        tails = _sum_discounted((weights * factors)[::-1], math.exp(-grid.interval))
        falls = -math.expm1(-grid.interval) * np.concatenate([[0.0], np.cumsum(tails)[:-1]])
        # Only losses above epsilon count, so their errors weigh no more than at the next point.
        slack = losses.error * np.append(factors[1:], 0.0) + math.exp(min(losses.escaped - log_unit, 700.0))
        return cls(points, np.minimum.accumulate(falls[::-1] + slack), slack, log_unit)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon, at least 0, with at most this delta; infinite when there is none."""
        target = math.exp(min(math.log(delta) - self.log_unit, 700.0))
        fits = self.deltas <= target
        if not fits[-1]:
            return math.inf
        place = int(np.argmax(fits))
        if place == 0:
            return self._below(delta)
        before, after = self.deltas[place - 1], self.deltas[place]
        gap = self.epsilons[place] - self.epsilons[place - 1]
        along = (before - target) / (before - after) * math.expm1(gap)
        return max(float(self.epsilons[place - 1]) + math.log1p(along), 0.0)

    @property
    def _first(self) -> float:
        """Delta at the first point. A convex curve that is 1 at exp(epsilon) = 0 lies below its chord to it."""
        return min(math.exp(min(self.log_unit, 700.0)) * float(self.deltas[0]), 1.0)

    def _below(self, delta: float) -> float:
        first = self._first
        return max(float(self.epsilons[0]) + math.log((1 - delta) / max(1 - first, 1e-300)), 0.0)

    def log_slack(self, epsilon: float) -> float:
        """Logarithm of the slack there."""
        place = min(int(np.searchsorted(self.epsilons, epsilon)), self.epsilons.size - 1)
        slack = float(self.slack[place])
        return math.log(slack) + self.log_unit if slack > 0 else -math.inf

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of an upper bound of delta, at most 0."""
        place = int(np.searchsorted(self.epsilons, epsilon))
        if place == self.epsilons.size:
            value = float(self.deltas[-1])
        elif place == 0:
            value = self._first - math.expm1(epsilon - float(self.epsilons[0])) * (1 - self._first)
            return min(math.log(value), 0.0) if value > 0 else -math.inf
        else:
            before, after = self.deltas[place - 1], self.deltas[place]
            low, high = self.epsilons[place - 1], self.epsilons[place]
            value = float(before + (after - before) * math.expm1(epsilon - low) / math.expm1(high - low))
        return min(math.log(value) + self.log_unit, 0.0) if value > 0 else -math.inf


def _sum_discounted(values: Array, discount: float) -> Array:
    """out[k] = values[k] + discount * out[k - 1], by the solution of a triangular system of two diagonals.

    scipy.signal has a filter for it, and takes longer to import than a plan to make.
    """
    from scipy.linalg.blas import dtbsv

    diagonals = np.empty((2, len(values)), order="F")
    diagonals[:] = [[1.0], [-discount]]
    sums: Array = dtbsv(1, diagonals, values, lower=1, diag=1)
    return sums
