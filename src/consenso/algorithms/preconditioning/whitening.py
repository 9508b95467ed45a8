"""What PreconditionedFixedPoint has found out, what it may release, and rows in the coordinates that it found."""

from __future__ import annotations

import hashlib
import math
from dataclasses import astuple, dataclass, replace
from typing import Any, Protocol

import numpy as np

from consenso.algorithms.evidence import MomentEvidence
from consenso.algorithms.preconditioning import slope_sizes
from consenso.algorithms.preconditioning.noise_levels import clip_slopes, slope_limit
from consenso.algorithms.preconditioning.target_counts import count_rows
from consenso.arrays import Array, IntArray
from consenso.clipping import shorten
from consenso.errors import MessageError
from consenso.metric import Metric, NoisyMetric
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.rows import moment_step, sum_step
from consenso.shards import Cohort

DIGEST_WORDS = 8  # of 32 bits: exact as floating-point numbers
# Eigenvalues of a metric are at least this part of the squared row bound, and at most all of it: the mean second moment
# of rows has no larger one, and rounding is magnified by the root of the ratio at most.
LEAST = 1e-6
CONDITION = LEAST**-0.5
# How far from orthonormal the vectors of a metric may be, entry by entry.
ORTHONORMAL = 1e-9
SHORTEST_CLIP, NARROWEST_WIDTH = 1e-6, 1e-3
# The mean squared length of rows is at least this part of its bound, as far as damping goes.
SHORTEST_TRACE = 1e-3
ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class Hub:
    """What the releases so far have told, and the iterates."""

    vectors: Array  # eigenvectors of Q; empty while all directions are alike
    values: Array  # eigenvalues of Q
    effective: float  # mean squared length of a whitened row
    shares: Array  # of the eigenvalues of Q, the parts that rows fill; empty while all directions are alike
    trace: float  # mean squared length of a row
    clip: float
    steps: int  # how many gradient steps the budget is worth; 0 while it is not known
    taken: int
    width: float  # of slopes, relative to where they started
    step: float  # relative to the inverse curvature
    momentum: float  # by which part of the last step the next one goes on
    variance: float  # of scores that the first gradient spoke for
    refuted: float  # logarithm by which it made it less likely that rows tell nothing of labels
    origin: Array  # the constant model, from which steps start and to which the model is shrunk
    odds: float  # logarithm of the counted odds of the positive one of two labels
    lead: float  # by which part of the records it was counted more often than the other one
    spread: float  # of real targets around the constant model, over the slope limit; 1 where nothing is known
    size: float  # of slopes at the model, a standard deviation over their limit; 1 where nothing is known
    filled: float  # mean squared length of rows without their constant, over its bound
    curved: float  # how much the loss was at least seen to bend along the last step of the warm-up, over the spectrum
    bend: float  # share of the residuals that are not clipped, which all of the curvature comes from
    gradient: Array  # the last one, whitened
    x: Array
    before: Array  # the iterate before x
    total: Array  # sum of the late points before the prox
    averaged: int
    # Of the late steps, for standard errors (consenso.algorithms.evidence):
    points: Array  # sum of the iterates
    pulls: Array  # sum of the gradients, whitened
    products: Array  # sums of products of iterate and iterate, iterate and gradient, gradient and gradient, whitened
    moment: Array  # the first second moment as it was released, (features, features); empty before it
    moments: Array  # the numbers of evidence.MomentEvidence; empty before a second moment was released
    sizes: Array  # noisy numbers of records by size of their slopes; empty before they are counted
    met: Array  # the model at which they were counted
    length: float  # of the model, over what the steps have given it; 0 before it is measured

    @property
    def metric(self) -> Metric:
        """Q."""
        return Metric(self.vectors, self.values)

    @property
    def weight(self) -> float:
        """How much a typical record is shortened: the loss counts so much less, and so must the regularizer."""
        return min(1.0, self.clip / float(np.sqrt(self.effective)))


def estimate_trace(problem: Problem, seen: float, noise: float, constant: float) -> float:
    """The mean squared length of rows, seen with this noise: it is no less than the constant's, no more than the bound.

    The mean of what is left of a normal law between these.
    """
    most = problem.row_bound**2
    least = max(SHORTEST_TRACE * most, 0.0 if problem.is_weighted else constant)
    if problem.is_weighted:
        return max(seen, least)
    points = seen + noise * np.linspace(-8, 8, 513)
    inside = (points >= least) & (points <= most)
    if noise == 0 or not inside.any():
        return min(max(seen, least), most)
    weights = np.exp(-0.5 * ((points[inside] - seen) / noise) ** 2)
    return float(weights @ points[inside] / weights.sum())


def note_first_moment(hub: Hub, seen: NoisyMetric, noise: float) -> Hub:
    """The hub with what standard errors need of a first second moment, whose packed entries have this noise."""
    values, entry = seen.metric.values, noise * float(np.linalg.norm(1.0 / seen.metric.values))
    blur = noise * float(np.mean(1.0 / values))
    told = MomentEvidence(length=float(np.sum(seen.metric.power(-1.0) * seen.moment)), noise=entry, blur=blur)
    return replace(hub, moment=seen.moment, moments=np.array(astuple(told)))


def note_second_moment(hub: Hub, seen: NoisyMetric, noise: float) -> Hub:
    """The same of a second one; the noise of the first is that of `hub`."""
    before, metric = hub.metric, seen.metric
    inverse = metric.power(-1.0)
    first = hub.moments[2] / float(np.mean(1.0 / before.values))
    told = MomentEvidence(
        length=float(np.sum(inverse * hub.moment)),
        noise=first * float(np.linalg.norm(inverse)),
        blur=noise * len(inverse) / max(seen.trace, noise),
        clip=hub.clip,
        lift=seen.lift,
        last=float(before.power(1.0)[-1, -1]),
    )
    return replace(hub, moments=np.array(astuple(told)))


def moment_release(facts: PublicFacts, *, several: bool) -> Release:
    """Second moments; `several` share one cost."""
    problem = facts.problem
    p, one = problem.features, problem.weight_bound * problem.row_bound**2
    rounding = sum_rounding(problem.parties, one * float(problem.unit_caps.sum()))
    return Release(
        name="second moment",
        size=p * (p + 1) // 2,
        at="sum",
        adaptive=several,
        parts=several,
        # Positive semidefinite matrices are not opposed.
        bounds=Bounds.of_contributions(record=one, party=one * facts.most, rounding=rounding, opposed=False),
        why="a row contributes a a' of Frobenius norm |a|^2 (docs/privacy.md#preconditioned-fixed-point)",
    )


def gradient_release(facts: PublicFacts, *, lengths: int = 0) -> Release:
    """Gradients over whitened rows, which share one cost; or so many slopes along the model, in the same release."""
    problem = facts.problem
    slope = problem.weight_bound * slope_limit(problem) * (1 + rounding(facts))
    total = sum_rounding(problem.parties, slope * float(problem.unit_caps.sum()))
    return Release(
        name="gradient",
        size=facts.dim + lengths,
        at="sum",
        adaptive=True,
        parts=True,
        bounds=Bounds.of_contributions(record=slope, party=slope * facts.most, rounding=total),
        why="a slope times a whitened row shortened to the clip (docs/privacy.md#preconditioned-fixed-point)"
        + (", or slopes along the model (docs/privacy.md#length-of-a-model)" if lengths else ""),
    )


def digest(metric: Metric, clip: float) -> Array:
    """What tells one metric and clip from all others, (DIGEST_WORDS,): exact whole numbers."""
    told = hashlib.sha256()
    for part in (metric.vectors, metric.values, np.array([clip])):
        told.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    words: Array = np.frombuffer(told.digest(), dtype="<u4").astype(np.float64)
    return words


def check_metric(facts: PublicFacts, metric: Metric) -> None:
    """Refuse a metric that no released second moment has: rounding would be magnified beyond what noise covers."""
    p, most = facts.problem.features, facts.problem.row_bound**2
    round_ = metric.vectors.shape == (0, 0) and metric.values.shape == (1,)
    if not round_ and (metric.vectors.shape != (p, p) or metric.values.shape != (p,)):
        raise MessageError(f"metric: {p} vectors of {p} numbers and {p} values are due, or one value without vectors.")
    # Written so that what is not a number is refused.
    if not (np.all(metric.values >= LEAST * most * (1 - 1e-9)) and np.all(metric.values <= most * (1 + 1e-9))):
        raise MessageError(f"metric: values lie in [{LEAST:g}, 1] times the squared row bound, and some do not.")
    if not round_ and not np.abs(metric.vectors.T @ metric.vectors - np.eye(p)).max(initial=0.0) <= ORTHONORMAL:
        raise MessageError(f"metric: its vectors must be orthonormal to {ORTHONORMAL:g}, and they are not.")


def within_bounds(facts: PublicFacts, metric: Metric) -> Metric:
    """The metric with its values where parties accept them."""
    most = facts.problem.row_bound**2
    return Metric(metric.vectors, np.clip(metric.values, LEAST * most, most))


def check_cost(clip: float, width: float, share: float) -> None:
    """Refuse a clip, a width or a share that no honest hub names."""
    if not (SHORTEST_CLIP <= clip <= CONDITION * (1 + 1e-9) and NARROWEST_WIDTH <= width <= 1 and 0 < share <= 1):
        raise MessageError(
            f"clip, width and share lie in [{SHORTEST_CLIP:g}, {CONDITION:g}], [{NARROWEST_WIDTH:g}, 1] and (0, 1], "
            "and one of them does not."
        )


def rounding(facts: PublicFacts) -> float:
    """What rounding adds to how far a whitened gradient moves, relative to one contribution of full length.

    Shortened rows are at most R C long before whitening (R the row bound, C the clip). Sums over rows are exact, of
    contributions that are rounded to a grid of `sum_step`, each of a unit's rows by itself; whitening a sum over n
    records is off by 2 p^1.5 u times its length, in both worlds; and it makes either CONDITION / R times longer at
    most.
    """
    p, n = facts.problem.features, facts.problem.row_cap
    grid = facts.problem.rows_per_unit * float(np.sqrt(facts.dim)) * sum_step(1.0, n)
    return float(CONDITION * (grid + 4 * n * (8 + 2 * p**1.5) * ROUNDOFF))


def factors(f: Cohort, metric: Metric, clip: float) -> Array:
    """How much each whitened row is shortened: to the clip, less what rounding may hide in its length.

    Given a metric that passed `check_metric`, a computed length is off by at most 4 p^2 CONDITION roundoffs of itself.
    """
    if metric.is_round:
        whitened: Array = f.squared_norms / metric.values[0]
    else:
        whitened = f.transformed_squared_norms(metric.power(-0.5))
    return shorten_whitened(whitened, clip, f.problem.features)


def shorten_whitened(squared: Array, clip: float | Array, features: int) -> Array:
    """Factors that shorten whitened rows of these computed squared lengths to the clip."""
    shortened: Array = shorten(np.sqrt(squared), longest_computed(clip, features))
    return shortened


def longest_computed(clip: float | Array, features: int) -> Any:
    """The computed length from which on a whitened row may be longer than the clip."""
    return clip / (1 + 4 * features**2 * CONDITION * ROUNDOFF)


class Shortening(Protocol):
    """How much rows are shortened so that they are no longer than a clip when they are whitened."""

    @property
    def clip(self) -> float:
        """The largest length of a whitened row."""
        ...

    def factors(self, rows: Cohort) -> Array:
        """How much each row is shortened, (rows,)."""
        ...


@dataclass(frozen=True, eq=False)
class Whitening:
    """A metric and the clip to which whitened rows are shortened, with a name that no other pair has."""

    metric: Metric
    clip: float
    key: str

    def factors(self, rows: Cohort) -> Array:
        """How much each row is shortened, (rows,): computed when the pair is first heard, then kept beside the rows."""
        return rows.remember(self.key, lambda part: factors(part, self.metric, self.clip))


@dataclass(frozen=True)
class Slopes:
    """Slopes of a loss, of its Moreau envelope if there is smoothing, clipped where they have no bound."""

    smoothing: float
    width: float

    def at(self, f: Cohort, x: Array) -> Array:
        """Of every row at a model, (rows,) or (rows, outputs)."""
        scores, limit = f.linear_predictor(x), slope_limit(f.problem)
        if self.smoothing:
            slopes = f.prox_slopes(scores, self.smoothing * self.width)
        else:
            slopes, limit = f.slopes(scores), limit * self.width
        return slopes if f.problem.loss.slope_bound <= limit else clip_slopes(slopes, limit)


# What is added up over rows, in whole steps of public grids.


def sum_moments(f: Cohort) -> Array:
    """Sum over each party's rows of row times its transpose, (parties, features, features)."""
    problem = f.problem
    step = moment_step(problem.row_bound * math.sqrt(problem.weight_bound), problem.row_cap)
    return f.add_up(_moments, step**2, step)


def sum_shortened_moments(f: Cohort, whitening: Whitening) -> Array:
    """The same over whitened and shortened rows."""
    step = moment_step(whitening.clip * math.sqrt(f.problem.weight_bound), f.problem.row_cap)
    return f.add_up(_shortened_moments, step**2, whitening, step)


def count_slopes(f: Cohort, x: Array, slopes: Slopes) -> Array:
    """Rows of each party by sign and size of their slopes, (parties, bins)."""
    return count_rows(f, slope_sizes.BINS, _slope_bins, x, slopes)


def sum_gradients(f: Cohort, x: Array, slopes: Slopes, whitening: Shortening) -> Array:
    """Sum over each party's rows of slope times shortened row, before whitening, (parties, dim)."""
    problem = f.problem
    # The grid is as much finer as slopes are shorter: noise is, too.
    limit = slope_limit(problem) * (1.0 if slopes.smoothing else slopes.width)
    longest = problem.weight_bound * limit * problem.row_bound * whitening.clip
    step = sum_step(longest, problem.row_cap)
    return f.add_up(_gradients, step, x, slopes, whitening, step)


def _moments(f: Cohort, step: float) -> IntArray:
    return f.exact_moments(step)


def _shortened_moments(f: Cohort, whitening: Whitening, step: float) -> IntArray:
    metric, p = whitening.metric, f.problem.features
    root = np.eye(p) * metric.values[0] ** -0.5 if metric.is_round else metric.power(-0.5)
    return f.exact_moments(step, (root, longest_computed(whitening.clip, p)))


def _slope_bins(f: Cohort, x: Array, slopes: Slopes) -> IntArray:
    return slope_sizes.find_bins(slopes.at(f, x) / slope_limit(f.problem))


def _gradients(f: Cohort, x: Array, slopes: Slopes, whitening: Shortening, step: float) -> IntArray:
    shortened = whitening.factors(f)
    if not slopes.smoothing:
        sums = f.exact_residual_sums(x, f.weigh(shortened), slope_limit(f.problem) * slopes.width, step)
        if sums is not None:
            return sums
    found = slopes.at(f, x)
    return f.exact_sums(f.weigh(found * (shortened if found.ndim == 1 else shortened[:, None])), step)
