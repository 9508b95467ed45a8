"""How long a fitted model should be, measured at its end: how the loss changes as the model is made longer or shorter.

Losses of labels flatten as scores grow, so that steps made for their curvature at the start end short of the optimum;
and noise makes a model longer than it should be. Both are mended by one number, and one number is cheap. With o the
scores of the constant model and t what the model adds to them,

    a record    v_k = <t shortened, slope of the loss at o + s_k t>,   at the scales s_k of SCALES
                and its doubt: 1 less the probability that the model gives the label, in proportion to `reach`
    released    the noisy sum of the v, shortened to `reach`: the slope of the loss along the model, records of large
                scores weighing less
    length      that of the least expected loss, given the slopes and what is known of the length without them

What is expected of a loss along a model is that of t with a normal law of size `size` and labels whose odds are those
of a model of the length s*: its slope at s is m(s) - m(s*), m(s) = E <t, probabilities at o + s t>, which the released
slopes tell as far as their noise lets them. A model that noise made has s* = 0, and becomes the constant one. Slopes
far from s* need not follow that law (DISCREPANCY): with little noise those around s* decide. Margins have a law of
their own (`margin_laws`).

Shortening t weighs records by how large their scores are, not by whether they are right: where odds are right for
scores of every size the best length does not change. `reach` is as wide as noise allows, so that with little noise
nothing is shortened (docs/privacy.md#length-of-a-model).

The records that are asked are those that were learnt from, and ask for too long a model (`correct_optimism`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from scipy.special import ndtri

from consenso.arrays import Array, IntArray
from consenso.errors import MessageError
from consenso.losses import Loss
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.rows import moment_step
from consenso.shards import Cohort

# At which slopes are released, and lengths that a model may get; one that is left is left bit for bit.
SCALES = np.array([0.0, 0.5, 1.0, 2.0])
# They are so close that half of their distance costs nothing that a budget could tell; laws are smooth, and computed at
# every fourth of them.
CANDIDATES = np.append(0.0, 2.0 ** np.linspace(-5, 3, 513))
KNOTS = np.append(0.0, CANDIDATES[1::4])
# A record's numbers are its slopes and its doubt, of which this part of the reach is 1.
NUMBERS, DOUBT = len(SCALES) + 1, 1 / 3
# Scores are shortened to SHORTEST, or to twice their size if that is less; to more where noise then moves a slope by
# less than this, or than this part of the square of smaller scores.
FINE, SHORTEST, LONGEST = 0.005, 2.0, 64.0
# Reaches that parties accept.
LEAST_REACH, MOST_REACH = 1e-3, 1e4
# How far slopes along a model are from those of its law, as a part of what they are.
DISCREPANCY = 0.3
# Lengths are known without measuring them up to factors of this standard deviation, in logs: 0.2 on most tables, more
# than 1 where labels are almost separable (docs/solvers-measured.md). Sizes of scores are known up to steps of the
# square root of two, which is a whole number of knots.
UNSURE, KNOTS_A_STEP = 0.7, 8
STEPS = np.arange(-2, 3)
SIZES = 2.0 ** (STEPS / 2)
# The products of KNOTS and SIZES.
LONGER = np.append(0.0, 2.0 ** np.linspace(-6, 4, len(KNOTS) + 4 * KNOTS_A_STEP - 1))
# What is added for records that were learnt from is never more than so many standard deviations of the noise of a
# slope: with a growing budget the length is the one that the records ask for.
OPTIMISM_NOISE = 2.0
# Draws of a normal law.
DRAWS, FEWEST_DRAWS = 512, 64
NORMAL = ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
# Slopes are not told more exactly than this part of the size of scores.
EXACT = 1e-6
# The most that the roundings of a shortened vector add to its length.
ROUNDED = 2.0**-45


def length_release(facts: PublicFacts) -> Release:
    """Slopes along the model, by themselves, in units of the reach."""
    problem, one = facts.problem, 1 + ROUNDED
    rounding = sum_rounding(problem.parties, one * problem.row_cap)
    return Release(
        name="length",
        size=len(SCALES),
        at="sum",
        adaptive=True,
        bounds=Bounds.of_contributions(record=one, party=one * facts.most, rounding=rounding),
        why="slopes along the model shortened to the reach (docs/privacy.md#length-of-a-model)",
    )


def choose_reach(noise: float, size: float, limit: float) -> float:
    """From the noise that a mean slope has for a reach of 1, the size of scores and the bound on slopes."""
    widest = limit * math.sqrt(len(SCALES))  # of a record whose scores have length 1
    size = min(1.0, max(size, EXACT))
    # Noise of a slope is in proportion to the longest scores, what shortening changes to their inverse: the sum of both
    # squares is least where the longest scores follow the inverse root of the noise. Both fall with a growing budget.
    # Slopes along a model of small scores are as their square, and so is the noise that they bear.
    shortest = SHORTEST * size
    loud = noise * widest * shortest / (FINE * size**2)
    longest = shortest / math.sqrt(min(1.0, max(loud, (shortest / LONGEST) ** 2)))
    return float(np.clip(longest * widest, LEAST_REACH, MOST_REACH))


def longest_scores(reach: float, loss: Loss) -> float:
    """To which scores (outputs,) of a record are shortened.

    Slopes of two labels are then within reach. Those of several classes tell of the few that are likely, so that they
    seldom are longer than those of two.
    """
    return reach / (loss.slope_bound * math.sqrt(len(SCALES))) * math.sqrt(max(loss.outputs - 1, 1))


def correct_optimism(problem: Problem, directions: float, doubt: float, noise: float) -> Array:
    """What slopes (scales,) would be above those of the records that were learnt from, if others were asked.

    directions: how many have been learnt. One of them has moved the score of a record by its own slope g over n times
    the curvature C; so, on average, a slope g_s is off by g g_s / C. doubt: the mean of the records, or its noise where
    that is more. noise: of a slope.

    Where odds are right, g g_s is C on average at every length. Where labels are separable it is less. For two labels
    |g| is the doubt and C is |g| - |g|^2, so that g^2 / C is doubt / (1 - doubt) if all records are alike, which is the
    least that it can be; the geometric mean of both is taken. It falls with the length as the doubt does.
    """
    least = min(1.0, doubt / max(1.0 - doubt, doubt))
    expected = directions * max(problem.outputs - 1, 1) / problem.records
    return np.minimum(expected * least ** ((1 + SCALES) / 4), OPTIMISM_NOISE * noise)


def check_reach(reach: float, *, least: float = 0.0) -> None:
    """Refuse a reach that no honest hub names; 0 says that the length is not asked for, unless there is a least one."""
    if not ((reach == 0 and not least) or LEAST_REACH <= reach <= MOST_REACH):
        raise MessageError(f"reach: it lies in [{LEAST_REACH:g}, {MOST_REACH:g}], or is 0, and it does not.")


def sum_slopes(f: Cohort, x: Array, origin: Array, reach: float) -> Array:
    """Sum over each party's rows of how their losses change with the length, and of doubts, (parties, numbers)."""
    step = moment_step(np.sqrt(reach * f.problem.weight_bound), f.problem.row_cap) ** 2
    return f.add_up(_slopes, step, x, origin, reach, step)


def _slopes(f: Cohort, x: Array, origin: Array, reach: float, step: float) -> IntArray:
    learnt, constant = f.linear_predictor(x - origin), f.linear_predictor(origin)
    sizes = np.abs(learnt) if learnt.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", learnt, learnt))
    longest = longest_scores(reach, f.problem.loss)
    factors = longest / np.maximum(sizes, longest)
    along = np.empty((f.rows, NUMBERS))
    for k, scale in enumerate(SCALES):
        slopes = f.slopes(constant + scale * learnt)
        change = slopes * learnt
        along[:, k] = factors * (change if change.ndim == 1 else change.sum(axis=1))
        if scale == 1.0:
            # Slopes of several classes sum to zero, and that of the label is minus its doubt.
            doubts = np.abs(slopes) if slopes.ndim == 1 else 0.5 * np.abs(slopes).sum(axis=1)
            # A row of zeros is no row, as in every sum.
            along[:, -1] = DOUBT * reach * np.where(f.squared_norms > 0, doubts, 0.0)
    return _sum_shortened(f, along, reach, step)


def _sum_shortened(f: Cohort, along: Array, reach: float, step: float) -> IntArray:
    """Sums of (rows, numbers) by party, each row shortened to the reach, in whole steps."""
    # A row that overflows adds nothing. Were the whole answer to fail, one record would move all of it.
    along[~np.isfinite(along).all(axis=1)] = 0.0
    lengths = np.sqrt(np.einsum("ij,ij->i", along, along))
    along *= (reach / np.maximum(lengths, reach))[:, None]
    # Towards zero: nothing gets longer.
    steps = np.trunc(f.weigh(along) / step).astype(np.int64)
    owner = f.repeat_per_row(np.arange(len(f.sizes), dtype=np.float64)).astype(np.int64)
    out = np.zeros((len(f.sizes), along.shape[1]), dtype=np.int64)
    np.add.at(out, owner, steps)
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class Lengths:
    """What is known of the best length of a model before it is measured: each of `lengths` with its weight."""

    loss: Loss
    size: float  # of what a model adds to a score, as far as it is known
    constant: Array  # scores (outputs,) of the constant model
    lengths: Array
    weights: Array
    longest: float  # to which scores of a record are shortened

    def choose(self, slopes: Array, noise: float, penalty: Callable[[Array], Array]) -> float:
        """The length of least expected loss, by mean slopes of this noise and the penalties of lengths."""
        laws, prior = Law.of_odds(self.size, self.constant, self.longest), self._weigh_lengths()
        fits, noise = [], max(noise, EXACT * self.size)
        for law, step in zip(laws, STEPS, strict=True):
            spread = noise**2 + (DISCREPANCY * law.slopes) ** 2
            fit = np.sum((slopes - law.slopes) ** 2 / spread + np.log(spread), axis=1)
            fits.append(prior - 0.5 * step**2 - 0.5 * fit)
        weights = np.exp(np.array(fits) - np.max(fits))
        weights /= weights.sum()
        expected = sum(law.expect(known) for law, known in zip(laws, weights, strict=True))
        return float(CANDIDATES[np.argmin(expected + penalty(CANDIDATES))])

    def _weigh_lengths(self) -> Array:
        """Logarithms of the weights of CANDIDATES."""
        logs, tiny = np.log(np.maximum(CANDIDATES, CANDIDATES[1] / 2)), np.finfo(float).tiny
        apart = (logs[:, None] - np.log(np.maximum(self.lengths, CANDIDATES[1] / 2))) / UNSURE
        prior: Array = np.log(np.exp(-0.5 * apart**2) @ self.weights + tiny)
        return prior


@dataclass(frozen=True, kw_only=True, eq=False)
class Law:
    """What is expected of a loss along a model whose scores have a normal law, by the odds of labels."""

    slopes: Array  # (odds, scales), of shortened scores
    expect: Callable[[Array], Array]  # by weights of the odds: losses (lengths,) above that of the constant model

    @classmethod
    def of_odds(cls, size: float, constant: Array, longest: float) -> list[Law]:
        """Of log loss at each of SIZES, where each of CANDIDATES is the best length: slopes differ by <t, probs>."""
        from scipy.interpolate import CubicSpline  # slow to import

        if len(constant) == 1:
            # Two labels are two classes, whose scores differ by t.
            t = np.stack([np.zeros(DRAWS), NORMAL])
            origin, lengths = np.append(0.0, constant), size * np.abs(NORMAL)
        else:
            t = np.random.default_rng(0).normal(size=(max(FEWEST_DRAWS, DRAWS // len(constant)), len(constant)))
            t = (t - t.mean(axis=1, keepdims=True)).T
            origin, lengths = constant, size * np.linalg.norm(t, axis=0)
        losses, pulls = _average_scores(origin, size * t)
        factors = longest / np.maximum(SIZES[:, None] * lengths, longest)
        means, short, laws = pulls.mean(axis=1), pulls @ factors.T / pulls.shape[1], []
        for place, each in enumerate(SIZES):
            # A model of another size is this one at other lengths, whose place among all of them is known.
            points = np.stack([losses, each * means, each * short[:, place]], axis=1)[_places(place)]
            values, pulled, shortened = CubicSpline(KNOTS, points)(CANDIDATES).T
            slopes = np.interp(SCALES, CANDIDATES, shortened) - shortened[:, None]
            laws.append(cls(slopes=slopes, expect=partial(_expect_loss, values - values[0], pulled)))
        return laws


def _average_scores(origin: Array, along: Array) -> tuple[Array, Array]:
    """Mean log loss (lengths,) less the label's score, and <t, probabilities> (lengths, draws), at all lengths.

    Class by class, since tables may have a thousand.
    """
    most = reduce(np.maximum, map(_add_along, origin, along))
    totals, pulls = np.zeros_like(most), np.zeros_like(most)
    for place, each in zip(origin, along, strict=True):
        part = np.exp(_add_along(place, each) - most)
        totals += part
        pulls += each * part
    return (most + np.log(totals)).mean(axis=1), pulls / totals


def _add_along(origin: float, along: Array) -> Array:
    """Scores of one class, (lengths, draws)."""
    scores: Array = origin + np.multiply.outer(LONGER, along)
    return scores


def _places(step: int) -> IntArray:
    """Where the products of KNOTS and one of SIZES stand in LONGER."""
    return np.append(0, 1 + step * KNOTS_A_STEP + np.arange(len(KNOTS) - 1))


def _expect_loss(losses: Array, pulls: Array, known: Array) -> Array:
    """Log losses (lengths,) above that of the constant model, by weights of the odds."""
    return np.asarray(known.sum() * losses - (known @ pulls) * CANDIDATES)
