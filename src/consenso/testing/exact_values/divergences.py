"""What Gaussian views of two worlds tell apart, exactly; mixtures of them, from below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from consenso.arrays import Array
from consenso.audit.mixtures import SINGULAR, Branch

# How many standard deviations beyond the outermost mean a mixture is integrated, on how many points, and how many of
# these lie within one standard deviation of its narrowest part. Where there are not enough, noise is added to all.
TAIL, POINTS, DENSITY = 9.0, 6001, 8
# Larger epsilons count as infinite.
MOST = 1e12


@dataclass(frozen=True, eq=False)
class Part:
    """What is seen if the coins are known to some extent: its probability, and curves in both directions."""

    chance: float
    deltas: Callable[[float], tuple[float, float]]  # by epsilon
    log_moments: Callable[[float], tuple[float, float]]  # (order - 1) times the Renyi divergence, by order


@dataclass(frozen=True, eq=False)
class DivergenceCurve:
    """What an observer learns of one pair of worlds: exact, or from below."""

    parts: tuple[Part, ...]
    is_exact: bool
    mu: float | None  # where the view is Gaussian
    groups: tuple[tuple[Branch, ...], ...]  # of which it is made, by what is known of the coins

    def delta(self, epsilon: float) -> float:
        """The delta at an epsilon."""
        both = [np.multiply(part.chance, part.deltas(epsilon)) for part in self.parts]
        return float(np.sum(both, axis=0).max())

    def renyi(self, order: float) -> float:
        """The Renyi divergence of an order above 1."""
        logs = [np.log(part.chance) + np.array(part.log_moments(order)) for part in self.parts]
        return float(np.logaddexp.reduce(logs, axis=0).max() / (order - 1))

    def epsilon(self, delta: float) -> float:
        """The epsilon at a delta."""
        if self.delta(0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if high > MOST:
                return float("inf")
        return float(brentq(lambda value: self.delta(value) - delta, 0.0, high, xtol=1e-10 * high, rtol=1e-12))


def curve_of(groups: Iterable[Sequence[Branch]]) -> DivergenceCurve:
    """The curve of a view, with one group of branches for each thing that is known of the coins."""
    parts, mus, known = [], [], [tuple(branches) for branches in groups]
    for branches in known:
        if len(branches) == 1:
            mus.append(branches[0].mu)
            parts.append(_gaussian(branches[0].chance, mus[-1]))
        else:
            parts.append(_mixture(branches))
    is_exact = len(mus) == len(parts)
    return DivergenceCurve(tuple(parts), is_exact, mus[0] if is_exact and len(set(mus)) == 1 else None, tuple(known))


def _gaussian(chance: float, mu: float) -> Part:
    def deltas(epsilon: float) -> tuple[float, float]:
        if mu == 0 or np.isinf(mu):
            value = float(np.isinf(mu))
        else:
            value = float(np.exp(log_ndtr(mu / 2 - epsilon / mu)) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))
        return value, value

    def log_moments(order: float) -> tuple[float, float]:
        value = float((order - 1) * order * mu**2 / 2)
        return value, value

    return Part(chance, deltas, log_moments)


def _mixture(branches: Sequence[Branch]) -> Part:
    """Coins that are not known: the view projected on a line, which can only lose, and integrated numerically."""
    total = sum(branch.chance for branch in branches)
    chances = np.array([branch.chance for branch in branches]) / total
    covariance = sum(c * b.m @ b.m.T for c, b in zip(chances, branches, strict=True))
    gap = sum(c * (b.one - b.zero) for c, b in zip(chances, branches, strict=True))
    line = np.linalg.lstsq(covariance, gap, rcond=SINGULAR)[0]
    zero, one = (np.array([line @ getattr(branch, name) for branch in branches]) for name in ("zero", "one"))
    std = np.array([np.linalg.norm(line @ branch.m) for branch in branches])
    if not np.any(gap) or std.max() == 0:
        return _gaussian(total, 0.0)
    low = min(zero.min(), one.min()) - TAIL * std.max()
    high = max(zero.max(), one.max()) + TAIL * std.max()
    grid = np.linspace(low, high, POINTS)
    if std.min() < DENSITY * (grid[1] - grid[0]):
        std = np.hypot(std, DENSITY * (grid[1] - grid[0]))  # to all alike: nothing is learnt by it

    def log_mass(means: Array) -> Array:
        # Branches that differ by coins which do not move the projection are one.
        kinds, where = np.unique(np.round(np.stack([means, std]), 12), axis=1, return_inverse=True)
        weights = np.bincount(where.ravel(), weights=chances)
        z = (grid[:, None] - kinds[0]) / kinds[1]
        logs = np.log(weights) - 0.5 * z * z - np.log(kinds[1] * np.sqrt(2 * np.pi)) + np.log(grid[1] - grid[0])
        return np.asarray(np.logaddexp.reduce(logs, axis=1))

    p, q = log_mass(zero), log_mass(one)

    def deltas(epsilon: float) -> tuple[float, float]:
        return _overlap(p, q, epsilon), _overlap(q, p, epsilon)

    def log_moments(order: float) -> tuple[float, float]:
        one_way, other_way = order * p + (1 - order) * q, order * q + (1 - order) * p
        return float(np.logaddexp.reduce(one_way)), float(np.logaddexp.reduce(other_way))

    return Part(total, deltas, log_moments)


def _overlap(p: Array, q: Array, epsilon: float) -> float:
    """Sum of max(exp(p) - exp(epsilon + q), 0)."""
    more = p > epsilon + q
    return float((np.exp(p[more]) * -np.expm1(epsilon + q[more] - p[more])).sum())
