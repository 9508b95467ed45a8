"""Distributed subgradient steps (Nedic and Ozdaglar 2009), perturbed as in Gauthier et al. 2023: zCDP-grad-NFL.

    node k:    g   = subgradient of f_k at w_k + noise
               w_k = sum_l a_kl w_l - step ( g + r'(w_k) )                     l runs over k and its neighbours
               and says w_k

    paper        code           what it is
    x_k          state.w        the noisy iterate, all that a neighbour ever sees
    a_kl         heard.mix      Metropolis weights: 1/(1 + larger degree) on an edge, the rest on the node itself
    alpha_n      step           a number, or one per round

Noise of standard deviation s on the gradient is noise of step * s on w_k, whose sensitivity is 2 c_1 step/M_k: this is
the paper's output perturbation. The noise decreases by a schedule of its multiplier, `Geometric(first, ratio)`.

Remarks. There are no duals: a constant step ends at a distance of the order of the step from the optimum, wherever
nodes disagree about it, and only steps that fall to zero (`Polynomial`) reach it. That is why it loses to ADMM without
noise; with noise it has the virtue that nothing accumulates. `clip`, `radius`, `proximal`, `at_average` and `averaging`
are those of `NetworkedADMM`; with `at_average` the gradient is taken at the mixed iterate ("combine, then adapt").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms.networked import (
    Message,
    check_node,
    gradient_release,
    noisy_gradient,
    require_bounded_gradient,
    require_slopes,
    running_average,
    within,
)
from consenso.algorithms.record_sums import value_at
from consenso.algorithms.shape import RING_WITH_CHORD, Example, Heard, Source, require_positive, small_problem
from consenso.arrays import Array
from consenso.privacy.noise import Constant, GaussianNoise, Geometric, PerRound, Polynomial
from consenso.privacy.release import Release
from consenso.privacy.releaser import Releaser, postprocess
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, ElasticNet
from consenso.shards import Cohort


@dataclass(frozen=True)
class State:
    """What a node keeps: functions of noisy iterates, all of it."""

    w: Array  # what it last said
    mixed: Array  # the Metropolis average of what it and its neighbours last said
    model: Array  # the last iterate, or the average of the late ones


@dataclass(frozen=True, kw_only=True)
class DistributedSubgradient:
    """Mix, then a noisy subgradient step; the defaults are the paper's form."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(
            paper="004",
            algorithm="baseline by subgradients",
            names=("zCDP-grad-NFL", "distributed subgradient", "private DGD"),
        ),
    )

    step: float | Constant | Polynomial | PerRound = 1.0
    clip: float | None = None
    radius: float | None = None
    rate: float = 1.0
    proximal: bool = False
    at_average: bool = False
    averaging: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, step=self.step)
        check_node(self, self.clip, self.radius, self.rate, self.averaging)

    def check(self, spec: RunSpec) -> None:
        """Refuse unbounded gradients, and constraints where only subgradients are taken."""
        problem = spec.facts.problem
        require_bounded_gradient(self, problem, self.clip, self.radius)
        require_slopes(self, problem, self.proximal)

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        return (gradient_release(facts, self.clip, self.radius, self.rate),)

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        zero = np.zeros((len(facts.cohort), facts.dim))
        return State(w=zero, mixed=zero, model=zero)

    def local(self, facts: PublicFacts, state: State, f: Cohort, release: Releaser) -> tuple[State, Message]:
        """A step from the mixed iterate."""
        regularizer, step = facts.problem.regularizer, value_at(self.step, facts.round)
        point = within(state.mixed if self.at_average else state.w, self.radius)
        g = noisy_gradient(facts, f, point, release, self.clip, self.rate)
        if self.proximal:
            w = regularizer.prox(state.mixed - step * g, step)
        else:
            w = state.mixed - step * (g + regularizer.subgradient(point))
        w = within(w, self.radius)
        return replace(state, w=w), Message(w=postprocess(w, g))

    def absorb(self, facts: PublicFacts, state: State, heard: Heard) -> State:
        """Mix what was said."""
        mixed = heard.mix("w")
        latest = mixed if self.at_average else state.w
        return State(w=state.w, mixed=mixed, model=running_average(facts, self.averaging, state.model, latest))

    def models(self, facts: PublicFacts, state: State) -> Array:
        """Each node's iterate, or the average of its late ones."""
        return state.model

    @classmethod
    def example(cls) -> Example:
        """Six nodes of five records on a ring with a chord, logistic loss."""
        return Example(
            algorithm=cls(step=Polynomial(first=2.0, power=-0.5), clip=0.6, averaging=0.5),
            problem=small_problem(L2(strength=0.1)),
            noise=GaussianNoise(multiplier=Geometric(first=2.0, ratio=0.9)),
            topology=RING_WITH_CHORD,
            # A falling step is what reaches the optimum, and how fast it falls is how fast it is reached.
            exact=cls(step=Polynomial(first=4.0, power=-0.75), proximal=True),
            exact_rounds=1000,
            regularizers=(L2(strength=0.1), ElasticNet(l1=0.01, l2=0.05)),
        ).vary(
            {"clip": None, "step": 1.0, "averaging": 0.0, "at_average": True},
            {"proximal": True, "radius": 1.0},
            {"rate": 0.5},
        )
