"""How long a fitted model of margins should be: the length of the least expected hinge, by slopes measured along it.

`length_laws` has what is measured. Margins need a law of their own, since slopes of a hinge tell no odds:

    law         scores t of each label are normal, as many of each as were counted; log-odds of labels are in proportion
                to t, so that both laws have one spread, and their middles a distance
    slopes      those of the loss that was fitted, whose kink may be smoothed
    losses      those of margins as they are
    odds        how large they are is not known. Before, they are of any order of magnitude, but scores that are noise
                in part cannot tell labels better than their signal could: odds fall beyond that, and beyond LARGEST
    missed      how far released slopes are from the law, as far as noise does not explain it, is added to the law's:
                with little noise they decide
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from consenso.algorithms.preconditioning.label_levels import LARGEST, fall_beyond
from consenso.algorithms.preconditioning.length_laws import CANDIDATES, DISCREPANCY, EXACT, NORMAL, SCALES, SIZES, STEPS
from consenso.arrays import Array
from consenso.losses import Loss

# Standard deviations of log-odds that scores may tell, and which draws of a normal law are enough.
ODDS, FEW = np.append(0.0, 2.0 ** np.linspace(-4, 5, 73)), slice(2, None, 4)
# What is left of a model where the larger class loses less.
SHORT = 2.0**-14
# Slopes are not told by a law more exactly than by this part of the largest of them, also where they change their sign.
SURE = 0.03
# Laws that are less likely are left out; no odds are less likely before.
LIKELY, LEAST = 1e-4, 1e-6
# Labels that scores tell without any doubt would have infinite odds.
MOST_SIGNAL = 0.999
SIGNS = np.array([1.0, -1.0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Margins:
    """What is known of a model before slopes along it are released."""

    loss: Loss
    size: float  # of what a model adds to a score, as far as it is known
    mean: float  # of that
    constant: float  # score of the constant model
    odds: float  # logarithm of those of the positive label
    lead: float  # by which part of the records it was counted more often than the other one
    longest: float  # to which scores of a record are shortened
    signal: Array  # parts of the variance of scores that may be no noise
    weights: Array  # how likely each of them is

    def choose(self, slopes: Array, noise: float, penalty: Callable[[Array], Array]) -> float:
        """The length of least expected loss, by mean slopes of this noise and the penalties of lengths.

        It is 0 where the larger class is expected to lose less than any of them.
        """
        steps, odds = (each.ravel() for each in np.meshgrid(STEPS, np.arange(len(ODDS)), indexing="ij"))
        laws = MarginLaws.of(self, SIZES[steps - STEPS[0]], ODDS[odds])
        expected = laws.find_slopes(self)
        apart, largest = slopes - expected, np.abs(expected).max(axis=1, keepdims=True)
        allowed = (DISCREPANCY * expected) ** 2 + (SURE * largest) ** 2
        spread = max(noise, EXACT * self.size) ** 2 + allowed
        fit = self._weigh_odds()[odds] - 0.5 * steps**2 - 0.5 * np.sum(apart**2 / spread + np.log(spread), axis=1)
        weights = np.exp(fit - fit.max())
        likely = weights > LIKELY
        weights = weights[likely] / weights[likely].sum()
        losses = laws.take(likely).find_losses(self.constant, weights)
        losses += add_up_slopes(weights @ (apart * allowed / spread)[likely])
        losses += penalty(CANDIDATES)
        # Between margins the loss is straight, so that the larger class is best at its margin, however unsure its name
        # is. By how much is not shrunk, as odds are: what noise adds to it makes for caution.
        gained = (1 - abs(self.constant)) * min(abs(self.lead), 1.0)
        best = int(np.argmin(losses))
        return float(CANDIDATES[best]) if losses[best] < losses[0] - gained else 0.0

    def _weigh_odds(self) -> Array:
        """Logarithms of the weights of ODDS.

        Scores of this signal tell at most odds with which the middles of both labels explain as much of their variance.
        """
        positive, none = float(expit(self.odds)), self.signal == 0
        most = ((2 / (1 - np.minimum(self.signal[~none], MOST_SIGNAL)) - 1) ** 2 - 1) / (4 * positive * (1 - positive))
        falling = fall_beyond(np.divide.outer(ODDS[1:] ** 2, np.minimum(most, LARGEST)), 1.0)
        each = np.exp(falling - falling.max(axis=0))
        weights = np.append(self.weights[none].sum(), each / each.sum(axis=0) @ self.weights[~none])
        logs: Array = np.log(np.maximum(weights, LEAST))
        return logs


def add_up_slopes(off: Array) -> Array:
    """What hinges (lengths,) are above those of a law, if slopes are off by so much at SCALES.

    At length 0 the larger class lies on the kink, where slopes jump: what is off there is so only there. Beyond the
    largest scale slopes change where margins are met.
    """
    slopes = np.interp(CANDIDATES, SCALES[1:], off[1:], right=0.0)
    return np.append(0.0, np.cumsum((slopes[1:] + slopes[:-1]) / 2 * np.diff(CANDIDATES)))


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginLaws:
    """Normal laws of the scores of both labels, positive ones first."""

    shares: Array  # of the labels, (labels,)
    middles: Array  # (labels, laws)
    spread: Array  # (laws,)

    @classmethod
    def of(cls, known: Margins, sizes: Array, odds: Array) -> MarginLaws:
        """One for each of these sizes (laws,), in units of what is known, and standard deviations of log-odds (laws,).

        With the spread w, the middles are ODDS w^2 apart, so that the spread of all scores tells w.
        """
        size, mean = sizes * known.size, sizes * known.mean
        square = np.maximum(size**2 - mean**2, (EXACT * size) ** 2)
        shares = expit(known.odds * SIGNS)
        spread = np.sqrt(square * 2 / (1 + np.sqrt(1 + 4 * shares[0] * shares[1] * odds**2)))
        apart = odds / np.sqrt(square) * spread**2
        middles = mean + (SIGNS * (1 - shares))[:, None] * apart
        return cls(shares=shares, middles=middles, spread=spread)

    def take(self, which: Array) -> MarginLaws:
        """Only those that are asked for, (laws,)."""
        return MarginLaws(shares=self.shares, middles=self.middles[:, which], spread=self.spread[which])

    def find_slopes(self, known: Margins) -> Array:
        """Mean slopes along shortened scores, (laws, scales)."""
        slopes = np.zeros((len(self.spread), len(SCALES)))
        for sign, share, middles in zip(SIGNS, self.shares, self.middles, strict=True):
            t = middles[:, None] + self.spread[:, None] * NORMAL[FEW]
            short = t * known.longest / np.maximum(np.abs(t), known.longest)
            for place, scale in enumerate(SCALES):
                slopes[:, place] += share * np.mean(known.loss.slope(known.constant + scale * t, sign) * short, axis=1)
        return slopes

    def find_losses(self, constant: float, weights: Array) -> Array:
        """Mean hinges at CANDIDATES, by the weights of the laws.

        Of a margin with a normal law, what it lacks on average is Z Phi(Z / W) + W phi(Z / W).
        """
        width = np.maximum(np.multiply.outer(self.spread, CANDIDATES), np.finfo(float).tiny)
        total = np.zeros(len(CANDIDATES))
        for sign, share, middles in zip(SIGNS, self.shares, self.middles, strict=True):
            lack = 1 - sign * (constant + np.multiply.outer(middles, CANDIDATES))
            z = np.clip(lack / width, -40.0, 40.0)  # beyond, all or none of them lack
            hinges = lack * ndtr(z) + width * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
            total += share * (weights @ hinges)
        return total
