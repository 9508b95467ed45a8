"""Likelihood ratios of views whose law is known in both worlds, and what an ideal attack with them proves.

A run that is affine in its noise shows a mixture of Gaussians, one for each way in which unknown coins fall. Releases
that differ by known vectors show their noise. No attack on such a pair is stronger than the likelihood ratio. What that
proves from some number of runs tells an attack that is weak from one that has too few runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.privacy.noise import Noise

# Noise in every direction, relative to the largest: a direction without any would make densities infinite.
RIDGE = 1e-12
# Singular values of M below this share of the largest are zero: solvers leave differences of this size.
SINGULAR = 1e-9
# A difference of means that is this small beside the means, or noise beside the largest, is put down to solvers.
SAME = 1e-8
# A difference of means of which this share cannot be made by noise is seen with certainty.
UNREACHED = 1e-5


@dataclass(frozen=True, eq=False)
class Branch:
    """A view given all coins: their probability, its means in both worlds, and M, (numbers seen, numbers of noise)."""

    chance: float
    zero: Array
    one: Array
    m: Array

    @property
    def mu(self) -> float:
        """The length of the shortest noise that turns one world into the other; infinite if there is none."""
        gap = self.one - self.zero
        gap = np.where(np.abs(gap) <= SAME * (1 + np.abs(self.zero)), 0.0, gap)
        if not gap.any():
            return 0.0
        lengths = np.linalg.norm(self.m, axis=1)
        noisy = lengths > SAME * lengths.max(initial=0.0)
        if gap[~noisy].any():
            return float("inf")
        # Rows of one length, so that a number with little noise counts as much as one with a lot.
        m, gap = self.m[noisy] / lengths[noisy, None], gap[noisy] / lengths[noisy]
        shortest = np.linalg.lstsq(m, gap, rcond=SINGULAR)[0]
        missed = float(np.linalg.norm(m @ shortest - gap))
        return float("inf") if missed > UNREACHED * np.linalg.norm(gap) else float(np.linalg.norm(shortest))


class MixtureRatio:
    """log p_one - log p_zero of what is seen, (trials,) for views (trials, numbers seen)."""

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._weights = np.log([branch.chance for branch in branches])
        self._means = [(branch.zero, branch.one) for branch in branches]
        widest = max(float(np.square(branch.m).sum(axis=1).max(initial=0.0)) for branch in branches)
        self._roots = []
        for branch in branches:
            noise = branch.m @ branch.m.T + RIDGE * (widest or 1.0) * np.eye(len(branch.zero))
            self._roots.append(np.linalg.cholesky(noise))

    def __call__(self, seen: Array) -> Array:
        """The log likelihood ratio of each view."""
        ratio: Array = self._log_density(seen, 1) - self._log_density(seen, 0)
        return ratio

    def _log_density(self, seen: Array, world: int) -> Array:
        parts = []
        for weight, means, root in zip(self._weights, self._means, self._roots, strict=True):
            white = np.linalg.solve(root, (seen - means[world]).T)
            parts.append(weight - 0.5 * np.square(white).sum(axis=0) - np.log(np.diag(root)).sum())
        return np.asarray(np.logaddexp.reduce(parts, axis=0))


Draw = tuple[Array, Array]  # scores of runs of world zero and of world one


def draw_mixtures(groups: Sequence[Sequence[Branch]], runs: int, seed: int = 0) -> Draw:
    """Likelihood ratios of views: one group of branches for each thing that is known of the coins."""
    rng = np.random.default_rng(seed)
    ratios = [MixtureRatio(group) for group in groups]
    every = [(ratio, branch) for ratio, group in zip(ratios, groups, strict=True) for branch in group]
    chances = np.array([branch.chance for _, branch in every])
    worlds = []
    for world in ("zero", "one"):
        counts = rng.multinomial(runs, chances / chances.sum())
        scores = [np.empty(0)]
        for (ratio, branch), count in zip(every, counts, strict=True):
            if count:
                seen = getattr(branch, world) + rng.standard_normal((count, branch.m.shape[1])) @ branch.m.T
                scores.append(ratio(seen))
        worlds.append(rng.permutation(np.concatenate(scores)))
    return worlds[0], worlds[1]


def draw_releases(gaps: Sequence[tuple[Noise, Array]], runs: int, seed: int = 0) -> Draw:
    """Likelihood ratios of releases, each with its noise and what the worlds differ by, in units of the noise."""
    rng = np.random.default_rng(seed)
    worlds = []
    for world in (0, 1):
        score = np.zeros(runs)
        for noise, gap in gaps:
            seen = noise.simulate((runs, len(gap)), rng) + world * gap
            score += noise.log_density(seen - gap, np.ones(runs)) - noise.log_density(seen, np.ones(runs))
        worlds.append(score)
    return worlds[0], worlds[1]
