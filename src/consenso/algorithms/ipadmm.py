"""Improved private ADMM: several noisy linearised steps per node and round (Huang and Gong 2020, Algorithm 1).

    node i, round k:   pull = 2 dual_i + penalty sum_j (s_i + s_j),   with the s of the round before
      for r = 1..l:    g  = grad f_i(w) + noise
                       w <- prox_{r/D}( (pull + proximity w - g) / D ),      D = 2 penalty degree + proximity_{k,r}
                       s_i = the average of the l iterates w, which the neighbours j hear; then
                       dual_i <- dual_i - (penalty/2) sum_j (s_i - s_j)

    paper          code           what it is
    w~_i^{k,r}     w              noisy inner iterate; the next round goes on from the last one
    w~_i^k         state.said     what the node said, the average
    gamma_i        state.dual
    rho            penalty
    eta^{k,r+1}    proximity      a number, one per round, or one per inner step (`RootGrowth`, for Theorem 7)
    l              inner_steps

Every node holds the regularizer and takes its prox after the noise, so that squares, absolute values and the set W
(`Ball`, `Box`) are treated alike; it is post-processing. `linearised` takes the regularizer's gradient at the noisy
iterate instead, with that of the loss, as the paper has it.

Where the noise is. It is added to the gradient: noise of standard deviation s there is noise of s/D on w, so this is
the paper's calibrated noise, c_1/(D m_i) times the multiplier under add-remove and twice that under replace-one, for
the D of each inner step. The bound of the gradient itself, c_1/m_i, needs no denominator.

Read the paper with care: (11) and (12) print <grad, w~ - w>, an ascent that diverges. (18), inside a proof, prints
eta^{k,r} in the denominator of the step, where Algorithm 1, (13a), has eta^{k,r+1}: noise scaled for the latter would
be 5.9 to 16.6 times too small at the first inner steps of rounds 1 to 10. Theorem 6 has an open constant; here the
steps are composed exactly. Minibatches drawn with replacement can hold a record many times: here they are Poisson
samples (`rate`), hidden and divided by a fixed number. Showing only the averages s gains nothing that can be claimed,
so all inner iterates count as seen. The constant of Theorem 7's schedule depends on the diameter of W and other numbers
that the paper leaves open: `RootGrowth(first=...)`, first * sqrt(k r), has the growth with which the two factors above
are met (at penalty 0.001, 99 neighbours and first = 0.976) and leaves the constant to the caller.

`at_average` starts the inner steps of a round at the Metropolis average of what was heard, and `averaging` releases the
average of the late iterates. Both are post-processing of noisy iterates, hence free. With l = 1 this is
`NetworkedADMM`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms.networked import (
    Message,
    check_node,
    degrees_of,
    gradient_release,
    noisy_gradient,
    prox_each,
    require_bounded_gradient,
    require_slopes,
    running_average,
    within,
)
from consenso.algorithms.record_sums import value_at
from consenso.algorithms.shape import (
    PENALTIES,
    RING_WITH_CHORD,
    Example,
    Heard,
    Source,
    require_positive,
    small_problem,
)
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.noise import Constant, PerRound, Polynomial
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser, postprocess
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, Ball
from consenso.shards import Cohort


@dataclass(frozen=True, kw_only=True)
class RootGrowth:
    """first * sqrt(k r) in inner step r of round k, both counted from 1."""

    first: float

    def __post_init__(self) -> None:
        require_positive(self, first=self.first)

    def at(self, round_: int, inner: int) -> float:
        """The proximity of inner step 1, 2, ... of round 0, 1, ..."""
        return self.first * math.sqrt((round_ + 1) * inner)


@dataclass(frozen=True)
class State:
    """What a node keeps: functions of noisy iterates, all of it."""

    w: Array  # where the inner steps go on from
    said: Array  # the average that it last said
    heard: Array  # sum of what its neighbours last said
    dual: Array
    model: Array  # what it last said or starts from, or the average of the late ones


@dataclass(frozen=True, kw_only=True)
class IPADMM:
    """Multi-step linearised ADMM on a graph; the defaults are the paper's form.

    clip: 2-norm to which each record's gradient is shortened. radius: of the ball that iterates are projected on, which
    bounds the gradients of the squared loss. rate: of the Poisson sample of a node's records in each inner step.
    at_average: inner steps start at the Metropolis average of what was heard. averaging: share of the last rounds whose
    iterates are averaged. linearised: the regularizer by its gradient at the noisy iterate, in place of its prox.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="002", algorithm="Algorithm 1", names=("002", "002-1", "IPADMM", "improved private ADMM")),
    )

    penalty: float = 1.0
    proximity: float | Constant | Polynomial | PerRound | RootGrowth = 1.0
    inner_steps: int = 1
    clip: float | None = None
    radius: float | None = None
    rate: float = 1.0
    at_average: bool = False
    averaging: float = 0.0
    linearised: bool = False

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty)
        if isinstance(self.proximity, float | int) and not 0 <= self.proximity < math.inf:
            raise InputError(f"IPADMM(proximity={self.proximity}): the proximity is a finite number of at least 0.")
        if self.inner_steps < 1:
            raise InputError(f"IPADMM(inner_steps={self.inner_steps}): a round has at least one inner step.")
        check_node(self, self.clip, self.radius, self.rate, self.averaging)

    def check(self, spec: RunSpec) -> None:
        """Refuse unbounded gradients, and a step that divides by zero."""
        require_bounded_gradient(self, spec.facts.problem, self.clip, self.radius)
        require_slopes(self, spec.facts.problem, not self.linearised, "linearised=False")
        if self.denominator(spec.facts, 1).min() <= 0:
            raise InputError("IPADMM(proximity=0): a node without neighbours needs a positive proximity; give one.")

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """A node's gradient, once per inner step."""
        return (gradient_release(facts, self.clip, self.radius, self.rate, times=self.inner_steps),)

    def proximity_at(self, round_: int, inner: int) -> float:
        """The proximity of inner step 1, 2, ... of round 0, 1, ..."""
        if isinstance(self.proximity, RootGrowth):
            return self.proximity.at(round_, inner)
        return value_at(self.proximity, round_)

    def denominator(self, facts: PublicFacts, inner: int) -> Array:
        """D of each node in an inner step 1, 2, ...; the noise on an iterate is that of the gradient over D."""
        return 2 * self.penalty * degrees_of(facts) + self.proximity_at(facts.round, inner)

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Everything at zero, and as if the neighbours had said so."""
        zero = np.zeros((len(facts.cohort), facts.dim))
        return State(w=zero, said=zero, heard=zero, dual=zero, model=zero)

    def local(self, facts: PublicFacts, state: State, f: Cohort, release: Releaser) -> tuple[State, Message]:
        """The inner steps of a round."""
        pull = 2 * state.dual + self.penalty * (degrees_of(facts)[:, None] * state.said + state.heard)
        w, said, gradients = state.w, np.zeros_like(state.w), list[Released]()
        for inner in range(1, self.inner_steps + 1):
            w = within(w, self.radius)
            gradients.append(noisy_gradient(facts, f, w, release, self.clip, self.rate))
            g: Array = gradients[-1]
            if self.linearised:
                g = g + facts.problem.regularizer.subgradient(w)
            bottom = self.denominator(facts, inner)
            w = (pull + self.proximity_at(facts.round, inner) * w - g) / bottom[:, None]
            if not self.linearised:
                w = prox_each(facts.problem.regularizer, w, 1 / bottom)
            w = within(w, self.radius)
            said = said + w / self.inner_steps
        return replace(state, w=w, said=said), Message(w=postprocess(said, *gradients))

    def absorb(self, facts: PublicFacts, state: State, heard: Heard) -> State:
        """The dual moves by the disagreement with the neighbours."""
        others = heard.sum("w")
        dual = state.dual - self.penalty / 2 * (degrees_of(facts)[:, None] * state.said - others)
        centre = heard.mix("w") if self.at_average else state.said
        model = running_average(facts, self.averaging, state.model, centre)
        return State(w=centre if self.at_average else state.w, said=state.said, heard=others, dual=dual, model=model)

    def models(self, facts: PublicFacts, state: State) -> Array:
        """What each node said last, or where it starts again, or the average of the late ones."""
        return state.model

    @classmethod
    def example(cls) -> Example:
        """Six nodes of unequal sizes and degrees, logistic loss, three inner steps."""
        return Example(
            algorithm=cls(penalty=0.2, proximity=RootGrowth(first=0.5), inner_steps=3, at_average=True, averaging=0.5),
            problem=small_problem(L2(strength=0.05), sizes=np.array([4, 5, 6, 5, 4, 6]), weighting="party"),
            topology=RING_WITH_CHORD,
            exact=cls(penalty=0.05, proximity=0.25, inner_steps=2),
            exact_rounds=500,
            regularizers=(*PENALTIES, Ball(radius=0.7)),
        ).vary(
            {"inner_steps": 2, "clip": 0.6, "at_average": False, "averaging": 0.0},
            {"penalty": 0.5, "proximity": 1.0, "inner_steps": 1, "radius": 1.0},
            {"rate": 0.5, "inner_steps": 1, "linearised": True},
        )
