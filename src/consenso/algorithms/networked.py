"""Networked ADMM, one noisy linearised step per node and round (Gauthier et al. 2023, Algorithm 1: zCDP-NFL).

    node k:    g   = grad f_k(c_k) + noise
               w_k = [ c_k/step + penalty sum_l (w_k + w_l) - dual_k - g - r'(c_k) ] / D
               and says w_k; then, with what its neighbours l said,
               dual_k <- dual_k + penalty sum_l (w_k - w_l)                            D = 2 penalty degree + 1/step

    paper        code               what it is
    w~_k         state.w            the noisy iterate, all that a neighbour ever sees
    gamma_k      state.dual
    rho          penalty
    eta^(n)      step               a number, or one per round (`Polynomial`, `PerRound`)
    f_k, R/K     f, regularizer     every node holds the regularizer of the problem
    tau          Geometric(ratio)   the noise schedule, see below
    -            c_k                w_k itself in the paper; with `at_average` the mean over the node and its neighbours

Where the noise is. It is added to the gradient: noise of standard deviation s there is noise of s/D on w_k, so this is
the paper's Gaussian output perturbation. The bound of the gradient, 2 c_1/M_k under replace-one, needs no denominator,
and the paper's 2 c_1/(M_k D) follows for whatever penalty, degree and step a round really uses.

How the noise decreases. The paper's (12) with phi^(n) = phi^(1) tau^-(n-1) is
`GaussianNoise(multiplier=Geometric(first=(2 phi)**-0.5, ratio=tau))`: the cost of a round grows by 1/tau whatever the
steps are. A variance of w_k that falls by tau under changing steps is `falling_variance(...)`; its cost is then not the
paper's closed form (1.8 times as much for eta^(n) = n). (epsilon, delta)-NFL is this definition with the noise that it
prescribes.

Remarks. (A.1) as printed, with (rho/2) sum (w_k - w_l) and +gamma/2, diverges, and its R'(w_k) at an un-noised iterate
leaks: here every trace of the data enters through noisy gradients. The squared loss has unbounded gradients, so it
needs `clip` (each record's gradient is shortened) or `radius` (iterates are projected on a ball, after which (<x, w> -
y)^2 / 2 has gradients of at most X (X radius + Y)). `proximal` takes the prox of the regularizer after the noise, in
place of its subgradient at c_k: with it constant steps reach the optimum, and constraints are allowed. `at_average` and
`averaging` are post-processing, so they are free: a gradient at the average of noisy iterates sees less of their noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms.dp_sgd import check_averaging
from consenso.algorithms.record_sums import check_rate, sample_records, sum_bounds, value_at
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
from consenso.errors import PreconditionError
from consenso.losses import Squared
from consenso.operators import gradient_bound, shorten_slopes
from consenso.privacy.noise import Constant, GaussianNoise, Geometric, PerRound, Polynomial
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser, postprocess
from consenso.privacy.run_spec import RunSpec
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import Ball, ElasticNet, Regularizer
from consenso.shards import Cohort

GRADIENT = "gradient"


@dataclass(frozen=True)
class State:
    """What a node keeps: functions of noisy iterates, all of it."""

    w: Array  # what it last said
    heard: Array  # sum of what its neighbours last said
    centre: Array  # where the next gradient is taken
    dual: Array
    model: Array  # the last centre, or the average of the late ones


@dataclass(frozen=True)
class Message:
    """What a node says to its neighbours."""

    w: Released


@dataclass(frozen=True, kw_only=True)
class NetworkedADMM:
    """Linearised ADMM on a graph, for smooth and nonsmooth losses; the defaults are the paper's form.

    clip: 2-norm to which each record's gradient is shortened. radius: of the ball that iterates are projected on. rate:
    of the Poisson sample of each node's records. proximal: the regularizer by its prox. at_average: gradients and
    proximal centres at the Metropolis average of what was heard. averaging: share of the last rounds whose iterates are
    averaged.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(
            paper="004",
            algorithm="Algorithm 1",
            names=("004", "004-1", "zCDP-NFL", "(eps, delta)-NFL", "(epsilon, delta)-NFL", "NFL"),
        ),
    )

    penalty: float = 1.0
    step: float | Constant | Polynomial | PerRound = 1.0
    clip: float | None = None
    radius: float | None = None
    rate: float = 1.0
    proximal: bool = False
    at_average: bool = False
    averaging: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, step=self.step)
        check_node(self, self.clip, self.radius, self.rate, self.averaging)

    def check(self, spec: RunSpec) -> None:
        """Refuse unbounded gradients, and constraints where only subgradients are taken."""
        problem = spec.facts.problem
        require_bounded_gradient(self, problem, self.clip, self.radius)
        require_slopes(self, problem, self.proximal)

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        return (gradient_release(facts, self.clip, self.radius, self.rate),)

    def denominator(self, facts: PublicFacts) -> Array:
        """D of each node in this round; the noise on an iterate is that of the gradient over D."""
        return 2 * self.penalty * degrees_of(facts) + 1 / value_at(self.step, facts.round)

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Everything at zero, and as if the neighbours had said so."""
        zero = np.zeros((len(facts.cohort), facts.dim))
        return State(w=zero, heard=zero, centre=zero, dual=zero, model=zero)

    def local(self, facts: PublicFacts, state: State, f: Cohort, release: Releaser) -> tuple[State, Message]:
        """One noisy step on the linearised augmented Lagrangian."""
        regularizer, centre = facts.problem.regularizer, within(state.centre, self.radius)
        noisy = noisy_gradient(facts, f, centre, release, self.clip, self.rate)
        pull = self.penalty * (degrees_of(facts)[:, None] * state.w + state.heard) - state.dual
        g = noisy if self.proximal else noisy + regularizer.subgradient(centre)
        bottom = self.denominator(facts)
        w = (centre / value_at(self.step, facts.round) + pull - g) / bottom[:, None]
        if self.proximal:
            w = prox_each(regularizer, w, 1 / bottom)
        w = within(w, self.radius)
        return replace(state, w=w), Message(w=postprocess(w, noisy))

    def absorb(self, facts: PublicFacts, state: State, heard: Heard) -> State:
        """The dual moves by the disagreement with the neighbours."""
        said = heard.sum("w")
        dual = state.dual + self.penalty * (degrees_of(facts)[:, None] * state.w - said)
        centre = heard.mix("w") if self.at_average else state.w
        model = running_average(facts, self.averaging, state.model, centre)
        return State(w=state.w, heard=said, centre=centre, dual=dual, model=model)

    def models(self, facts: PublicFacts, state: State) -> Array:
        """Each node's iterate, or the average of its late ones."""
        return state.model

    @classmethod
    def example(cls) -> Example:
        """Six nodes of five records on a ring with a chord, logistic loss."""
        return Example(
            algorithm=cls(
                penalty=0.2, step=Polynomial(first=2.0, power=-0.25), clip=0.6, at_average=True, averaging=0.5
            ),
            problem=small_problem(ElasticNet(l1=0.01, l2=0.05)),
            noise=GaussianNoise(multiplier=Geometric(first=2.0, ratio=0.9)),
            topology=RING_WITH_CHORD,
            exact=cls(penalty=0.05, step=4.0, proximal=True),
            exact_rounds=500,
            regularizers=(*PENALTIES, Ball(radius=0.7)),
        ).vary(
            {"clip": None, "step": 1.0, "at_average": False, "averaging": 0.0},
            {"penalty": 0.5, "proximal": True, "radius": 1.0},
            {"rate": 0.5},
        )


# --- what every node that takes noisy gradients needs ----------------------------------------------------------------


def check_node(owner: object, clip: float | None, radius: float | None, rate: float, averaging: float) -> None:
    """Refuse hyperparameters that no node can work with."""
    require_positive(owner, clip=clip, radius=radius)
    check_rate(owner, rate)
    check_averaging(owner, averaging)


def record_gradient_bound(problem: Problem, clip: float | None, radius: float | None) -> float:
    """Largest 2-norm of one record's gradient: by its loss, by shortening it, or because iterates stay in a ball."""
    bound = gradient_bound(problem, clip)
    if radius is None or not isinstance(problem.loss, Squared):
        return bound
    assert problem.target_bound is not None
    # The theorem is about (<x, w> - y)^2, of which the squared loss is half.
    inside = problem.row_bound * (problem.row_bound * radius + problem.target_bound)
    return min(bound, inside)


def require_bounded_gradient(owner: object, problem: Problem, clip: float | None, radius: float | None) -> None:
    """Refuse a loss whose gradients nothing bounds."""
    if record_gradient_bound(problem, clip, radius) == np.inf:
        raise PreconditionError(
            f"{type(owner).__name__}(clip={clip}, radius={radius}): every record's gradient must be bounded, and the "
            f"slope of {problem.loss!r} is not; use Huber(threshold=...), pass clip= to shorten the gradient of each "
            "record, or with the squared loss radius= to project the iterates."
        )


def require_slopes(owner: object, problem: Problem, proximal: bool, option: str = "proximal=True") -> None:
    """A constraint has a prox and no subgradients."""
    if problem.regularizer.is_constraint and not proximal:
        raise PreconditionError(
            f"{type(owner).__name__}: {problem.regularizer!r} is a constraint and has no subgradients; pass {option}."
        )


def gradient_release(
    facts: PublicFacts, clip: float | None, radius: float | None, rate: float, *, times: int = 1
) -> Release:
    """The gradient of a node: the weighted sum of its records' gradients, of those that were sampled."""
    return Release(
        name=GRADIENT,
        size=facts.dim,
        times=times,
        rate=rate,
        bounds=sum_bounds(facts, record_gradient_bound(facts.problem, clip, radius)),
        why="each record's gradient is bounded: by loss, shortening or projection (docs/privacy.md#networked-admm)",
    )


def noisy_gradient(
    facts: PublicFacts, f: Cohort, point: Array, release: Releaser, clip: float | None, rate: float
) -> Released:
    """The gradient of each node at its own point as it may leave, over the rate at which records were sampled."""
    coefficients = shorten_slopes(f.slopes(f.linear_predictor(point)), f.squared_norms, clip)
    gradient = f.rmatvec(sample_records(coefficients, f, release, GRADIENT, rate))
    gradient *= facts.scales[:, None]
    noisy = release(GRADIENT, gradient)
    return noisy if rate == 1 else postprocess(noisy / rate, noisy)


def within(w: Array, radius: float | None) -> Array:
    """Points projected on a ball. A neighbour that lies about its iterate does not get a longer gradient either."""
    return w if radius is None else Ball(radius=radius).prox(w, 0.0)


def prox_each(regularizer: Regularizer, v: Array, steps: Array) -> Array:
    """The prox of each node's point with its own step; nodes of equal degrees are taken together."""
    distinct, which = np.unique(steps, return_inverse=True)
    if len(distinct) == 1:
        return regularizer.prox(v, float(distinct[0]))
    x = np.empty_like(v)
    for index, step in enumerate(distinct):
        alike = which == index
        x[alike] = regularizer.prox(v[alike], float(step))
    return x


def running_average(facts: PublicFacts, averaging: float, mean: Array, latest: Array) -> Array:
    """The average of what came in the last share `averaging` of the rounds, and before that the latest alone."""
    first = facts.rounds - max(1, round(averaging * facts.rounds))
    averaged = facts.round - first + 1
    return latest if averaged <= 1 else mean + (latest - mean) / averaged


def degrees_of(facts: PublicFacts) -> Array:
    """Neighbours of each node."""
    assert facts.degrees is not None
    return facts.degrees.astype(np.float64)


def falling_variance(
    *,
    penalty: float,
    degree: int,
    step: float | Constant | Polynomial | PerRound,
    first: float,
    ratio: float,
    rounds: int,
) -> GaussianNoise:
    """Noise under which the variance of a node's *iterate* falls by `ratio` a round, although the steps change.

    `first` is the multiplier of round 0. The multiplier of a round is its standard deviation over its sensitivity, and
    the sensitivity changes with the denominator, so the multipliers depend on the degree: for graphs of one degree.
    """
    bottoms = [2 * penalty * degree + 1 / value_at(step, round_) for round_ in range(rounds)]
    decrease = Geometric(first=first, ratio=ratio)
    values = (decrease.at(round_) * bottom / bottoms[0] for round_, bottom in enumerate(bottoms))
    return GaussianNoise(multiplier=PerRound(values=tuple(values)))
