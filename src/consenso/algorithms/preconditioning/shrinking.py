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
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from consenso.arrays import Array

# How likely it is before that there is nothing but noise: the least, in tenths, for which equal labels cost 0.01 of log
# loss on average, whatever the noise.
NOTHING = 0.8
# How likely a model of nothing is to have walked freely, over one that was bent back as the spectrum says: clipped
# slopes of labels do not change around the constant model, and rows do not fill directions that noise made up. With an
# even chance tables of nothing gain more, and those that are almost separable lose as much (docs/solvers-measured.md).
WALKED = 0.1
# Steps on numbers go on by one of these parts of the last one (heavy ball), the one that ends sooner: with 1/4 all
# directions that bend by 1/4 to twice of what a step is made for lose half of their distance in each, with 1/2 those
# from 1/12 on lose 0.3 of it. The first third of the steps is not averaged.
MOMENTA, EARLY = (0.25, 0.5), 3
# It lets points wander further, which residuals that are clipped do not bear: by no more than this part of the variance
# of the targets, or there is none.
WANDERS = 0.1
# Losses of labels flatten as models learn, and steps on them may go on by more, while scores wander by no more than
# this variance: slopes are straight that far. Chosen on mushroom, penbased, twonorm and many10small. Those of margins
# flatten the most, but points that go on swing across their kinks: they do not after a step that has led uphill by more
# than so many standard deviations of noise.
LABEL_MOMENTA, LABEL_WANDERS = (*MOMENTA, 0.75), 0.2
MARGIN_MOMENTA, UPHILL = (*LABEL_MOMENTA, 0.9), 1.0
# Steps end when what is left to learn costs this part of what noise costs, if clipped rows and residuals bend by this
# part of what the spectrum says, or by more where a step has met more. Chosen on five tables, looked at on three others
# (docs/solvers-measured.md).
LEFT, BENDS = 0.03, 0.3
# Parts from that one to 1 for which it has to hold: with momentum points swing around the optimum, and for one part
# alone their average may be there by chance.
PARTS = 4
# What is left of the spectrum without a constant column, if there are no others: less than this part of a direction.
FILLED = 0.02


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
class MomentumSteps:
    """What becomes of a move in the steps after it, direction by direction."""

    rates: Array  # of each direction, from 0 to 2; beyond 1 a step goes too far
    momentum: float
    most: int  # steps that are looked at

    @cached_property
    def heard(self) -> Array:
        """A move of 1 as the points from it on have it, summed over the first k of them, (most + 2, directions)."""
        keep = 1 - self.rates + self.momentum
        points = np.zeros((self.most + 2, len(keep)))
        points[1] = 1.0
        for step in range(2, self.most + 2):
            np.multiply(points[step - 1], keep, out=points[step])
            points[step] -= self.momentum * points[step - 2]
        heard: Array = np.cumsum(points, axis=0, out=points)
        return heard

    def wander(self) -> Array:
        """Variance of the last point in each direction, for moves whose noise would be 1 with the whole budget."""
        variance: Array = self.most * np.sum(np.diff(self.heard, axis=0)[: self.most] ** 2, axis=0)
        return variance

    def average(self, steps: int, *, taken: int | None = None, late: int) -> LateAverage:
        """The average of the last points of so many steps, or of those that were taken of them."""
        return LateAverage(run=self, steps=steps, taken=steps if taken is None else taken, late=late)


@dataclass(frozen=True, kw_only=True, eq=False)
class LateAverage:
    """Steps that share a budget equally, and are averaged over the last of them."""

    run: MomentumSteps
    steps: int  # that share the budget
    taken: int  # of them
    late: int  # of these, how many are averaged

    def noise(self) -> Array:
        """Variance of the average in each direction, for moves whose noise would be 1 with the whole budget."""
        step, first, heard = np.arange(self.taken), self.taken - self.late, self.run.heard
        # Of a step s the points from max(s, first) on are averaged.
        weights = (heard[self.taken - step] - heard[np.maximum(first - step, 0)]) / self.late
        variance: Array = self.steps * np.sum(weights**2, axis=0)
        return variance

    def way(self) -> Array:
        """How much of the way the average has come in each direction."""
        # Points that start at rest are those of a first move of 1, less what momentum would have added to it.
        heard, first = self.run.heard, self.taken - self.late
        left = heard[self.taken + 1] - heard[first + 1] - self.run.momentum * (heard[self.taken] - heard[first])
        come: Array = 1 - left / self.late
        return come


def skip_early(steps: int) -> int:
    """How many of the steps on numbers are not averaged."""
    return steps // EARLY


def plan_steps(
    rates: Array,
    filled: Array,
    variance: float,
    noise: float,
    fewest: int,
    most: int,
    bends: float = BENDS,
) -> tuple[int, float]:
    """The fewest steps after which there is little left to learn of scores of this variance, and their momentum.

    rates: of each direction, as the spectrum promises, and bends: the part of that which is counted on. filled: how
    much rows fill it. noise: of a move with the whole budget. More steps cost time, and let noise in where directions
    are hardly filled.
    """
    if not filled.any():
        return most, 0.0
    bent = np.multiply.outer(np.geomspace(bends, 1, PARTS), rates)

    def count(momentum: float) -> int:
        run = MomentumSteps(rates=bent.ravel(), momentum=momentum, most=most)

        def are_enough(steps: int) -> bool:
            average = run.average(steps, late=steps - skip_early(steps))
            left = variance * ((1 - average.way()).reshape(bent.shape) ** 2 @ filled) / float(filled.sum())
            return bool(np.all(left <= LEFT * noise**2 * (average.noise().reshape(bent.shape) @ filled)))

        return fewest + bisect.bisect_left(range(fewest, most), True, key=are_enough)

    found = [(count(momentum), momentum) for momentum in (*MOMENTA, 0.0)]
    steady = [each for each in found if are_steady(rates, filled, WANDERS * variance, noise, *each)]
    return min(steady, key=lambda each: each[0])


def choose_momentum(rates: Array, filled: Array, noise: float, steps: int, *, smooth: bool) -> float:
    """Of so many steps on labels: the most with which points stay where slopes are straight, or none."""
    momenta = LABEL_MOMENTA if smooth else MARGIN_MOMENTA
    found = (each for each in reversed(momenta) if are_steady(rates, filled, LABEL_WANDERS, noise, steps, each))
    return next(found, 0.0)


def leads_uphill(way: Array, gradient: Array, noise: float) -> bool:
    """Whether the gradient at the end of a step speaks for going back, by more than its noise."""
    return float(way @ gradient) > UPHILL * noise * float(np.linalg.norm(way))


def are_steady(rates: Array, filled: Array, most: float, noise: float, steps: int, momentum: float) -> bool:
    """Whether points of steps with this momentum add at most this variance to scores; without any they may."""
    if momentum == 0:
        return True
    wander = MomentumSteps(rates=rates, momentum=momentum, most=steps).wander()
    return noise**2 * float(filled @ wander) <= most


def measure_bend(way: Array, turned: Array, filled: Array, noise: float, paces: Array) -> float:
    """How much a loss bends along a step, over what rows that fill directions say: two deviations less than it seems.

    way, turned: the step and how much the gradient changed along it, whitened, (directions,). noise: of a gradient.
    paces: of the step that led here, by which the noise of the first gradient is a part of the way, and of the change.
    """
    straight = float(filled @ way**2)
    if straight <= 0:
        return 0.0
    along = float(way @ turned) - noise**2 * float(paces.sum())
    return (along - 2 * math.sqrt(2) * noise * float(np.linalg.norm(way))) / straight


@dataclass(frozen=True, kw_only=True, eq=False)
class ShrinkageFactors:
    """How much of a noisy model is kept, and what of it is signal, by the variances that its scores should have."""

    factors: Array
    weights: Array  # how likely each is
    signal: Array  # parts of the variance of the scores that it has

    @classmethod
    def of(cls, factor: float) -> ShrinkageFactors:
        """Where one factor is known, and all that is kept is signal."""
        return cls(factors=np.array([factor]), weights=np.ones(1), signal=np.array([1.0 if factor else 0.0]))

    def expect(self) -> float:
        """The factor of a model, which is their mean by how likely each is."""
        return float(self.weights @ self.factors)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyModel:
    """A model by directions, each array (directions,): what it may hold of a signal, and of noise."""

    size: float  # squared size, summed over outputs and, with the weights `seen`, over directions
    seen: Array
    noise: Array  # variances of one output
    walked: Array  # the same if nothing bends steps back; empty where that is not to be expected
    come: Array  # of the way to the optimum, after steps and damping
    filled: Array  # how much rows fill a direction: its part in scores, and in the variance that there is to explain
    outputs: int

    def find_factors(self, variances: Array, prior: Array) -> ShrinkageFactors:
        """What these variances of scores call for, whose logarithms of prior weights are given.

        Last is what a model of nothing that walked freely calls for.
        """
        total = float(self.filled.sum())
        if not self.noise.any():
            return ShrinkageFactors.of(1.0)
        if not total:
            return ShrinkageFactors.of(0.0)  # rows are seen to fill nothing, so that the model is of noise
        # Scores that explain as much in every direction as rows fill it; no part that all classes have in common.
        signal = variances[:, None] / total * self.come**2
        fit = prior + self._fit(signal + self.noise)
        along = variances * float(self.filled @ self.come) / total
        held = np.maximum((signal + self.noise) @ self.filled, np.finfo(float).tiny)
        factors, parts = np.minimum(1.0, along / held), signal @ self.filled / held
        if self.walked.size and not variances[0]:
            fit = np.append(fit, prior[0] + math.log(WALKED) + self._fit(self.walked[None, :]))
            factors, parts = np.append(factors, 0.0), np.append(parts, 0.0)
        weights = np.exp(fit - fit.max())
        return ShrinkageFactors(factors=factors, weights=weights / weights.sum(), signal=parts)

    def leave_out(self, parts: Array) -> NoisyModel:
        """The same without what lies in these parts in its directions; of nothing where hardly anything is left."""
        filled = self.filled * (1 - parts)
        return replace(self, seen=self.seen * (1 - parts), filled=filled if filled.sum() > FILLED else 0 * filled)

    def _fit(self, held: Array) -> Array:
        """Log-likelihoods of the size of the model, for variances (cases, directions) of an output."""
        spread, outputs = self.seen * held, max(self.outputs - 1, 1)  # none in what all classes have in common
        expected, deviations = outputs * spread.sum(axis=1), 2 * outputs * np.sum(spread**2, axis=1)
        fit: Array = -0.5 * (self.size - expected) ** 2 / deviations - 0.5 * np.log(deviations)
        return fit
