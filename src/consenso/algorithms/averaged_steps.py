"""What the hub of DualAveraging makes of its releases: centres, scales, directions, rates, what is left out.

All of it is post-processing; rows are never seen here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from consenso.algorithms import length_laws, noise_levels, scale_mixture, target_counts
from consenso.algorithms.centring import (
    LEAST_SCALE,
    LONGEST_SHIFT,
    MOST_DIRECTIONS,
    NARROWEST_WIDTH,
    SHORTEST_CLIP,
    Centring,
)
from consenso.algorithms.directions import (
    LENGTHS_SHARE,
    PASSES,
    RANGE_SHARE,
    Pass,
    most_directions,
    shrink,
    start_directions,
)
from consenso.algorithms.shape import require_positive
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.metric import prox_in_diagonal
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L1, L2, ElasticNet, NoPenalty, Regularizer, Unpenalized

# Shares of the squared budget.
MEAN_SHARE, SQUARES_SHARE, LENGTH_SHARE = 0.01, 0.02, 0.04
# How far noise may move a coefficient of a row at its bound, in units in which scores matter.
REACH = 2.0
# Centred rows are shortened to this part of their typical length: most of them then weigh alike, and noise is less.
CLIP = 0.7
# Exponent of the scales of columns: 1 gives all of them one size, as far as they stand out.
SCALING = 1.0
# What of the slopes of labels is given up where noise is loud, first and in the last part of the steps. Narrow slopes
# let all records speak alike until they are learnt, with little noise, and make scores too long that are learnt well;
# what noise does not hide, an intercept first of all, falls back in the last part.
GIVEN_UP, GIVEN_UP_LATE, LATE_PART = 0.7, 0.3, 0.1
# Strong directions are taken in steps of this part of the inverse curvature: noise has turned them a little, and what
# lies across them is not quite apart. Steps across are no longer than what was left there of the strongest allows.
APART = 0.5
# No column has less than this part of its variance across the directions.
LEAST_ACROSS = 0.05
# A column has a mean if that is so many standard deviations of its noise away from 0.
STANDS_OUT = 3.0
# Columns are taken for no emptier than this part of the squared row bound.
EMPTIEST = 1e-8


@dataclass(frozen=True)
class Hub:
    """What the releases so far have told, and the iterate."""

    shift: Array  # t; empty while rows are not centred
    scales: Array  # d; empty while columns are as they came
    directions: Array  # V, (features, k); (0, 0) while there are none
    shrinks: Array  # s, (k,)
    found: Array  # 1 for directions that stand out, (k,)
    astray: float  # the longest that is left across the directions of what lies along them
    variances: Array  # v of the columns, then of the directions
    length: float  # of a typical centred row
    clip: float
    width: float  # of slopes, relative to their bound
    spread: float  # of real targets around the constant model, over the slope limit; 0 where they were not counted
    step: float  # of all rates
    taken: int
    gradient: Array  # the last one
    u: Array
    variance: Array  # of the noise in u
    kept: Array  # the part of u that is no noise, wide
    factor: float  # by which the model is made longer around its constant part; 1 before that is measured

    @property
    def centring(self) -> Centring:
        """How rows are centred, scaled and shortened."""
        return Centring(self.shift, self.clip, self.scales, self.directions, self.shrinks)

    @property
    def weight(self) -> float:
        """How much a typical record is shortened: the loss counts so much less, and so must the regularizer."""
        return min(1.0, self.clip / self.length)


@dataclass(frozen=True, kw_only=True)
class AveragedSteps:
    """Settings, and the rules that follow from them and from what was released."""

    clip: float | None = None
    width: float | None = None
    smoothing: float = 0.0
    scaling: float = SCALING
    directions: int = 0
    target_bins: int = 0
    counts_share: float = target_counts.SHARE
    constant: float = 0.0
    lengths: bool = False

    def __post_init__(self) -> None:
        require_positive(self, clip=self.clip)
        if self.width is not None and not NARROWEST_WIDTH <= self.width <= 1:
            raise InputError(f"DualAveraging(width={self.width}): a width lies in [{NARROWEST_WIDTH:g}, 1].")
        if not 0 <= self.scaling <= 1:
            raise InputError(f"DualAveraging(scaling={self.scaling}): an exponent between 0, for none, and 1.")
        if not 0 <= self.directions <= MOST_DIRECTIONS or self.directions != int(self.directions):
            raise InputError(f"DualAveraging(directions={self.directions}): from 0, for none, to {MOST_DIRECTIONS}.")
        if not 0 <= self.smoothing < np.inf:
            raise InputError(f"DualAveraging(smoothing={self.smoothing}): smoothing is a finite number, 0 for none.")
        target_counts.check_settings(self, 0)

    @property
    def noise_weights(self) -> Mapping[str, float]:
        """Multipliers of the releases relative to that of a single release with the whole budget."""
        parts = {"mean": MEAN_SHARE, "squares": SQUARES_SHARE}
        if self.directions:
            parts |= {"lengths": LENGTHS_SHARE, "range": RANGE_SHARE}
        if self.target_bins:
            parts |= {"targets": self.counts_share}
        if self.lengths:
            parts |= {"length": LENGTH_SHARE}
        spent = sum(parts.values()) + parts.get("lengths", 0.0)  # which are released twice
        return {name: part**-0.5 for name, part in (parts | {"gradient": 1 - spent}).items()}

    def looks(self, problem: Problem) -> tuple[str, ...]:
        """What is released in the rounds before the steps."""
        targets = ("targets",) if self.target_bins and problem.loss.targets == "real" else ()
        directions = ("lengths", *PASSES * ("range",), "lengths") if self._count(problem) else ()
        return (*targets, *_free(problem) * ("mean",), "squares", *directions)

    def _count(self, problem: Problem) -> int:
        """How many directions are looked for."""
        wanted = self.directions if _square_of(problem) is not None else 0
        return most_directions(wanted, problem.features, _free(problem))

    def other_rounds(self, problem: Problem) -> int:
        """Rounds that are no steps."""
        return len(self.looks(problem)) + self._asks_length(problem)

    def _asks_length(self, problem: Problem) -> bool:
        return self.lengths and problem.loss.is_likelihood

    def _kind(self, facts: PublicFacts) -> str:
        if self._asks_length(facts.problem) and not facts.is_before(facts.rounds - 1):
            return "length"
        looks = enumerate(self.looks(facts.problem))
        return next((kind for place, kind in looks if facts.is_before(place + 1)), "gradient")

    def _steps(self, facts: PublicFacts) -> int:
        return max(1, facts.rounds - self.other_rounds(facts.problem))

    def start(self, facts: PublicFacts) -> Hub:
        bound, count = facts.problem.row_bound, self._count(facts.problem)
        zero = np.zeros(facts.dim + count * facts.problem.outputs)
        return Hub(
            shift=np.empty(0),
            scales=np.empty(0),
            directions=np.empty((0, 0)),
            shrinks=np.empty(0),
            found=np.zeros(count),
            astray=0.0,
            variances=np.full(facts.problem.features + count, bound**2),
            length=bound,
            clip=bound,
            width=1.0,
            spread=0.0,
            step=1.0,
            taken=0,
            gradient=zero,
            u=zero,
            variance=zero,
            kept=np.ones_like(zero),
            factor=1.0,
        )

    def _take_targets(self, facts: PublicFacts, hub: Hub, counts: Array) -> Hub:
        """Steps start at the constant model, and residuals are clipped by their spread around it."""
        problem, u = facts.problem, hub.u
        found = target_counts.read_constant_model(problem, counts, facts.noise["targets"])
        spread = found.spread
        if self.constant and _free(problem):
            u = u.copy()
            u[facts.dim - 1] = found.scores[0] / self.constant
        else:
            spread = float(np.hypot(spread, found.scores[0]))
        unit = self.smoothing or noise_levels.slope_limit(problem)
        return replace(hub, u=u, spread=min(1.0, spread / unit))

    def _measure(self, facts: PublicFacts, hub: Hub, squares: Array, noise: float) -> Hub:
        """Variances around the mean, the length of a typical row, and what follows from both."""
        bound = facts.problem.row_bound
        last = float(np.clip(squares[-1], 0.0, bound**2))
        around = squares - (np.square(hub.shift) * last if hub.shift.size else 0.0)
        variances = np.clip(around, max(noise, EMPTIEST * bound**2), bound**2)
        scales = self._scales(facts, variances, around, noise)
        variances = np.append(variances, hub.variances[len(variances) :])
        hub = replace(hub, scales=scales, variances=variances, width=self._width(facts, hub))
        return self._clip(facts, hub, _trace(around, scales, noise))

    def _clip(self, facts: PublicFacts, hub: Hub, squared: float, part: float = CLIP) -> Hub:
        """Rows of this mean squared length are shortened to a part of it."""
        bound = facts.problem.row_bound
        length = float(np.sqrt(np.clip(squared, (SHORTEST_CLIP * bound) ** 2, bound**2)))
        longest = bound * (1 + float(np.linalg.norm(hub.shift)))
        clip = part * length if self.clip is None else self.clip
        return replace(hub, length=length, clip=float(np.clip(clip, SHORTEST_CLIP * bound, longest)))

    def _shorten(self, facts: PublicFacts, hub: Hub, squares: Array, noise: float) -> Hub:
        """The length of a typical row; the second time, what lies along directions is made smaller."""
        problem, least = facts.problem, EMPTIEST * facts.problem.row_bound**2
        across = max(float(squares[-1]) + noise, least)
        if not hub.directions.size:
            start = start_directions(problem.features, self._count(problem), _free(problem))
            hub = replace(hub, directions=start, shrinks=np.ones(start.shape[1]))
            return self._clip(facts, hub, across, part=1.0)
        along = np.clip(squares[:-1], max(noise, least), problem.row_bound**2)
        across += float(along @ (1 - hub.found))
        shrinks = np.maximum(shrink(along, across, hub.found), LEAST_SCALE)
        strong = shrinks < 1
        columns, scales = hub.variances[: problem.features], np.square(hub.scales)
        taken = np.square(hub.directions) @ np.where(strong, along, 0.0)
        left = np.maximum(columns - taken / scales, LEAST_ACROSS * columns)
        astray = float(np.max(hub.astray * np.where(strong, along, 0.0)))
        hub = replace(hub, shrinks=shrinks, astray=astray, variances=np.append(left, along))
        return self._clip(facts, hub, across + float(np.square(shrinks) @ np.where(strong, along, 0.0)))

    def _turn(self, facts: PublicFacts, hub: Hub, products: Array, noise: float) -> Hub:
        """Directions after one more pass."""
        found = Pass.read(
            products.reshape(facts.problem.features, -1), noise * hub.clip**2 * PASSES**0.5, _free(facts.problem)
        )
        turned = float(np.max(found.astray * found.found))
        return replace(hub, directions=found.vectors, found=found.found, astray=turned)

    def _scales(self, facts: PublicFacts, variances: Array, around: Array, noise: float) -> Array:
        """What columns are multiplied with; the free one keeps its share of a row.

        Columns that noise may have made large are left alone: see `_level`.
        """
        if not self.scaling:
            return np.ones(len(variances)) if self._count(facts.problem) else np.empty(0)
        rest = len(variances) - _free(facts.problem)
        scales = np.ones(len(variances))
        least = max(float(variances[:rest].min()), _level(rest) * noise)
        scales[:rest] = np.minimum(least / variances[:rest], 1.0) ** (self.scaling / 2)
        # Noise of the whole row costs (columns + 1 / share^2) (1 + share^2): least at this share of the free column.
        share = rest**-0.25
        scales[rest:] = share * np.sqrt(_trace(around[:rest], scales[:rest], noise) / variances[rest:])
        return np.clip(scales, LEAST_SCALE, 1.0)

    def _width(self, facts: PublicFacts, hub: Hub) -> float:
        """Where slopes are clipped: those of labels by the noise, residuals by the spread of the targets."""
        if self.width is not None:
            return self.width
        if hub.spread:
            return max(NARROWEST_WIDTH, noise_levels.FIRST_CLIP * hub.spread)
        if self.smoothing or facts.problem.loss.targets == "real":
            return 1.0
        levels = noise_levels.NoiseLevels.of(facts, self._curvature(facts, hub), facts.problem.features)
        late = hub.taken >= (1 - LATE_PART) * self._steps(facts)
        return min(1.0, self._rarity(facts, hub) * levels.slopes_without(GIVEN_UP_LATE if late else GIVEN_UP))

    def _rarity(self, facts: PublicFacts, hub: Hub) -> float:
        """The largest slope of the constant model, over that for even labels: from 1 to 2.

        Where a label is rare the slopes of its records are long, and what is given up of them all but silences it.
        """
        if not (self.constant and _free(facts.problem)) or facts.problem.outputs > 1:
            return 1.0
        return 2 * float(expit(abs(self.constant * hub.u[facts.dim - 1])))

    def _curvature(self, facts: PublicFacts, hub: Hub) -> float:
        return noise_levels.curvature_of(facts.problem.loss, self.smoothing * hub.width)

    def _noise(self, facts: PublicFacts, hub: Hub) -> Array:
        """Of the mean gradient of one step in the units of the columns, wide."""
        width = 1.0 if self.smoothing else hub.width
        whole = facts.noise.get("gradient", 0.0) * hub.clip * width / facts.problem.records
        noise = whole * float(np.sqrt(self._steps(facts)))
        return hub.centring.widen_noise(noise, facts.problem.features, facts.problem.outputs)

    def _rates(self, facts: PublicFacts, hub: Hub) -> Array:
        """Step sizes, wide."""
        problem, outputs, curvature = facts.problem, facts.problem.outputs, self._curvature(facts, hub)
        bend = curvature * hub.variances
        if hub.directions.size:
            bend = bend + float(_square_of(problem) or 0.0)
        rates = np.repeat(hub.step / (hub.weight * bend), outputs)
        spread = self._noise(facts, hub) * float(np.sqrt(self._steps(facts)))  # of the sum of all gradients
        rest = facts.dim - _free(problem) * outputs
        if spread.any():
            reach = hub.step * REACH * self._unit(facts, hub) / problem.row_bound
            rates[:rest] = np.minimum(rates[:rest], reach / spread[:rest])
        if hub.directions.size:
            if hub.astray:
                most = hub.step * APART / (curvature * hub.weight * hub.astray) * np.square(hub.scales)
                rates[:rest] = np.minimum(rates[:rest], np.repeat(most, outputs)[:rest])
            rates[facts.dim :] *= APART * np.repeat(hub.shrinks < 1, outputs)
        return rates

    def _unit(self, facts: PublicFacts, hub: Hub) -> float:
        """In which scores matter: 1 for labels, the spread of real targets as far as it is known."""
        bound = facts.problem.target_bound
        if bound is None:
            return 1.0
        known = hub.spread * (self.smoothing or noise_levels.slope_limit(facts.problem))
        return known or noise_levels.RESIDUAL * bound

    def _take_step(self, facts: PublicFacts, hub: Hub, gradient: Array) -> Hub:
        noise, rates = self._noise(facts, hub), self._rates(facts, hub)
        gradient = hub.centring.widen(gradient)
        if hub.directions.size:
            gradient = gradient + hub.weight * self._pull(facts, hub)
        # In the coordinates in which all steps are equal.
        root = np.sqrt(rates)
        loudest = float(np.sqrt(np.mean(rates * np.square(noise))))
        step = noise_levels.shorter(hub.step, gradient * root, hub.gradient * root, loudest)
        shrunk = step / hub.step
        u = hub.u * shrunk - shrunk * rates * gradient
        variance = shrunk**2 * (hub.variance + np.square(rates * noise))
        if not hub.directions.size:
            u = prox_in_diagonal(facts.problem.regularizer, u, shrunk * rates * hub.weight)
        hub = replace(hub, step=step, taken=hub.taken + 1, gradient=gradient, u=u, variance=variance)
        return replace(hub, width=self._width(facts, hub), kept=self._measure_kept(facts, hub))

    def _origin(self, facts: PublicFacts, hub: Hub) -> Array:
        """The constant part of the model, around which its length is measured."""
        origin, rest = np.zeros(facts.dim), facts.dim - _free(facts.problem) * facts.problem.outputs
        origin[rest:] = hub.u[rest : facts.dim]
        return origin

    def _length_noise(self, facts: PublicFacts) -> float:
        """Of a mean slope along the model, for a reach of 1."""
        return facts.noise.get("length", 0.0) / facts.problem.records

    def _reach(self, facts: PublicFacts, hub: Hub) -> float:
        """How far a record's slopes along the model may reach."""
        limit = noise_levels.slope_limit(facts.problem)
        return length_laws.choose_reach(self._length_noise(facts), self._measure_scores(facts, hub), limit)

    def _measure_scores(self, facts: PublicFacts, hub: Hub) -> float:
        """The size of what the model adds to a score, by released squares."""
        outputs = facts.problem.outputs
        learnt = self._keep(facts, hub)
        learnt[facts.dim - _free(facts.problem) * outputs : facts.dim] = 0.0
        square = float(np.repeat(hub.variances, outputs) @ np.square(learnt))
        return math.sqrt(max(square / max(outputs - 1, 1), length_laws.EXACT**2))

    def _take_length(self, facts: PublicFacts, hub: Hub, slopes: Array) -> Hub:
        """The length of the least expected loss and penalty."""
        problem, origin, reach = facts.problem, self._origin(facts, hub), self._reach(facts, hub)
        learnt = self._leave_out(facts, hub) - origin

        def penalty(scales: Array) -> Array:
            return np.array([problem.regularizer.value(origin + scale * learnt) for scale in scales])

        known = length_laws.Lengths(
            loss=problem.loss,
            size=self._measure_scores(facts, hub),
            mean=0.0,  # rows are centred
            constant=origin[facts.dim - problem.outputs :] * self.constant,
            lengths=np.ones(1),
            weights=np.ones(1),
            longest=length_laws.longest_scores(reach, problem.loss),
        )
        slopes = slopes + self._measure_optimism(facts, hub)
        return replace(hub, factor=known.choose(slopes, reach * self._length_noise(facts), penalty))

    def _measure_optimism(self, facts: PublicFacts, hub: Hub) -> float:
        """By how much the records that were learnt from speak for a longer model than others would, on average.

        A record's own slope has moved its score by what is kept of the way times its squared entries over their number.
        """
        problem = facts.problem
        own = hub.kept * self._measure_way(facts, hub) * np.repeat(hub.variances, problem.outputs)
        # A slope of labels has the root of the curvature as its deviation; in most steps it was clipped.
        deviation, clipped = math.sqrt(self._curvature(facts, hub)), self._width(facts, replace(hub, taken=0))
        return float(own.sum()) * deviation * min(deviation, clipped) / problem.records

    def _pull(self, facts: PublicFacts, hub: Hub) -> Array:
        """The slope of the square in a wide model."""
        problem = facts.problem
        slope = float(_square_of(problem) or 0.0) * self._leave_out(facts, hub)
        slope[facts.dim - _free(problem) * problem.outputs :] = 0.0
        return hub.centring.pull_back(slope)

    def _measure_way(self, facts: PublicFacts, hub: Hub) -> Array:
        """How far u has come for a slope of 1, wide.

        All steps hear the same records: it grows with their number, up to that of the model of least loss.
        """
        variances = np.repeat(hub.variances, facts.problem.outputs)
        far: Array = 1 / (self._curvature(facts, hub) * variances)
        return np.minimum(hub.taken * hub.weight * self._rates(facts, hub), far)

    def _measure_sampling(self, facts: PublicFacts, hub: Hub) -> Array:
        """Variance that u has because records are a sample: what a column says may be chance without any noise.

        The variance of a slope of labels is the curvature of their loss, of clipped ones at most the squared width.
        """
        problem = facts.problem
        if problem.loss.targets == "real" or self.smoothing:
            return np.zeros_like(hub.u)
        slopes = np.repeat(hub.variances, problem.outputs) * min(self._curvature(facts, hub), hub.width**2)
        sampled: Array = np.square(self._measure_way(facts, hub)) * slopes / problem.records
        return sampled

    def _measure_kept(self, facts: PublicFacts, hub: Hub) -> Array:
        """The part of u that is no noise, wide."""
        problem = facts.problem
        rest = facts.dim - _free(problem) * problem.outputs
        moved, kept = np.sqrt(hub.variance), np.ones_like(hub.u)
        columns = np.flatnonzero(moved[:rest])
        noise = np.sqrt(hub.variance + self._measure_sampling(facts, hub))[columns]
        kept[columns] = scale_mixture.find_kept(hub.u[columns] / noise)
        along = np.abs(hub.u[facts.dim :])
        kept[facts.dim :] = np.maximum(along - moved[facts.dim :], 0.0) / np.maximum(along, np.finfo(float).tiny)
        if _asks_for_zeros(problem.regularizer):
            # What is left stands out of all columns: noise alone leaves one of them, on average.
            kept[:rest][np.abs(hub.u[:rest]) < float(norm.isf(0.5 / facts.dim)) * moved[:rest]] = 0.0
        return kept

    def _keep(self, facts: PublicFacts, hub: Hub) -> Array:
        """What of u is no noise, as long as it should be, wide."""
        w: Array = hub.u * hub.kept
        w[: facts.dim - _free(facts.problem) * facts.problem.outputs] *= hub.factor
        w[facts.dim :] *= hub.factor
        return w

    def _leave_out(self, facts: PublicFacts, hub: Hub) -> Array:
        """The model, without what noise alone may have moved."""
        problem = facts.problem
        if not hub.taken:
            return hub.u[: facts.dim]
        w = self._keep(facts, hub)
        if problem.regularizer.is_constraint:
            w = problem.regularizer.prox(w, 0.0)
        return hub.centring.model(w, problem.features)


def _square_of(problem: Problem) -> float | None:
    """The strength of a regularizer that is a square of all columns but the free one, 0 for none; else None."""
    regularizer = problem.regularizer
    inner = regularizer.inner if isinstance(regularizer, Unpenalized) and _free(problem) else regularizer
    if isinstance(inner, L2):
        return inner.strength
    return 0.0 if isinstance(inner, NoPenalty) else None


def _asks_for_zeros(regularizer: Regularizer) -> bool:
    inner = regularizer.inner if isinstance(regularizer, Unpenalized) else regularizer
    return isinstance(inner, L1) or (isinstance(inner, ElasticNet) and inner.l1 > 0)


def _free(problem: Problem) -> int:
    """1 if the regularizer leaves the last column alone, and no other."""
    regularizer = problem.regularizer
    return int(isinstance(regularizer, Unpenalized) and regularizer.last == problem.outputs and problem.features > 1)


def _level(columns: int) -> float:
    """Standard deviations of its noise from which on a column is made smaller, at least 1.

    To make columns smaller that noise has made large biases the length of rows, by E max(z - level, 0) of them each:
    all together by one standard deviation of the sum at most.
    """
    if columns < 8:
        return 1.0
    found = brentq(lambda level: norm.pdf(level) - level * norm.sf(level) - columns**-0.5, 0.0, 10.0)
    return max(1.0, float(found))


def _trace(around: Array, scales: Array, noise: float) -> float:
    """The mean squared length of scaled rows, above the truth but for one table in forty.

    A clip that is too short costs more than one that is too long. So does a free column that is made too small: what is
    hidden by noise may be as large as that, however far below zero noise has moved it.
    """
    weights = np.square(scales) if scales.size else np.ones(len(around))
    spread = noise * float(np.linalg.norm(weights))
    return max(float(weights @ around) + 2 * spread, spread)


def find_shift(mean: Array, noise: float) -> Array:
    """Means in units of that of the free column, 0 where they do not stand out; none at all where it does not."""
    clear = np.abs(mean) > STANDS_OUT * noise
    if not clear[-1]:
        return np.zeros_like(mean)
    shift: Array = np.where(clear, mean / mean[-1], 0.0)
    shift[-1] = 0.0
    return shift if float(np.linalg.norm(shift)) <= LONGEST_SHIFT else np.zeros_like(mean)
