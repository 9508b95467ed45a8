"""How much of a noisy model is kept: what its steps have learnt, what noise has added to it, direction by direction.

In one direction, in which the loss bends by a part `rate` of the length of a step, the point after t steps is 1 - q^t,
q = 1 - rate, of the way from its start to where steps lead, and has heard the noise of step s with the weight q^(t-s).
What is released is the mean of the last points: noise of as many steps as it remembers, and a part of the way. Damping
has shortened it, too, as a prior that may be wrong says. Scores that should have the variance V, but have come K of the
way, K^2 on average over squares, and have noise of variance N on top, are best multiplied by

    K V / (K^2 V + N),        at most 1:

James and Stein's rule where the model has come all the way, and nothing where damping has done it already. V is what
the squared size of the model tells, as far as noise lets it: the factor is the mean over the posterior of V.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array

# How likely it is before that there is nothing but noise: the least, in tenths, for which equal labels cost 0.01 of log
# loss on average, whatever the noise.
NOTHING = 0.7
# Rates below this are those of directions that nobody speaks of.
SLOWEST = 1e-9
# Steps end when what is left to learn costs this part of what noise costs, if clipped rows and residuals bend by this
# part of what the spectrum says. Chosen on five tables, looked at on three others (docs/solvers.md).
LEFT, BENDS = 0.03, 0.3


def average_kept(size: float, directions: float, ratios: Array) -> float:
    """How much of a noisy vector is kept: the mean of ratio / (1 + ratio) over the posterior of signal over noise.

    size: its squared size in units of the variance of the noise of a direction, of which there are so many. Before,
    there is nothing but noise, with the weight NOTHING, or any of the ratios, all alike.
    """
    there = np.append(0.0, ratios)
    prior = np.log(np.append(NOTHING, np.full(len(ratios), (1 - NOTHING) / len(ratios))))
    fit = prior - 0.5 * directions * np.log1p(there) - 0.5 * size / (1 + there)
    weights = np.exp(fit - fit.max())
    return float(weights @ (there / (1 + there)) / weights.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class LateAverage:
    """Steps that share a budget equally, and are averaged over the last of them."""

    rates: Array  # of each direction, from 0 to 1
    steps: int  # that share the budget
    taken: int  # of them
    late: int  # of these, how many are averaged

    def noise(self) -> Array:
        """Variance of the average in each direction, for moves whose noise would be 1 with the whole budget."""
        rates = np.clip(self.rates, SLOWEST, 1.0)[:, None]
        step, first = np.arange(self.taken), self.taken - self.late
        # Of a step s, the weights q^(t-s) of the points t from max(s, first) on.
        since, until = np.maximum(first - step, 0), self.taken - step
        weights = ((1 - rates) ** since - (1 - rates) ** until) / rates / self.late
        variance: Array = self.steps * np.sum(weights**2, axis=1)
        return variance

    def way(self) -> Array:
        """How much of the way the average has come in each direction."""
        rates = np.clip(self.rates, SLOWEST, 1.0)[:, None]
        steps = np.arange(self.taken - self.late, self.taken) + 1
        come: Array = np.mean(1 - (1 - rates) ** steps, axis=1)
        return come


def count_steps(rates: Array, filled: Array, variance: float, noise: float, fewest: int, most: int) -> int:
    """The fewest steps after which there is little left to learn of scores of this variance, beside their noise.

    rates: of each direction, as the spectrum promises. filled: how much rows fill it. noise: of a move with the whole
    budget. More steps cost time, and let noise in where directions are hardly filled.
    """

    def are_enough(steps: int) -> bool:
        run = LateAverage(rates=BENDS * rates, steps=steps, taken=steps, late=steps - steps // 2)
        left = variance * float(filled @ (1 - run.way()) ** 2) / float(filled.sum())
        return left <= LEFT * noise**2 * float(filled @ run.noise())

    return fewest + bisect.bisect_left(range(fewest, most), True, key=are_enough) if filled.any() else most


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyModel:
    """A model by directions, each array (directions,): what it may hold of a signal, and of noise."""

    sizes: Array  # squared sizes, summed over outputs
    noise: Array  # variances of one output
    come: Array  # of the way to the optimum, after steps and damping
    filled: Array  # how much rows fill a direction: its part in scores, and in the variance that there is to explain
    outputs: int

    def compute_factor(self, variances: Array, prior: Array) -> float:
        """The mean factor for these variances of scores, whose logarithms of prior weights are given."""
        total = float(self.filled.sum())
        if not self.noise.any() or not total:
            return 1.0
        signal = self.filled * variances[:, None] / total * self.come**2
        noise = self.filled * self.noise
        spread = signal * max(self.outputs - 1, 1) / self.outputs + noise
        expected, deviations = self.outputs * spread.sum(axis=1), 2 * self.outputs * np.sum(spread**2, axis=1)
        fit = prior - 0.5 * (float(self.filled @ self.sizes) - expected) ** 2 / deviations - 0.5 * np.log(deviations)
        weights = np.exp(fit - fit.max())
        along = variances * float(self.filled @ self.come) / total
        factors = np.minimum(1.0, along / np.maximum(signal.sum(axis=1) + noise.sum(), np.finfo(float).tiny))
        return float(weights @ factors / weights.sum())
