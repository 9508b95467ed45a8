"""Noisy gradient steps in coordinates whitened by a released second moment (docs/privacy.md, "Preconditioned").

    look 1:     S    = noisy sum over records of a a'                       (upper triangle, off-diagonals times sqrt 2)
                Q    = max(S, 0)/n + floor
    look 2:     S    = noisy sum of b b',   b = shortened(Q^(-1/2) a, C),   which sees what the first noise had hidden
                Q   <- Q^(1/2) (max(S, 0)/n + floor) Q^(1/2)
    a step:     G    = noisy sum of phi'(<a, x>, b) * shortened(Q^(-1/2) a, C)
                v    = x - M^-1 (Q^(1/2) G / n + damping x),                M = curvature / step * Q + damping
                x   <- argmin_x' weight r(x') + |x' - v|^2_M / 2,           weight = how much a typical row is shortened
    released:   the same prox of the average of the late v

This is the noisy fixed-point iteration of Cyffers, Bellet and Basu 2023 (Algorithm 1) with R(u) = u - M^-1 gradient: in
whitened coordinates the noise is spent where the data have information, and one step size fits every problem.
Everything after a release is post-processing: Q, the clip, how many steps the budget is worth, how much to damp, a step
that is halved when gradients turn against each other. `consenso.algorithms.noise_levels` has these rules. Whitened rows
are never formed: the factor by which each is shortened is kept beside its row. Sums over rows are exact: neither their
order nor the batches in which they are read change a bit of the model.

    a loss with kinks     its slopes are those of its Moreau envelope: `smoothing` is the width of a kink
    a loss without bound  its slopes are clipped at the bound of the targets
    counts                the targets are counted first: models shrink towards the constant one, real ones start there
    pilot                 after so many steps slopes are counted by size, and the width or the clip follows them

Every release is a sum over records, so the model does not depend on how records are spread over parties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms import noise_levels, slope_sizes, target_counts
from consenso.algorithms.evidence import Evidence, Looked, products
from consenso.algorithms.noise_levels import NoiseLevels, slope_limit
from consenso.algorithms.shape import Example, Source, require_positive
from consenso.algorithms.slope_sizes import Sizes
from consenso.algorithms.whitening import (
    DIGEST_WORDS,
    LEAST,
    NARROWEST_WIDTH,
    SHORTEST_CLIP,
    Hub,
    Slopes,
    Whitening,
    check_cost,
    check_metric,
    count_slopes,
    digest,
    first_look,
    gradient_release,
    moment_release,
    second_look,
    sum_gradients,
    sum_moments,
    sum_shortened_moments,
    within_bounds,
)
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import Logistic, require_lipschitz, require_smooth
from consenso.metric import Metric, again, look, pack_symmetric, unpack_symmetric
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec
from consenso.privacy.theorems import Theorem
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty, Regularizer
from consenso.schedules import Everyone
from consenso.shards import Cohort

# Of the budget of the second moments the first look gets this much: the second one is the one that counts.
FIRST_LOOK = 1 / 3
# Of the budget: counts of targets, counts of slopes; and, of that of the gradients, the steps before the latter.
TARGETS_SHARE, SIZES_SHARE, PILOT_SHARE = 0.02, 0.03, 0.15
# Residuals of the constant model are clipped at this many spreads of the targets.
FIRST_CLIP = 0.8


@dataclass(frozen=True)
class Down:
    """What every party of a round hears."""

    x: Array
    vectors: Array
    values: Array
    clip: float
    width: float
    share: float  # of its cost that the release of this round is


@dataclass(frozen=True)
class State:
    """A digest of the metric and clip that were last heard and found to be such as an honest hub names."""

    told: Array  # (parties, words)


@dataclass(frozen=True)
class Up:
    """A party's share of the sum of the round: counts, a second moment or a gradient."""

    total: Released


@dataclass(frozen=True, kw_only=True)
class PreconditionedFixedPoint:
    """Preconditioned noisy gradient descent on losses of a margin. Every default is a rule from public facts.

    looks: how often the second moment is released; 0 for none. share: part of the squared budget that buys it.
    steps: None lets the released spectrum and the noise decide. clip: None lets them decide, too.
    counts: whether targets are counted first. constant: value of the last column, 0 where it is not constant.
    pilot: steps before slopes are measured; 0 for never. smoothing: width of the kinks of the loss.
    threshold: where residuals are clipped after the pilot, in standard deviations; None for the least expected excess.
    follows: whether the regularizer is stated for slopes at their bound, and follows their clip.
    rounds of the plan: looks, the largest number of steps, one for counts, and one if there is a pilot.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="000", algorithm="Algorithm 1, preconditioned", names=("preconditioned fixed point",)),
    )
    takes_weights: ClassVar[bool] = True

    #: Rows are touched by `Cohort.add_up` alone, so that they may stay in storage.
    adds_up_only: ClassVar[bool] = True

    looks: int = 1
    share: float = 0.1
    steps: int | None = None
    fewest_steps: int = 6
    clip: float | None = None
    counts: bool = False
    constant: float = 0.0
    pilot: int = 0
    smoothing: float = 0.0
    threshold: float | None = None
    follows: bool = False
    damping: bool = True
    averaging: bool = True

    def __post_init__(self) -> None:
        if self.clip is not None:
            require_positive(self, clip=self.clip)
        if self.looks not in (0, 1, 2):
            raise InputError(
                f"PreconditionedFixedPoint(looks={self.looks}): the second moment is released 0 to 2 times."
            )
        if not 0 < self.share < 1:
            raise InputError(f"PreconditionedFixedPoint(share={self.share}): a share of the budget lies in (0, 1).")
        if not 0 <= self.smoothing < np.inf:
            raise InputError(f"PreconditionedFixedPoint(smoothing={self.smoothing}): a width is finite, 0 for none.")
        if (self.steps is not None and self.steps < 1) or self.fewest_steps < 1:
            raise InputError("PreconditionedFixedPoint(steps=..., fewest_steps=...): at least one step is taken.")
        if self.threshold is not None:
            require_positive(self, threshold=self.threshold)
        if not np.isfinite(self.constant):
            raise InputError(f"PreconditionedFixedPoint(constant={self.constant}): the value of a column is finite.")
        if not 0 <= self.pilot < (self.steps or self.fewest_steps):
            raise InputError(f"PreconditionedFixedPoint(pilot={self.pilot}): steps must follow; take a smaller pilot.")

    @property
    def noise_weights(self) -> Mapping[str, float]:
        """Multipliers of the releases relative to that of a single release with the whole budget."""
        parts = {
            "targets": TARGETS_SHARE if self.counts else 0.0,
            "second moment": self.share if self.looks else 0.0,
            "slopes": SIZES_SHARE if self.pilot else 0.0,
        }
        parts["gradient"] = 1 - sum(parts.values())
        return {name: part**-0.5 for name, part in parts.items() if part}

    @property
    def other_rounds(self) -> int:
        """Rounds that are no steps."""
        return self.counts + self.looks + (self.pilot > 0)

    def check(self, spec: RunSpec) -> None:
        """Bounded slopes, a step size from the smoothness, everybody in every round."""
        problem = spec.facts.problem
        if problem.target_bound is None:
            require_lipschitz(problem.loss, problem.row_bound, "PreconditionedFixedPoint without a target bound")
        if not self.smoothing:
            require_smooth(problem.loss, problem.row_bound, "PreconditionedFixedPoint without smoothing")
        if not isinstance(spec.schedule, Everyone):
            raise InputError(
                "PreconditionedFixedPoint(schedule=...): every party takes part in every round; use Everyone()."
            )
        least = self.other_rounds + (self.steps or self.fewest_steps)
        if spec.rounds < least:
            raise InputError(
                f"PreconditionedFixedPoint(rounds={spec.rounds}): one round for each second moment, for each kind of "
                f"counts and for each step are needed, {least} at least."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """Counts of targets, second moments, then a gradient a round, which share one cost; among them slopes."""
        kind = self._kind(facts)
        if kind == "targets":
            return (target_counts.count_release(facts, kind, target_counts.bins_of(facts.problem)),)
        if kind == "slopes":
            return (target_counts.count_release(facts, kind, slope_sizes.BINS),)
        if kind == "second moment":
            return (moment_release(facts, several=self.looks > 1),)
        return (gradient_release(facts),)

    def _kind(self, facts: PublicFacts) -> str:
        if self.counts and facts.is_before(1):
            return "targets"
        if facts.is_before(self.counts + self.looks):
            return "second moment"
        sizes = self.counts + self.looks + self.pilot
        return "slopes" if self.pilot and facts.is_before(sizes + 1) and not facts.is_before(sizes) else "gradient"

    def _looked(self, round_: int) -> int:
        """How many second moments were released before a round."""
        return round_ - self.counts

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """None beyond composing Gaussian sums."""
        return ()

    def start(self, facts: PublicFacts) -> Hub:
        """The zero model; before a look all directions are alike."""
        bound = facts.problem.row_bound**2
        metric, zero = Metric.round(bound), np.zeros(facts.dim)
        hub = Hub(
            vectors=metric.vectors,
            values=metric.values,
            effective=1.0,
            trace=bound,
            clip=1.0,
            steps=0,
            taken=0,
            width=1.0,
            step=noise_levels.STEP,
            variance=0.0,
            origin=zero,
            spread=1.0,
            bend=1.0,
            gradient=zero,
            x=zero,
            total=zero,
            averaged=0,
            points=zero,
            pulls=zero,
            products=np.zeros(3),
            spectrum=np.empty(0),
            looked=np.zeros(0),
            sizes=np.empty(0),
            met=np.empty(0),
        )
        return hub if self.looks or self.counts else self._ready(facts, hub)

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Nothing was heard yet."""
        return State(told=np.zeros((len(f.parties), DIGEST_WORDS)))

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        """The model and the metric."""
        kind, share = self._kind(facts), 1.0
        if kind == "second moment" and self.looks > 1:
            share = (FIRST_LOOK, 1 - FIRST_LOOK)[self._looked(facts.round)]
        elif kind == "gradient":
            share = self._share(hub)
        return Down(x=hub.x, vectors=hub.vectors, values=hub.values, clip=hub.clip, width=hub.width, share=share)

    def local(self, facts: PublicFacts, down: Down, state: State, f: Cohort, release: Releaser) -> tuple[State, Up]:
        """A second moment, a gradient over whitened and shortened rows, or squared slopes."""
        check_cost(down.clip, down.width, down.share)
        metric, kind = Metric(down.vectors, down.values), self._kind(facts)
        if kind == "targets":
            return state, Up(total=release("targets", target_counts.count_targets(f)))
        if kind == "second moment" and self._looked(facts.round) == 0:
            return state, Up(total=release("second moment", pack_symmetric(sum_moments(f)), share=down.share))
        told = digest(metric, down.clip)
        if not (state.told == told).all():
            check_metric(facts, metric)
            state = State(told=np.tile(told, (len(f.parties), 1)))
        whitening = Whitening(metric, down.clip, told.tobytes().hex())
        if kind == "second moment":
            moment = pack_symmetric(sum_shortened_moments(f, whitening))
            bound = (down.clip / facts.problem.row_bound) ** 2
            return state, Up(total=release("second moment", moment, bound=bound, share=down.share))
        if kind == "slopes":
            # The size of slopes is measured at their first width, whatever the hub says.
            return state, Up(total=release("slopes", count_slopes(f, down.x, Slopes(self.smoothing, 1.0))))
        pulled = sum_gradients(f, down.x, Slopes(self.smoothing, down.width), whitening)
        bound = down.clip * (1.0 if self.smoothing else down.width)
        return state, Up(total=release("gradient", metric.apply(pulled, -0.5), bound=bound, share=down.share))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """Read the metric off the second moment; then preconditioned proximal steps."""
        records, kind = facts.problem.records, self._kind(facts)
        if kind == "targets":
            return self._take_targets(facts, hub, total.total)
        if kind == "second moment":
            return self._take_moment(facts, hub, total.total / records)
        if kind == "slopes":
            return self._take_sizes(facts, hub, total.total)
        return self._take_step(facts, hub, total.total / records)

    def _take_targets(self, facts: PublicFacts, hub: Hub, counts: Array) -> Hub:
        """The constant model, and the spread of targets around it."""
        problem = facts.problem
        found = target_counts.read_constant_model(problem, counts, facts.noise["targets"])
        origin, spread = hub.origin, found.spread
        if self.constant:
            origin = origin.copy()
            origin[-problem.outputs :] = found.scores / self.constant
        elif problem.loss.targets == "real":
            spread = float(np.hypot(spread, found.scores[0]))  # around 0, where the model has no intercept
        unit = self.smoothing or slope_limit(problem) if problem.loss.targets == "real" else 1.0
        # Losses of labels are flat at the constant model of a rare class, and steps from there are short.
        start = origin if problem.loss.targets == "real" else hub.x
        hub = replace(hub, origin=origin, x=start, spread=min(1.0, spread / unit))
        return hub if self.looks else self._ready(facts, hub)

    def _take_sizes(self, facts: PublicFacts, hub: Hub, counts: Array) -> Hub:
        """A clip, and how many steps are left, for slopes as large as they are."""
        problem, noise = facts.problem, facts.noise["gradient"] * hub.effective / facts.problem.records
        found = Sizes.read(problem, counts, facts.noise["slopes"])
        hub = replace(hub, sizes=counts, met=hub.x)
        if found is None:
            return hub
        noise /= slope_limit(problem)
        spread = found.median() / noise_levels.GAUSSIAN_MEDIAN
        if self.smoothing:
            width = spread * min(1.0, max(noise_levels.NARROWEST, noise_levels.KINKS_PER_NOISE * noise))
        elif self.threshold is not None:
            width = spread * self.threshold
        else:
            width = found.best_clip(noise)
        # What is cut off after few steps is also what is yet to be learnt: only little noise makes the clip wider.
        if noise > 0:
            width = min(width, FIRST_CLIP * hub.spread * max(1.0, noise_levels.WIDER / noise))
        bend = max(found.curvature(width), noise_levels.LEAST_BEND)
        hub = replace(hub, width=min(max(width, NARROWEST_WIDTH), 1.0), bend=bend)
        return replace(hub, steps=self._count_steps(facts, hub))

    def _take_moment(self, facts: PublicFacts, hub: Hub, upper: Array) -> Hub:
        problem, least = facts.problem, LEAST
        moment, noise = unpack_symmetric(upper, problem.features), facts.noise["second moment"] / problem.records
        if self._looked(facts.round) == 0:
            noise /= np.sqrt(FIRST_LOOK if self.looks > 1 else 1.0)
            seen = look(moment, noise, NoiseLevels.floor, least * problem.row_bound**2)
            hub = replace(hub, trace=max(seen.trace, 1e-3 * problem.row_bound**2))
            told = first_look(hub, seen, noise)
        else:
            noise *= (hub.clip / problem.row_bound) ** 2 / np.sqrt(1 - FIRST_LOOK)
            seen = again(hub.metric, moment, noise, NoiseLevels.floor, least)
            told = second_look(hub, seen, noise)
        metric = within_bounds(facts, seen.metric)
        hub = replace(told, vectors=metric.vectors, values=metric.values, effective=seen.effective)
        return self._ready(facts, hub)

    def _ready(self, facts: PublicFacts, hub: Hub) -> Hub:
        """Clip and steps for a metric that is now known."""
        levels = self._levels(facts, hub)
        longest = facts.problem.row_bound / float(np.sqrt(hub.values.min()))
        clip = levels.clip if self.clip is None else self.clip
        if self._looked(facts.round) + 1 < self.looks:
            clip = max(clip, noise_levels.LOOKED_AT)
        clip *= float(np.sqrt(hub.effective))
        if facts.problem.loss.targets == "real":
            # A loss with slopes of its own keeps them; squares and kinks have none that privacy could use.
            adapts = self.counts and (self.smoothing > 0 or np.isinf(facts.problem.loss.slope_bound))
            width = min(1.0, FIRST_CLIP * hub.spread) if adapts else 1.0
        else:
            width = 1.0 if self.smoothing else levels.slopes
        hub = replace(hub, clip=max(min(clip, longest), SHORTEST_CLIP), width=width)
        return replace(hub, steps=self._count_steps(facts, hub))

    def _count_steps(self, facts: PublicFacts, hub: Hub) -> int:
        residuals = facts.problem.loss.targets == "real"
        # Iterates walk in the directions that do not stand out, too, and residuals tell soon how far.
        wide = float(np.sqrt(facts.problem.features / hub.effective)) if residuals else hub.width
        worth = self._levels(facts, hub).steps(wide, residuals=residuals)
        most = facts.rounds - self.other_rounds
        return self.steps or int(min(max(worth, self.fewest_steps), most))

    def _levels(self, facts: PublicFacts, hub: Hub) -> NoiseLevels:
        real = facts.problem.loss.targets == "real"
        curvature = hub.bend * (1.0 if real else noise_levels.curvature_of(facts.problem.loss, self.smoothing))
        late = noise_levels.late_curvature(facts.problem.loss)
        return NoiseLevels.of(facts, late * curvature, hub.effective)

    def _share(self, hub: Hub) -> float:
        """Equal parts, those of the pilot smaller."""
        if not self.pilot:
            return 1.0 / hub.steps
        early = hub.taken < self.pilot
        return PILOT_SHARE / self.pilot if early else (1 - PILOT_SHARE) / (hub.steps - self.pilot)

    def _noise(self, facts: PublicFacts, hub: Hub) -> float:
        """Of a mean gradient that has the whole budget."""
        width = 1.0 if self.smoothing else hub.width
        return facts.noise["gradient"] * hub.clip * width / facts.problem.records

    def _curvature(self, facts: PublicFacts, hub: Hub) -> float:
        """Of the loss over shortened rows, in the metric."""
        return hub.bend * hub.weight * noise_levels.curvature_of(facts.problem.loss, self.smoothing * hub.width)

    def _later_curvature(self, facts: PublicFacts, hub: Hub) -> float:
        return noise_levels.late_curvature(facts.problem.loss) * self._curvature(facts, hub)

    def _damping(self, facts: PublicFacts, hub: Hub) -> float:
        if not self.damping:
            return 0.0
        noise, curvature = self._noise(facts, hub), self._later_curvature(facts, hub)
        return noise_levels.damping(noise, curvature, hub.variance / hub.trace)

    def _bent(self, facts: PublicFacts, hub: Hub) -> Metric:
        """M."""
        return hub.metric.plus(self._curvature(facts, hub) / hub.step, self._damping(facts, hub))

    def _take_step(self, facts: PublicFacts, hub: Hub, gradient: Array) -> Hub:
        noise = self._noise(facts, hub) / float(np.sqrt(self._share(hub)))
        if hub.taken == 0:
            curvature = self._later_curvature(facts, hub)
            problem = facts.problem
            variance = noise_levels.score_variance(
                gradient, noise, curvature, problem.outputs, noise_levels.LARGEST_SCORE
            )
            if problem.loss.targets == "real":
                # The gradient of clipped residuals understates what a model explains, which is at most all there is.
                variance = (hub.spread * (self.smoothing or slope_limit(problem))) ** 2
            hub = replace(hub, variance=variance)
        hub = replace(hub, step=noise_levels.shorter(hub.step, gradient, hub.gradient, noise), gradient=gradient)
        bent, metric = self._bent(facts, hub), hub.metric
        damped = self._damping(facts, hub) * (hub.x - hub.origin)
        moved = hub.x - bent.apply(metric.apply(gradient, 0.5) + damped, -1.0)
        late = hub.taken >= max(hub.steps // 2, self.pilot) if self.averaging else hub.taken == hub.steps - 1
        return replace(
            hub,
            taken=hub.taken + 1,
            x=bent.prox(self._regularizer(facts, hub), moved, hub.weight),
            total=hub.total + moved if late else hub.total,
            averaged=hub.averaged + late,
            points=hub.points + hub.x if late else hub.points,
            pulls=hub.pulls + gradient if late else hub.pulls,
            products=hub.products + late * products(metric.apply(hub.x, 0.5), gradient),
        )

    def _regularizer(self, facts: PublicFacts, hub: Hub) -> Regularizer:
        regularizer = facts.problem.regularizer
        return noise_levels.scale_regularizer(regularizer, hub.width) if self.follows else regularizer

    def finished(self, facts: PublicFacts, hub: Hub) -> bool:
        """All steps were taken."""
        return hub.taken > 0 and hub.taken >= hub.steps

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        """The prox of the average of the late points, which is as sparse as a prox is; or the last iterate."""
        if not hub.averaged:
            return hub.x
        regularizer = self._regularizer(facts, hub)
        if self.damping:
            # Noise of a coordinate of the averaged gradient: half of the steps are averaged.
            entry = self._noise(facts, hub) * float(np.sqrt(2 * hub.trace / facts.problem.features))
            regularizer = noise_levels.sparser(regularizer, entry / hub.weight)
        x = self._bent(facts, hub).prox(regularizer, hub.total / hub.averaged, hub.weight)
        if not self.damping or regularizer.is_constraint:
            return x
        learnt = x - hub.origin
        size = float(np.sum(hub.metric.apply(learnt, 0.5) ** 2))
        return hub.origin + learnt * noise_levels.shrinkage_factor(size, 2 * self._noise_size(facts, hub))

    def _noise_size(self, facts: PublicFacts, hub: Hub) -> float:
        """How much noise adds to the squared size of a model in the metric: in all directions where they are alike."""
        directions = facts.problem.features if hub.metric.is_round else hub.effective
        return directions * facts.problem.outputs * (self._noise(facts, hub) / self._later_curvature(facts, hub)) ** 2

    def evidence(self, facts: PublicFacts, hub: Hub) -> Evidence | None:
        """What standard errors are made of; None where no second moment was released, or kinks were smoothed."""
        if not hub.averaged or not hub.looked.size or self.smoothing:
            return None
        problem, real = facts.problem, facts.problem.loss.targets == "real"
        point, pull, unit = hub.points / hub.averaged, hub.pulls / hub.averaged, slope_limit(problem)
        spread = hub.products / hub.averaged - products(hub.metric.apply(point, 0.5), pull)
        return Evidence(
            metric=hub.metric,
            point=point,
            pull=pull,
            noise=self._noise(facts, hub) / float(np.sqrt(self._share(replace(hub, taken=hub.steps)) * hub.averaged)),
            clip=hub.clip,
            limit=unit * hub.width,
            steps=hub.averaged,
            scatter=spread / facts.dim * hub.averaged / max(hub.averaged - 1, 1),
            looked=Looked(**dict(zip(Looked.__dataclass_fields__, map(float, hub.looked), strict=True))),
            spread=hub.spread * unit if real and hub.spread < 1 else 0.0,
            unit=unit,
            origin=hub.origin,
            sizes=hub.sizes,
            met=hub.met,
        )

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss."""
        return Example(
            algorithm=cls(steps=7),
            problem=Problem(
                loss=Logistic(), regularizer=L2(strength=0.1), features=3, sizes=np.full(6, 5), row_bound=1.0
            ),
            noise={"second moment": GaussianNoise(multiplier=2.0), "gradient": GaussianNoise(multiplier=1.0)},
            trusts=("curator", "secure-sum", "local"),
            exact=cls(steps=149, clip=1e6, averaging=False),
            exact_rounds=150,
            regularizers=(
                NoPenalty(),
                L1(strength=0.02),
                L2(strength=0.1),
                ElasticNet(l1=0.01, l2=0.05),
                Box(low=-0.5, high=0.3),
            ),
        ).vary(
            {"steps": 2, "fewest_steps": 1, "clip": 0.5, "averaging": False, "damping": False},
            {
                "looks": 2,
                "share": 0.2,
                "pilot": 1,
                "smoothing": 0.1,
                "rounds": 10,
                "noise": dict.fromkeys(("second moment", "slopes", "gradient"), GaussianNoise(multiplier=2.0)),
            },
            {
                "counts": True,
                "constant": 0.3,
                "threshold": 1.3,
                "follows": True,
                "noise": dict.fromkeys(("targets", "second moment", "gradient"), GaussianNoise(multiplier=2.0)),
                "rounds": 9,
            },
        )
