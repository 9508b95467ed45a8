"""Noisy dual averaging over centred rows, for tables with many columns (docs/privacy.md, "Dual averaging").

    before:     counts of real targets; x_last starts at their centre, and their spread clips residuals      (optional)
                m    = noisy sum over records of a                          (where a free column allows to centre)
                s    = noisy sum of a * a                                   (column by column)
                t_j  = m_j / m_last where m_j stands out, else 0,           v_j = s_j / n - (t_j m_last / n)^2
                d_j  = (least v / v_j)^(scaling / 2) where v_j stands out, else 1
                V, s   directions in which columns move together, and how much smaller rows are made along them;
                       a sketch of the rows tells first whether there are any, and if not, these rounds are steps
    a step:     G    = noisy sum of phi'(<a, x>, target) * shortened(b, C)
                b    = (I - V (1 - s) V') d * (a - t a_last)
                u   <- prox_r(u - step * G / (d n))                         in the metric 1 / step_j
                w    = the mean of u given its noise (scale_mixture);       x = w, x_last = w_last - <t, w>
    length:     two labels: counts of records by score and label; several: how the loss changes with the length of w
                without w_last                                                                               (optional)
    released:   the last x, of the length that was best; with two labels, w_last of the value that was best

    symbol   code      what it is
    b        Centring  a row around the mean, on one scale; it is never formed
    d        scales    where columns differ in size, large ones are made smaller, so that small ones are heard
    step_j   rates     1 / (curvature v_j), but no more than lets noise move a coefficient by REACH at the end
    V, s     directions, shrinks    consenso.algorithms.averaging.directions finds them; none unless they are asked for
    C        clip      CLIP times the length of a typical centred row, as the squares or the lengths tell it

With directions, u has a number for each of them after those of the columns: rows are taken apart into what lies along V
and across it, each part with its rates, and a square of the model is part of the gradient.

This is the dual averaging of Nesterov 2009 and Xiao 2010 with a constant step: u is minus the step times the sum of all
gradients where there is no penalty, and its noise is known, so that what all columns have in common says how much of
each is noise: where few columns stand out the others are left out, and where all tell alike none is. No budget is spent
on finding the columns that matter, and none is forgotten that stands out late. A step costs as much as
a product with the non-zeros of the table. Without noise it is proximal gradient descent in a diagonal metric.

The free column is the last one, if the regularizer leaves it alone (`Unpenalized`): that of an intercept. Rows need not
be constant there. Sums over rows are exact: neither their order nor the batches in which they are read change a bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms.averaging import score_counts
from consenso.algorithms.averaging.centring import (
    Centring,
    check_centring,
    gradient_release,
    mean_release,
    squares_release,
    sum_gradients,
    sum_rows,
    sum_squares,
)
from consenso.algorithms.averaging.column_sizes import find_shift
from consenso.algorithms.averaging.columns import free_columns
from consenso.algorithms.averaging.directions import (
    PASSES,
    lengths_release,
    pad,
    range_release,
    sum_lengths,
    sum_range,
)
from consenso.algorithms.averaging.hub import Hub
from consenso.algorithms.averaging.sketch import draw_sketch, sketch_release, sum_sketch
from consenso.algorithms.averaging.steps import AveragedSteps, counts_scores
from consenso.algorithms.preconditioning import length_laws, target_counts
from consenso.algorithms.preconditioning.noise_levels import slope_limit
from consenso.algorithms.preconditioning.whitening import Slopes
from consenso.algorithms.record_sums import Forgetful
from consenso.algorithms.shape import PENALTIES, Example, Source, small_problem
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import Squared, require_lipschitz, require_smooth
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L1, L2, Unpenalized
from consenso.schedules import Everyone
from consenso.shards import Cohort


@dataclass(frozen=True)
class Down:
    """What every party of a round hears."""

    x: Array
    shift: Array
    scales: Array
    directions: Array
    shrinks: Array
    clip: float
    width: float
    looks: bool  # whether the pass of this round looks for directions; if not, it is a gradient
    share: float  # of its cost that the gradient or the pass of this round is
    origin: Array  # the constant part of x; empty where lengths are not measured
    reach: float  # of a record of several classes, in the round that asks for the length of x; 0 in all others


@dataclass(frozen=True)
class Up:
    """A party's share of the sum of the round: of rows, their squared entries, lengths, products, or of gradients."""

    total: Released


@dataclass(frozen=True, kw_only=True)
class DualAveraging(AveragedSteps):
    """Dual averaging over centred rows on losses of a margin, in steps that cost as much as the non-zeros of the table.

    clip: of scaled rows; None lets the released squares decide. scaling: how far columns are brought to one size by the
    released squares, 0 for not at all, 1 for all the way. width: where slopes are clipped, relative to their bound;
    None lets the noise decide, or the spread of counted targets. smoothing: width of the kinks of the loss. directions:
    how many are looked for in which columns move together, 0 for none; only models without a penalty or with a square
    can have them. target_bins: in how many bins real targets are counted first, 0 for not at all: steps start at their
    centre and residuals are clipped by their spread. counts_share: part of the squared budget that buys that.
    constant: value of the last column, 0 where it is not constant. lengths: whether the length of the model is measured
    after the last step; for losses of labels that have slopes. rounds of the plan: one for counts, one for the mean if
    there is a free column, one for the squares, six for directions, the steps, and one for the length.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="", algorithm="dual averaging over centred rows", names=("dual averaging", "wide")),
    )

    #: Rows are touched by `Cohort.add_up` alone, so that they may stay in storage.
    adds_up_only: ClassVar[bool] = True

    def check(self, spec: RunSpec) -> None:
        """Bounded slopes, a step size from the smoothness, everybody in every round."""
        problem = spec.facts.problem
        if problem.target_bound is None:
            require_lipschitz(problem.loss, problem.row_bound, "DualAveraging without a target bound")
        if not self.smoothing:
            require_smooth(problem.loss, problem.row_bound, "DualAveraging without smoothing")
        if not isinstance(spec.schedule, Everyone):
            raise InputError("DualAveraging(schedule=...): every party takes part in every round; use Everyone().")
        others = self.other_rounds(problem)
        if spec.rounds <= others:
            raise InputError(
                f"DualAveraging(rounds={spec.rounds}): {others} look at columns, targets or the length of the model, "
                "and at least one is a step; take more rounds."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """Counts, the sum of rows, that of squares, what tells of directions, then gradients, which share one cost."""
        kind, count = self._kind(facts), self._count(facts.problem)
        if kind == "targets":
            return (target_counts.count_release(facts, kind, self.target_bins),)
        if kind == "length":
            if counts_scores(facts.problem):
                return (target_counts.count_release(facts, kind, 2 * score_counts.BINS),)
            return (length_laws.length_release(facts),)
        if kind in ("mean", "squares"):
            return ((mean_release if kind == "mean" else squares_release)(facts),)
        if kind == "sketch":
            return (sketch_release(facts),)
        kinds = {"lengths": lengths_release, "range": range_release, "gradient": gradient_release}
        return (kinds[kind](facts, count),)

    def enroll(self, facts: PublicFacts, f: Cohort) -> Forgetful:
        return Forgetful()

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        """The model, and how rows are centred."""
        asks = self._kind(facts) == "length"
        return Down(
            x=self._leave_out(facts, hub),
            shift=hub.shift,
            scales=hub.scales,
            directions=hub.directions,
            shrinks=hub.shrinks,
            clip=hub.clip,
            width=hub.width,
            looks=hub.looks,
            share=1.0 / (PASSES if self._kind(facts) == "range" else self._steps(facts)),
            origin=self._origin(facts, hub) if asks else np.empty(0),
            reach=self._reach(facts, hub) if asks and not counts_scores(facts.problem) else 0.0,
        )

    def local(
        self, facts: PublicFacts, down: Down, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        """Sums over rows of the cost of their non-zeros."""
        kind = self._kind(facts)
        if kind == "targets":
            return state, Up(total=release("targets", target_counts.count_targets(f, self.target_bins)))
        if kind == "mean":
            return state, Up(total=release("mean", sum_rows(f)))
        if kind == "squares":
            return state, Up(total=release("squares", sum_squares(f)))
        if kind == "length" and counts_scores(facts.problem):
            counts = target_counts.count_rows(f, 2 * score_counts.BINS, score_counts.find_bins, down.x, down.origin)
            return state, Up(total=release("length", counts))
        if kind == "length":
            length_laws.check_reach(down.reach, least=length_laws.LEAST_REACH)
            # Its slopes were narrow, so that doubts tell nothing of what records have moved.
            slopes = length_laws.sum_slopes(f, down.x, down.origin, down.reach)[:, : len(length_laws.SCALES)]
            return state, Up(total=release("length", slopes, bound=down.reach))
        centring = Centring(down.shift, down.clip, down.scales, down.directions, down.shrinks)
        check_centring(facts, centring, down.width, down.share, self._count(facts.problem))
        if kind == "lengths":
            plain = Centring(down.shift, facts.problem.row_bound, down.scales)
            sums = sum_lengths(f, plain, down.directions, self._count(facts.problem))
            return state, Up(total=release("lengths", sums))
        if kind == "sketch":
            vectors = draw_sketch(facts.problem.features, free_columns(facts.problem))
            sums = sum_sketch(f, Centring(down.shift, down.clip, down.scales), vectors)
            return state, Up(total=release("sketch", sums, bound=down.clip**2))
        if kind == "range" and down.looks:
            plain = Centring(down.shift, down.clip, down.scales)
            sums = sum_range(f, plain, down.directions)
            sums = pad(sums, range_release(facts, self._count(facts.problem)).size)
            return state, Up(total=release("range", sums, bound=down.clip**2, share=down.share))
        sums = centring.center(sum_gradients(f, down.x, Slopes(self.smoothing, down.width), centring))
        bound = down.clip * (1.0 if self.smoothing else down.width)
        if kind == "range":
            sums = pad(sums, range_release(facts, self._count(facts.problem)).size)
            return state, Up(total=release("range", sums, bound=bound * slope_limit(facts.problem), share=down.share))
        return state, Up(total=release("gradient", sums, bound=bound, share=down.share))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """Centre, measure columns, then step."""
        kind, mean = self._kind(facts), total.total / facts.problem.records
        if kind == "targets":
            return self._take_targets(facts, hub, total.total)
        noise = facts.noise.get(kind, 0.0) / facts.problem.records
        if kind == "mean":
            return replace(hub, shift=find_shift(mean, noise))
        if kind == "squares":
            return self._measure(facts, hub, mean, noise)
        if kind == "sketch":
            return self._decide(facts, hub, mean, noise)
        if kind == "range" and hub.looks:
            return self._turn(facts, hub, mean, noise)
        if kind == "lengths":
            return self._shorten(facts, hub, mean, noise)
        if kind == "length":
            is_counted = counts_scores(facts.problem)
            return self._take_scores(facts, hub, total.total) if is_counted else self._take_length(facts, hub, mean)
        return self._take_step(facts, hub, mean[: facts.dim])

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return self._leave_out(facts, hub)

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss."""
        return Example(
            algorithm=cls(),
            problem=small_problem(Unpenalized(inner=L2(strength=0.1), last=1)),
            noise={
                "mean": GaussianNoise(multiplier=2.0),
                "squares": GaussianNoise(multiplier=2.0),
                "gradient": GaussianNoise(multiplier=1.0),
            },
            trusts=("curator", "secure-sum", "local"),
            exact=cls(clip=1e3, width=1.0),
            exact_rounds=400,
            regularizers=(*PENALTIES, Unpenalized(inner=L1(strength=0.02), last=1)),
        ).vary(
            {"clip": 0.5, "width": 0.6, "smoothing": 0.1, "scaling": 0.0},
            {
                "directions": 2,
                "lengths": True,
                "rounds": 10,
                "noise": dict.fromkeys(
                    ("mean", "squares", "lengths", "sketch", "range", "gradient", "length"),
                    GaussianNoise(multiplier=1.0),
                ),
                "exact": cls(clip=1e3, width=1.0, directions=2),
            },
            {
                "regularizer": L1(strength=0.02),
                "rounds": 3,
                "noise": dict.fromkeys(("squares", "gradient"), GaussianNoise(multiplier=1.0)),
            },
            {
                "loss": Squared(),
                "target_bound": 2.0,
                "target_bins": 8,
                "counts_share": 0.1,
                "constant": 0.3,
                "rounds": 5,
                "noise": dict.fromkeys(("targets", "mean", "squares", "gradient"), GaussianNoise(multiplier=1.0)),
            },
        )
