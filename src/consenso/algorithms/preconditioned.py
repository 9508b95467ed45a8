"""Noisy gradient steps in coordinates whitened by a released second moment (docs/privacy.md, "Preconditioned").

    moment 1:   S    = noisy sum over records of a a'                       (upper triangle, off-diagonals times sqrt 2)
                Q    = clean(S/n) + floor,        clean: eigenvalues without what noise pushed them apart, at least 0
    moment 2:   S    = noisy sum of b b',   b = shortened(Q^(-1/2) a, C),   which sees what the first noise had hidden
                Q   <- Q^(1/2) (clean(S/n) + floor) Q^(1/2)
    a step:     G    = noisy sum of phi'(<a, x>, b) * shortened(Q^(-1/2) a, C)
                v    = x - M^-1 (Q^(1/2) G / n + damping x) + momentum (x - x before),
                M    = curvature / step * Q + damping
                x   <- argmin_x' weight r(x') + |x' - v|^2_M / 2,           weight = how much a typical row is shortened
    released:   the same prox of the average of the late v

This is the noisy fixed-point iteration of Cyffers, Bellet and Basu 2023 (Algorithm 1) with R(u) = u - M^-1 gradient: in
whitened coordinates the noise is spent where the data have information, and one step size fits every problem.
Everything after a release is post-processing: Q, the clip, how many steps the budget is worth, how much to damp, a step
that is halved when gradients turn against each other. `preconditioning.noise_levels` has these rules. Whitened rows
are never formed: the factor by which each is shortened is kept beside its row. Sums over rows are exact: neither their
order nor the batches in which they are read change a bit of the model.

    a loss with kinks     its slopes are those of its Moreau envelope: `smoothing` is the width of a kink
    a loss without bound  its slopes are clipped at the bound of the targets
    counts                the targets are counted first: models shrink towards the constant one, real ones start there
    warmup_steps          after so many steps slopes are counted by size, and the width or the clip follows them

Every release is a sum over records, so the model does not depend on how records are spread over parties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.preconditioning import length_laws, slope_sizes, target_counts
from consenso.algorithms.preconditioning.noise_levels import slope_limit
from consenso.algorithms.preconditioning.settings import FIRST_SHARE
from consenso.algorithms.preconditioning.steps import WhitenedSteps
from consenso.algorithms.preconditioning.whitening import (
    DIGEST_WORDS,
    Hub,
    Slopes,
    Whitening,
    check_cost,
    check_metric,
    count_slopes,
    digest,
    gradient_release,
    moment_release,
    sum_gradients,
    sum_moments,
    sum_shortened_moments,
)
from consenso.algorithms.shape import PENALTIES, Example, Source, small_problem
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import require_lipschitz, require_smooth
from consenso.metric import Metric, pack_symmetric
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2
from consenso.schedules import Everyone
from consenso.shards import Cohort


@dataclass(frozen=True)
class Down:
    """What every party of a round hears."""

    x: Array
    vectors: Array
    values: Array
    clip: float
    width: float
    share: float  # of its cost that the release of this round is
    origin: Array  # the constant model; empty where lengths are not measured
    reach: float  # of a record, in a round that asks for the length of x; 0 in all others


@dataclass(frozen=True)
class State:
    """A digest of the metric and clip that were last heard and found to be such as an honest hub names."""

    told: Array  # (parties, words)


@dataclass(frozen=True)
class Up:
    """A party's share of the sum of the round: counts, a second moment or a gradient."""

    total: Released


@dataclass(frozen=True, kw_only=True)
class PreconditionedFixedPoint(WhitenedSteps):
    """Preconditioned noisy gradient descent on losses of a margin. Every default is a rule from public facts.

    moment_releases: how often the second moment is released; 0 for none. share: part of the squared budget for it.
    steps: None lets the released spectrum and the noise decide. clip: None lets them decide, too.
    counts: whether targets are counted first, with counts_share of the squared budget; real ones in target_bins bins.
    constant: value of the last column, 0 where it is not constant.
    warmup_steps: steps before slopes are measured; 0 for never. smoothing: width of the kinks of the loss.
    threshold: where residuals are clipped after the warm-up, in standard deviations; None: for the least expected risk.
    follows: whether the regularizer is stated for rows and slopes at their bounds, and follows their sizes.
    lengths: whether the length of the model is measured after the last step, with length_share of the budget of the
    gradients; for losses of labels that have slopes.
    rounds of the plan: second moments, the largest number of steps, one each for counts, slopes and lengths.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="000", algorithm="Algorithm 1, preconditioned", names=("preconditioned fixed point",)),
    )
    takes_weights: ClassVar[bool] = True

    #: Rows are touched by `Cohort.add_up` alone, so that they may stay in storage.
    adds_up_only: ClassVar[bool] = True

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
            return (target_counts.count_release(facts, kind, target_counts.bins_of(facts.problem, self.target_bins)),)
        if kind == "slopes":
            return (target_counts.count_release(facts, kind, slope_sizes.BINS),)
        if kind == "second moment":
            return (moment_release(facts, several=self.moment_releases > 1),)
        return (gradient_release(facts, lengths=self.length_numbers),)

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Nothing was heard yet."""
        return State(told=np.zeros((len(f.parties), DIGEST_WORDS)))

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        """The model and the metric."""
        kind, share, x, reach = self._kind(facts), 1.0, hub.x, 0.0
        if kind == "second moment" and self.moment_releases > 1:
            share = (FIRST_SHARE, 1 - FIRST_SHARE)[self._count_moments(facts.round)]
        elif kind == "gradient":
            share = self._share(hub)
            if self._asks_length(hub):
                x, reach = self.model(facts, hub), self._reach(facts, hub)
        return Down(
            x=x,
            vectors=hub.vectors,
            values=hub.values,
            clip=hub.clip,
            width=hub.width,
            share=share,
            origin=hub.origin if self.lengths else np.empty(0),
            reach=reach,
        )

    def local(self, facts: PublicFacts, down: Down, state: State, f: Cohort, release: Releaser) -> tuple[State, Up]:
        """A second moment, a gradient over whitened and shortened rows, or squared slopes."""
        check_cost(down.clip, down.width, down.share)
        length_laws.check_reach(down.reach)
        metric, kind = Metric(down.vectors, down.values), self._kind(facts)
        if kind == "targets":
            return state, Up(total=release("targets", target_counts.count_targets(f, self.target_bins)))
        if kind == "second moment" and self._count_moments(facts.round) == 0:
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
        if down.reach and self.lengths:
            slopes = length_laws.sum_slopes(f, down.x, down.origin, down.reach)
            total = np.concatenate([np.zeros((len(slopes), facts.dim)), slopes], axis=1)
            bound = down.reach / slope_limit(facts.problem)
            return state, Up(total=release("gradient", total, bound=bound, share=down.share))
        pulled = metric.apply(sum_gradients(f, down.x, Slopes(self.smoothing, down.width), whitening), -0.5)
        bound = down.clip * (1.0 if self.smoothing else down.width)
        total = np.concatenate([pulled, np.zeros((len(pulled), self.length_numbers))], axis=1)
        return state, Up(total=release("gradient", total, bound=bound, share=down.share))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """Read the metric off the second moment; then preconditioned proximal steps."""
        records, kind = facts.problem.records, self._kind(facts)
        if kind == "targets":
            return self._take_targets(facts, hub, total.total)
        if kind == "second moment":
            return self._take_moment(facts, hub, total.total / records)
        if kind == "slopes":
            return self._take_sizes(facts, hub, total.total)
        if self._asks_length(hub):
            return self._take_length(facts, hub, total.total[facts.dim :] / records)
        return self._take_step(facts, hub, total.total[: facts.dim] / records)

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss."""
        return Example(
            algorithm=cls(steps=7),
            problem=small_problem(L2(strength=0.1)),
            noise={"second moment": GaussianNoise(multiplier=2.0), "gradient": GaussianNoise(multiplier=1.0)},
            trusts=("curator", "secure-sum", "local"),
            exact=cls(steps=149, clip=1e6, averaging=False),
            exact_rounds=150,
            regularizers=PENALTIES,
        ).vary(
            {"steps": 2, "fewest_steps": 1, "clip": 0.5, "averaging": False, "damping": False},
            {
                "moment_releases": 2,
                "share": 0.2,
                "warmup_steps": 1,
                "smoothing": 0.1,
                "rounds": 10,
                "noise": dict.fromkeys(("second moment", "slopes", "gradient"), GaussianNoise(multiplier=2.0)),
            },
            {
                "counts": True,
                "counts_share": 0.3,
                "target_bins": 8,
                "constant": 0.3,
                "threshold": 1.3,
                "follows": True,
                "lengths": True,
                "length_share": 0.1,
                "noise": dict.fromkeys(("targets", "second moment", "gradient"), GaussianNoise(multiplier=2.0)),
                "rounds": 10,
            },
        )
