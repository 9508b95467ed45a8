"""Distributed ADMM on a graph with exact local minimisation, not private (Shi et al. 2014; Zhang and Zhu 2017).

    node i:  w_i   = argmin f_i(w) + r(w) + <dual_i, w> + penalty sum_j |w - (w_i + w_j)/2|^2     j over i's neighbours
    hears:   dual_i <- dual_i + penalty sum_j (w_i - w_j)

    paper        code               what it is
    f_i, w_i     state.w            the node's model, as its neighbours know it
    2 lambda_i   state.dual         the papers write 2 lambda_i and step it by eta/2; here the 2 is in the dual
    eta, rho     penalty            weight of disagreement
    |N_i|        facts.degrees      number of neighbours, d_i below

Every node has the whole regularizer, because the objective mean_i f_i + r is the mean of the f_i + r. With r = 0 or
r = (m/2)|w|^2 the node's problem is a prox, which is solved with a certificate:

    w_i = prox of f_i / curvature_i at pull_i / curvature_i,      curvature_i = m + 2 penalty d_i,
                                                                  pull_i = penalty (d_i w_i + sum_j w_j) - dual_i

Other regularizers do not go into the prox of f_i exactly and are refused. Everything starts at zero. All models are
sent as they are: this is the reference for the noisy methods of this package, which share its node (`ExactNode`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from consenso.algorithms.networked import Message, degrees_of, running_average
from consenso.algorithms.shape import RING_WITH_CHORD, Example, Heard, Source, require_positive, small_problem
from consenso.arrays import Array
from consenso.errors import PreconditionError
from consenso.losses import require_step
from consenso.privacy.noise import Noise, NoNoise
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, NoPenalty
from consenso.shards import Cohort
from consenso.subproblems import Prox, certify
from consenso.subproblems.batch import ROUNDING, lengths


@dataclass(frozen=True)
class State:
    """What a node keeps. Where models leave through noise, all of it follows from what was sent and heard."""

    w: Array  # own model as sent
    heard: Array  # sum of the neighbours' models
    dual: Array


S = TypeVar("S", bound=State)


def check_local_problem(owner: object, penalty: float, spec: RunSpec) -> None:
    """Refuse problems whose local minimisation is not one prox, or is not strongly convex by public terms alone."""
    name, regularizer, degrees = type(owner).__name__, spec.facts.problem.regularizer, spec.facts.degrees
    if not isinstance(regularizer, NoPenalty | L2):
        raise PreconditionError(
            f"{name}: local minimisation is exact for NoPenalty() and L2(strength=...) only, and the regularizer is "
            f"{regularizer!r}; use GraphDPADMM, which takes the prox of any regularizer."
        )
    if degrees is None or (regularizer.strong_convexity == 0 and not degrees.all()):
        raise PreconditionError(
            f"{name}: a node without neighbours needs L2(strength=...) to have one minimiser; add an edge, or penalize."
        )
    require_small_steps(name, penalty, spec.facts)


def require_small_steps(name: str, penalty: float, facts: PublicFacts) -> None:
    """Refuse a penalty so small that no prox of a row at the bound could be solved for."""
    step = float(np.max(facts.scales / curvatures(penalty, facts), initial=0.0))
    require_step(step, facts.problem.row_bound, f"{name}(penalty={penalty})")


def curvatures(penalty: float, facts: PublicFacts) -> Array:
    """Curvature of the quadratic part of each node's problem, (parties,): public, and at least its strong convexity."""
    return facts.problem.regularizer.strong_convexity + 2 * penalty * degrees_of(facts)


def pulls(penalty: float, facts: PublicFacts, state: State) -> Array:
    """The linear part of each node's problem with its sign turned, (parties, dim)."""
    return penalty * (degrees_of(facts)[:, None] * state.w + state.heard) - state.dual


def minimise(f: Cohort, pull: Array, curvature: Array, tolerance: float, who: str) -> Array:
    """The minimisers of f_i(w) + curvature_i/2 |w|^2 - <pull_i, w> to a certified distance, (parties, dim)."""
    points = pull / curvature[:, None]
    f.check_points(points, 1 / curvature, tolerance / 2, who)
    found = f.prox(points, 1 / curvature, tolerance / 2)
    # The prox is certified for its own arguments, which were rounded on their way here.
    rounded = ROUNDING * (lengths(points) + lengths(found.x))
    return certify(Prox(found.x, found.residual + rounded), tolerance, who)


def listen(penalty: float, facts: PublicFacts, state: S, heard: Heard) -> S:
    """The dual step, and what the next round starts from."""
    said = heard.sum("w")
    return replace(state, heard=said, dual=state.dual + penalty * (degrees_of(facts)[:, None] * state.w - said))


def at_zero(facts: PublicFacts) -> State:
    """The start of every node."""
    zero = np.zeros((len(facts.cohort), facts.dim))
    return State(w=zero, heard=zero, dual=zero)


@dataclass(frozen=True)
class AveragedState(State):
    """A node's state with the average of its late models."""

    model: Array  # the last one, before the rounds that are averaged


class AveragingNode:
    """A node whose model is the average of its late ones; a method says what a node does in `local`."""

    penalty: float
    averaging: float

    def enroll(self, facts: PublicFacts, f: Cohort) -> AveragedState:
        start = at_zero(facts)
        return AveragedState(w=start.w, heard=start.heard, dual=start.dual, model=start.w)

    def follow(self, facts: PublicFacts, state: AveragedState, w: Array) -> AveragedState:
        """The state with the model of one more round."""
        return replace(state, w=w, model=running_average(facts, self.averaging, state.model, w))

    def absorb(self, facts: PublicFacts, state: AveragedState, heard: Heard) -> AveragedState:
        return listen(self.penalty, facts, state, heard)

    def models(self, facts: PublicFacts, state: AveragedState) -> Array:
        return state.model


class ExactNode:
    """The node of distributed ADMM. A method says what it declares, and by `leave` how a minimiser gets its noise."""

    penalty: float
    tolerance: float

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        return at_zero(facts)

    def local(self, facts: PublicFacts, state: State, f: Cohort, release: Releaser) -> tuple[State, Message]:
        """One local minimisation, which leaves as the method says."""
        w = self.leave(facts, state, f, release)
        return replace(state, w=w), Message(w=w)

    def leave(self, facts: PublicFacts, state: State, f: Cohort, release: Releaser) -> Released:
        """The minimiser with the noise of the release "model", (parties, dim)."""
        pull, curvature = pulls(self.penalty, facts, state), curvatures(self.penalty, facts)
        return release("model", minimise(f, pull, curvature, self.tolerance, type(self).__name__))

    def absorb(self, facts: PublicFacts, state: State, heard: Heard) -> State:
        return listen(self.penalty, facts, state, heard)

    def models(self, facts: PublicFacts, state: State) -> Array:
        """Each node's model as it was sent."""
        return state.w


def give_example(algorithm: Any, noise: Noise, *, exact_rounds: int = 150) -> Example:
    """Six nodes of unequal sizes and degrees, logistic loss."""
    return Example(
        algorithm=algorithm,
        problem=small_problem(L2(strength=0.1), sizes=np.array([4, 5, 6, 5, 4, 6]), weighting="party"),
        noise=noise,
        rounds=4,
        topology=RING_WITH_CHORD,
        exact_rounds=exact_rounds,
        regularizers=(NoPenalty(), L2(strength=0.1)),
    )


@dataclass(frozen=True, kw_only=True)
class DistributedADMM(ExactNode):
    """Decentralized consensus ADMM without noise, for any loss."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(
            paper="002",
            algorithm="non-private ADMM of Figure 3",
            names=("distributed ADMM", "decentralized ADMM", "non-private ADMM"),
        ),
    )

    penalty: float = 1.0
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, tolerance=self.tolerance)

    def check(self, spec: RunSpec) -> None:
        """Noise would suggest a guarantee that this definition does not have."""
        check_local_problem(self, self.penalty, spec)
        if any(not isinstance(noise, NoNoise) for noise in spec.noise.values()):
            raise PreconditionError(
                "DistributedADMM(noise=...): this is the method without privacy and takes NoNoise() only; use "
                "PrimalPerturbation for noise on the models."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        return (Release(name="model", size=facts.dim, bounds=Bounds(), why="no bound is claimed: it leaves as it is"),)

    @classmethod
    def example(cls) -> Example:
        """Six nodes of unequal sizes and degrees, logistic loss."""
        return give_example(cls(penalty=0.05), NoNoise()).vary({"penalty": 0.5, "tolerance": 1e-8})
