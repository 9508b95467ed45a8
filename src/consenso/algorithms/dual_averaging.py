"""Noisy dual averaging over centred rows, for tables with many columns (docs/privacy.md, "Dual averaging").

    looks:      m    = noisy sum over records of a                          (where a free column allows to centre)
                s    = noisy sum of a * a                                   (column by column)
                t_j  = m_j / m_last where m_j stands out, else 0,           v_j = s_j / n - (t_j m_last / n)^2
                d_j  = (least v / v_j)^(scaling / 2) where v_j stands out, else 1
    a step:     G    = noisy sum of phi'(<a, x>, target) * shortened(b, C), b = d * (a - t a_last)
                u   <- prox_r(u - step * G / (d n))                         in the metric 1 / step_j
                w    = u moved towards 0 by what noise alone has moved it;  x = w, x_last = w_last - <t, w>
    released:   the last x

    symbol   code      what it is
    b        Centring  a row around the mean, on one scale; it is never formed
    d        scales    where columns differ in size, large ones are made smaller, so that small ones are heard
    step_j   rates     1 / (curvature v_j), but no more than lets noise move a coefficient by REACH at the end
    C        clip      CLIP times the length of a typical centred row, as s tells it

This is the dual averaging of Nesterov 2009 and Xiao 2010 with a constant step: u is minus the step times the sum of all
gradients where there is no penalty, and its noise is known, so what has not stood out yet is left out of the model. No
budget is spent on finding the columns that matter, and none is forgotten that stands out late. A step costs as much as
a product with the non-zeros of the table. Without noise it is proximal gradient descent in a diagonal metric.

The free column is the last one, if the regularizer leaves it alone (`Unpenalized`): that of an intercept. Rows need not
be constant there. Sums over rows are exact: neither their order nor the batches in which they are read change a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from consenso.algorithms import noise_levels
from consenso.algorithms.centring import (
    LEAST_SCALE,
    LONGEST_SHIFT,
    NARROWEST_WIDTH,
    SHORTEST_CLIP,
    Centring,
    check_centring,
    gradient_release,
    mean_release,
    squares_release,
    sum_gradients,
    sum_rows,
    sum_squares,
)
from consenso.algorithms.record_sums import Forgetful
from consenso.algorithms.shape import Example, Source, require_positive
from consenso.algorithms.whitening import Slopes
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import Logistic, require_lipschitz, require_smooth
from consenso.metric import prox_in_diagonal
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec
from consenso.privacy.theorems import Theorem
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty, Regularizer, Unpenalized
from consenso.schedules import Everyone
from consenso.shards import Cohort

# Shares of the squared budget.
MEAN_SHARE, SQUARES_SHARE = 0.01, 0.02
# How far noise may move a coefficient of a row at its bound, in units in which scores matter.
REACH = 2.0
# What is smaller than so many standard deviations of its noise is left out of the model.
HIDDEN = 1.0
# Centred rows are shortened to this part of their typical length: most of them then weigh alike, and noise is less.
CLIP = 0.7
# Exponent of the scales of columns: 1 gives all of them one size, as far as they stand out.
SCALING = 1.0
# The free column over all others, in a scaled row: as the constant of an intercept over a row at its bound.
FREE_SHARE = 0.5
# A column has a mean if that is so many standard deviations of its noise away from 0.
STANDS_OUT = 3.0
# Columns are taken for no emptier than this part of the squared row bound.
EMPTIEST = 1e-8


@dataclass(frozen=True)
class Hub:
    """What the releases so far have told, and the iterate."""

    shift: Array  # t; empty while rows are not centred
    scales: Array  # d; empty while columns are as they came
    variances: Array  # v, (features,)
    length: float  # of a typical centred row
    clip: float
    width: float  # of slopes, relative to their bound
    step: float  # of all rates
    taken: int
    gradient: Array  # the last one
    u: Array

    @property
    def centring(self) -> Centring:
        """How rows are centred, scaled and shortened."""
        return Centring(self.shift, self.clip, self.scales)

    @property
    def weight(self) -> float:
        """How much a typical record is shortened: the loss counts so much less, and so must the regularizer."""
        return min(1.0, self.clip / self.length)


@dataclass(frozen=True)
class Down:
    """What every party of a round hears."""

    x: Array
    shift: Array
    scales: Array
    clip: float
    width: float
    share: float  # of its cost that the gradient of this round is


@dataclass(frozen=True)
class Up:
    """A party's share of the sum of the round: of rows, of their squared entries, or of gradients."""

    total: Released


@dataclass(frozen=True, kw_only=True)
class DualAveraging:
    """Dual averaging over centred rows on losses of a margin, in steps that cost as much as the non-zeros of the table.

    clip: of scaled rows; None lets the released squares decide. scaling: how far columns are brought to one size by the
    released squares, 0 for not at all, 1 for all the way. width: where slopes are clipped, relative to their bound;
    None lets the noise decide. smoothing: width of the kinks of the loss. hidden: standard deviations of its noise
    below which a coefficient is left out. rounds of the plan: one for the mean if there is a free column, one for the
    squares, and the steps.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="", algorithm="dual averaging over centred rows", names=("dual averaging", "wide")),
    )

    #: Rows are touched by `Cohort.add_up` alone, so that they may stay in storage.
    adds_up_only: ClassVar[bool] = True

    clip: float | None = None
    width: float | None = None
    smoothing: float = 0.0
    hidden: float = HIDDEN
    scaling: float = SCALING

    def __post_init__(self) -> None:
        if self.clip is not None:
            require_positive(self, clip=self.clip)
        if self.width is not None and not NARROWEST_WIDTH <= self.width <= 1:
            raise InputError(f"DualAveraging(width={self.width}): a width lies in [{NARROWEST_WIDTH:g}, 1].")
        if not 0 <= self.scaling <= 1:
            raise InputError(f"DualAveraging(scaling={self.scaling}): an exponent between 0, for none, and 1.")
        for name in ("smoothing", "hidden"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(f"DualAveraging({name}={getattr(self, name)}): {name} is a finite number, 0 for none.")

    @property
    def noise_weights(self) -> Mapping[str, float]:
        """Multipliers of the releases relative to that of a single release with the whole budget."""
        parts = {"mean": MEAN_SHARE, "squares": SQUARES_SHARE, "gradient": 1 - MEAN_SHARE - SQUARES_SHARE}
        return {name: part**-0.5 for name, part in parts.items()}

    def check(self, spec: RunSpec) -> None:
        """Bounded slopes, a step size from the smoothness, everybody in every round."""
        problem = spec.facts.problem
        if problem.target_bound is None:
            require_lipschitz(problem.loss, problem.row_bound, "DualAveraging without a target bound")
        if not self.smoothing:
            require_smooth(problem.loss, problem.row_bound, "DualAveraging without smoothing")
        if not isinstance(spec.schedule, Everyone):
            raise InputError("DualAveraging(schedule=...): every party takes part in every round; use Everyone().")
        if spec.rounds <= looks(problem):
            raise InputError(
                f"DualAveraging(rounds={spec.rounds}): the first {looks(problem)} look at columns, and at least one "
                "step must follow; take more rounds."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The sum of rows, that of their squares, then a gradient a round, which share one cost."""
        kinds = {"mean": mean_release, "squares": squares_release, "gradient": gradient_release}
        return (kinds[_kind(facts)](facts),)

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """None beyond composing Gaussian sums."""
        return ()

    def start(self, facts: PublicFacts) -> Hub:
        """The zero model."""
        bound, zero = facts.problem.row_bound, np.zeros(facts.dim)
        return Hub(
            shift=np.empty(0),
            scales=np.empty(0),
            variances=np.full(facts.problem.features, bound**2),
            length=bound,
            clip=bound,
            width=1.0,
            step=1.0,
            taken=0,
            gradient=zero,
            u=zero,
        )

    def enroll(self, facts: PublicFacts, f: Cohort) -> Forgetful:
        """Nothing to keep."""
        return Forgetful()

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        """The model, and how rows are centred."""
        x = self._leave_out(facts, hub)
        return Down(x=x, shift=hub.shift, scales=hub.scales, clip=hub.clip, width=hub.width, share=1.0 / _steps(facts))

    def local(
        self, facts: PublicFacts, down: Down, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        """Sums over rows of the cost of their non-zeros."""
        kind = _kind(facts)
        if kind == "mean":
            return state, Up(total=release("mean", sum_rows(f)))
        if kind == "squares":
            return state, Up(total=release("squares", sum_squares(f)))
        centring = Centring(down.shift, down.clip, down.scales)
        check_centring(facts, centring, down.width, down.share)
        sums = centring.center(sum_gradients(f, down.x, Slopes(self.smoothing, down.width), centring))
        bound = down.clip * (1.0 if self.smoothing else down.width)
        return state, Up(total=release("gradient", sums, bound=bound, share=down.share))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """Centre, measure columns, then step."""
        kind, mean = _kind(facts), total.total / facts.problem.records
        noise = facts.noise.get(kind, 0.0) / facts.problem.records
        if kind == "mean":
            return replace(hub, shift=_shift(mean, noise))
        if kind == "squares":
            return self._measure(facts, hub, mean, noise)
        return self._take_step(facts, hub, mean)

    def _measure(self, facts: PublicFacts, hub: Hub, squares: Array, noise: float) -> Hub:
        """Variances around the mean, the length of a typical row, and what follows from both."""
        bound = facts.problem.row_bound
        last = float(np.clip(squares[-1], 0.0, bound**2))
        around = squares - (np.square(hub.shift) * last if hub.shift.size else 0.0)
        variances = np.clip(around, max(noise, EMPTIEST * bound**2), bound**2)
        scales = self._scales(facts, variances, around, noise)
        trace = _trace(around, scales, noise)
        length = float(np.sqrt(np.clip(trace, (SHORTEST_CLIP * bound) ** 2, bound**2)))
        longest = bound * (1 + float(np.linalg.norm(hub.shift)))
        clip = float(np.clip(CLIP * length if self.clip is None else self.clip, SHORTEST_CLIP * bound, longest))
        width = self._width(facts)
        return replace(hub, scales=scales, variances=variances, length=length, clip=clip, width=width)

    def _scales(self, facts: PublicFacts, variances: Array, around: Array, noise: float) -> Array:
        """What columns are multiplied with; the free one keeps its share of a row.

        Columns that noise may have made large are left alone: see `_level`.
        """
        if not self.scaling:
            return np.empty(0)
        rest = len(variances) - _free(facts.problem)
        scales = np.ones(len(variances))
        least = max(float(variances[:rest].min()), _level(rest) * noise)
        scales[:rest] = np.minimum(least / variances[:rest], 1.0) ** (self.scaling / 2)
        scales[rest:] = FREE_SHARE * np.sqrt(max(_trace(around[:rest], scales[:rest], noise), 0.0) / variances[rest:])
        return np.clip(scales, LEAST_SCALE, 1.0)

    def _width(self, facts: PublicFacts) -> float:
        """Where slopes of labels are clipped; real targets have residuals, whose size is part of the loss."""
        if self.width is not None:
            return self.width
        if self.smoothing or facts.problem.loss.targets == "real":
            return 1.0
        return noise_levels.NoiseLevels.of(facts, self._curvature(facts), facts.problem.features).slopes

    def _curvature(self, facts: PublicFacts) -> float:
        return noise_levels.curvature_of(facts.problem.loss, self.smoothing)

    def _noise(self, facts: PublicFacts, hub: Hub) -> Array:
        """Of the mean gradient of one step in the units of the columns, (dim,)."""
        width = 1.0 if self.smoothing else hub.width
        whole = facts.noise.get("gradient", 0.0) * hub.clip * width / facts.problem.records
        return hub.centring.unscale(np.full(facts.dim, whole * float(np.sqrt(_steps(facts)))))

    def _rates(self, facts: PublicFacts, hub: Hub) -> Array:
        """Step sizes, (dim,)."""
        problem = facts.problem
        rates = np.repeat(hub.step / (self._curvature(facts) * hub.weight * hub.variances), problem.outputs)
        spread = self._noise(facts, hub) * float(np.sqrt(_steps(facts)))  # of the sum of all gradients
        if spread.any():
            unit = 1.0 if problem.target_bound is None else noise_levels.RESIDUAL * problem.target_bound
            rest = len(rates) - _free(problem) * problem.outputs
            most = hub.step * REACH * unit / (problem.row_bound * spread[:rest])
            rates = np.append(np.minimum(rates[:rest], most), rates[rest:])
        return rates

    def _take_step(self, facts: PublicFacts, hub: Hub, gradient: Array) -> Hub:
        noise, rates = self._noise(facts, hub), self._rates(facts, hub)
        gradient = hub.centring.unscale(gradient)
        # In the coordinates in which all steps are equal.
        root = np.sqrt(rates)
        loudest = float(np.sqrt(np.mean(rates * np.square(noise))))
        step = noise_levels.shorter(hub.step, gradient * root, hub.gradient * root, loudest)
        shrunk = step / hub.step
        u = hub.u * shrunk - shrunk * rates * gradient
        u = prox_in_diagonal(facts.problem.regularizer, u, shrunk * rates * hub.weight)
        return replace(hub, step=step, taken=hub.taken + 1, gradient=gradient, u=u)

    def _leave_out(self, facts: PublicFacts, hub: Hub) -> Array:
        """The model, without what noise alone may have moved."""
        problem = facts.problem
        hidden = self.hidden
        if hidden and _asks_for_zeros(problem.regularizer):
            # What is left is to stand out of all columns: the largest of m noises is about so many deviations.
            hidden = max(hidden, math.sqrt(2 * math.log(2 * facts.dim)))
        moved = hidden * self._noise(facts, hub) * float(np.sqrt(hub.taken))
        free = _free(problem) * problem.outputs
        threshold = self._rates(facts, hub) * moved
        threshold[len(threshold) - free :] = 0.0
        w = hub.u - np.clip(hub.u, -threshold, threshold)
        if problem.regularizer.is_constraint:
            w = problem.regularizer.prox(w, 0.0)
        return hub.centring.model(w)

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        """The last iterate."""
        return self._leave_out(facts, hub)

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss."""
        return Example(
            algorithm=cls(),
            problem=Problem(
                loss=Logistic(),
                regularizer=Unpenalized(inner=L2(strength=0.1), last=1),
                features=3,
                sizes=np.full(6, 5),
                row_bound=1.0,
            ),
            noise={
                "mean": GaussianNoise(multiplier=2.0),
                "squares": GaussianNoise(multiplier=2.0),
                "gradient": GaussianNoise(multiplier=1.0),
            },
            trusts=("curator", "secure-sum", "local"),
            exact=cls(clip=1e3, width=1.0),
            exact_rounds=400,
            regularizers=(
                NoPenalty(),
                L1(strength=0.02),
                L2(strength=0.1),
                ElasticNet(l1=0.01, l2=0.05),
                Box(low=-0.5, high=0.3),
                Unpenalized(inner=L1(strength=0.02), last=1),
            ),
        ).vary(
            {"clip": 0.5, "width": 0.6, "hidden": 0.0, "smoothing": 0.1, "scaling": 0.0},
            {
                "regularizer": L1(strength=0.02),
                "rounds": 3,
                "noise": dict.fromkeys(("squares", "gradient"), GaussianNoise(multiplier=1.0)),
            },
        )


def looks(problem: Problem) -> int:
    """Rounds that are no steps."""
    return 1 + _free(problem)


def _asks_for_zeros(regularizer: Regularizer) -> bool:
    inner = regularizer.inner if isinstance(regularizer, Unpenalized) else regularizer
    return isinstance(inner, L1) or (isinstance(inner, ElasticNet) and inner.l1 > 0)


def _free(problem: Problem) -> int:
    """1 if the regularizer leaves the last column alone, and no other."""
    regularizer = problem.regularizer
    return int(isinstance(regularizer, Unpenalized) and regularizer.last == problem.outputs and problem.features > 1)


def _kind(facts: PublicFacts) -> str:
    first = _free(facts.problem)
    if first and facts.is_before(1):
        return "mean"
    return "squares" if facts.is_before(first + 1) else "gradient"


def _steps(facts: PublicFacts) -> int:
    return max(1, facts.rounds - looks(facts.problem))


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

    A clip that is too short costs more than one that is too long.
    """
    weights = np.square(scales) if scales.size else np.ones(len(around))
    return float(weights @ around) + 2 * noise * float(np.linalg.norm(weights))


def _shift(mean: Array, noise: float) -> Array:
    """Means in units of that of the free column, 0 where they do not stand out; none at all where it does not."""
    clear = np.abs(mean) > STANDS_OUT * noise
    if not clear[-1]:
        return np.zeros_like(mean)
    shift: Array = np.where(clear, mean / mean[-1], 0.0)
    shift[-1] = 0.0
    return shift if float(np.linalg.norm(shift)) <= LONGEST_SHIFT else np.zeros_like(mean)
