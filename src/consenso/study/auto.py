"""What "auto" means: an algorithm, its parameters and its rounds by rules from public facts and the budget.

Around a hub the rules of `consenso.solvers` decide, but for local trust with so many parties that their noise drowns
the second moment of a preconditioner: then plain gradient steps are taken. On a graph the same rules decide where peers
sum, as they do unless local trust is asked for; peers that gossip take IPADMM with the options that are free
post-processing and a clip; the length of the run is set so that the noise walks a fixed distance, in
units of the row bound (the rule whose results docs/peers.md tells). REACH, CLIP and DROWNED were chosen by looking at
Adult and digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consenso.algorithms.shape import PeerAlgorithm
from consenso.conventions import ON_GRAPH, Trust
from consenso.errors import InputError, PreconditionError
from consenso.privacy.calibrate import EpsilonDelta, Mu, PureEpsilon, Rho, Target
from consenso.privacy.observers import Observer, Server
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.schedules import Everyone, Schedule
from consenso.topology import Topology

REACH = 14.0  # length of the noise walk at which to stop, in units of 1/row_bound
CLIP = 0.7  # of a record's Lipschitz constant: few records of a useful model have steeper losses
FEWEST, MOST = 10, 1000
#: Beyond this ratio of noise to a second moment plain steps did better (Adult and digits, 5 to 100 parties).
DROWNED = 3.0
#: Consensus ADMM without noise: long steps, and rounds until nothing moves any more.
EXACT_STEP, EXACT_ROUNDS = 64.0, 150
#: Rounds of a named algorithm when nothing better is known, and passes over the parties where one acts in a round.
USUAL_ROUNDS, USUAL_PASSES = 50, 10


@dataclass(frozen=True, kw_only=True)
class PlanningInputs:
    """The public facts that the rules may look at."""

    problem: Problem
    target: Target | None
    observer: Observer
    kind: str
    trust: Trust
    schedule: Schedule | None
    topology: Topology | None
    exact: bool = False  # no noise is added at all
    constant: float | None = None  # value of the last column where it is that of an intercept


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What to plan with, and why, in one sentence of public facts."""

    algorithm: Any
    rounds: int
    schedule: Schedule | None
    reason: str


def choose(given: PlanningInputs, *, algorithm: Any | None, rounds: int | None) -> Choice:
    """The algorithm and the rounds as stated, or by the rules."""
    if algorithm is not None:
        name = type(algorithm).__name__
        found = usual_rounds(given, algorithm) if rounds is None else rounds
        told = "" if rounds is not None else f", and {found} rounds is its usual number here"
        return Choice(
            algorithm=algorithm,
            rounds=found,
            schedule=given.schedule,
            reason=f"{name}: the study names it{told}.",
        )
    if given.exact:
        choice = _without_noise(given)
        return choice if rounds is None else replace(choice, rounds=rounds)
    if given.target is None:
        raise InputError(
            'setting.algorithm = "auto": a choice needs a target to be made for; state privacy.epsilon and delta, or '
            "name the algorithm."
        )
    if isinstance(given.target, PureEpsilon):
        raise InputError(
            'setting.algorithm = "auto": the rules choose algorithms with Gaussian noise, which needs a delta; state '
            "privacy.delta, or name the algorithm."
        )
    gossips = given.topology is not None and given.trust not in ON_GRAPH
    choice = _on_graph(given) if gossips else _around_hub(given)
    return choice if rounds is None else replace(choice, rounds=rounds)


def _around_hub(given: PlanningInputs) -> Choice:
    from consenso.solvers import prepare

    assert given.target is not None
    trust, observer, told = given.trust, given.observer, ""
    if trust == "masked-sum":
        # The noise of a secure sum, and every observer of a graph learns what its server learns.
        trust, observer = "secure-sum", Server()
        told = (
            f" Sums on the graph under masks: all peers together add the noise of one curator, and gossip would add "
            f"{math.sqrt(given.problem.parties):.3g} times as much."
        )
    elif trust == "tree":
        trust, told = "local", " Sums along a tree: every peer adds its own noise, and each step is made of all."
    made = prepare(
        given.problem,
        given.target,
        observer=observer,
        trust=trust,
        schedule=given.schedule,
        constant=given.constant,
    )
    if trust == "local" and made.solver == "preconditioned":
        drowned = moment_noise_ratio(given.problem, zcdp_of(given.target))
        if drowned > DROWNED:
            choice = _with_own_noise(given, drowned)
            return replace(choice, reason=choice.reason + told)
    return Choice(algorithm=made.algorithm, rounds=made.rounds, schedule=given.schedule, reason=made.reason + told)


def moment_noise_ratio(problem: Problem, rho: float) -> float:
    """How many times the mean eigenvalue of a second moment its noise is, where every party adds its own."""
    from consenso.algorithms.preconditioned import PreconditionedFixedPoint

    algorithm = PreconditionedFixedPoint()
    (release,) = algorithm.releases(PublicFacts.everyone(problem, rounds=2))
    bounds = np.broadcast_to(release.bounds.at(problem.unit, problem.adjacency), (problem.parties,))
    std = math.sqrt(float(np.sum(bounds**2)) / (2 * rho * algorithm.share))
    # A symmetric Gaussian matrix has a spectral norm of about std sqrt(2 p); the trace is at most n row_bound^2.
    p = problem.features
    return 0.5 * std * math.sqrt(2 * p) * p / (problem.records * problem.row_bound**2)


def _with_own_noise(given: PlanningInputs, drowned: float) -> Choice:
    """Plain gradient steps: under local trust the noise of many parties leaves nothing of a second moment."""
    from consenso.algorithms.dp_sgd import DPSGD

    problem = given.problem
    step = 1 / float(np.mean(problem.smoothness))
    algorithm = DPSGD(step=step, clip=CLIP * problem.loss.lipschitz(problem.row_bound), averaging=0.5)
    return Choice(
        algorithm=algorithm,
        rounds=_pace(problem, algorithm, None, zcdp_of(given.target), step),
        schedule=given.schedule,
        reason=f"DPSGD: every party adds its own noise, which would be {drowned:.2g} times the second moment that a "
        "preconditioner needs.",
    )


def _on_graph(given: PlanningInputs) -> Choice:
    from consenso.algorithms.ipadmm import IPADMM

    problem, topology = given.problem, given.topology
    assert topology is not None
    slope = problem.loss.lipschitz(problem.row_bound)
    if not math.isfinite(slope) or not np.isfinite(problem.smoothness).all():
        raise PreconditionError(
            f'setting.algorithm = "auto": on a graph the rules need a loss with bounded slopes and curvature, and the '
            f"{problem.loss.name} loss has not; choose logistic, huber or smoothed-hinge, or name an algorithm."
        )
    options: dict[str, Any] = {"clip": CLIP * slope, "at_average": True, "averaging": 0.5}
    step = 1 / float(np.mean(problem.smoothness))
    rounds = _pace(problem, IPADMM(**options), topology, zcdp_of(given.target), step)
    penalty = 1 / (2 * float(topology.degrees.mean()) * step)
    return Choice(
        algorithm=IPADMM(penalty=penalty, proximity=0.0, **options),
        rounds=rounds,
        schedule=given.schedule,
        reason="IPADMM: the first choice on a graph, with steps as long as the curvature allows and as many rounds as "
        "the budget is worth.",
    )


def _pace(problem: Problem, algorithm: Any, topology: Topology | None, rho: float, step: float) -> int:
    """The rounds after which Gaussian noise within the budget has walked the reach."""
    degrees = None if topology is None else topology.degrees
    (release,) = algorithm.releases(PublicFacts.everyone(problem, rounds=1, degrees=degrees))
    bounds = np.broadcast_to(release.bounds.at(problem.unit, problem.adjacency), (problem.parties,))
    std = math.sqrt(float(np.mean(bounds**2)) / problem.parties / (2 * rho))
    longest = REACH / (problem.row_bound * std * math.sqrt(problem.dim))
    return int(np.clip(math.ceil(longest / step), FEWEST, MOST))


def _without_noise(given: PlanningInputs) -> Choice:
    """An exact method, for epsilon = inf."""
    from consenso.algorithms.distributed_admm import DistributedADMM
    from consenso.algorithms.dual_consensus import DualConsensusADMM
    from consenso.algorithms.preconditioned import PreconditionedFixedPoint

    loss = given.problem.loss
    if given.topology is not None and given.trust not in ON_GRAPH:
        algorithm: Any = DistributedADMM()
    elif math.isfinite(loss.slope_bound + loss.curvature_bound):
        algorithm = PreconditionedFixedPoint(steps=EXACT_ROUNDS - 1, clip=1e6, averaging=False)
    elif math.isfinite(loss.slope_bound):
        algorithm = DualConsensusADMM(step=EXACT_STEP / given.problem.row_bound**2)
    else:
        raise InputError(
            f'setting.algorithm = "auto": without noise the rules fit losses with bounded slopes, and the '
            f"{loss.name} loss has not; take huber, or name an algorithm."
        )
    return Choice(
        algorithm=algorithm,
        rounds=EXACT_ROUNDS,
        schedule=given.schedule,
        reason=f"{type(algorithm).__name__}: it reaches the exact model where no noise is added.",
    )


def zcdp_of(target: Target | None) -> float:
    """The budget of a target as that of Gaussian releases in zCDP."""
    from consenso import theory

    if isinstance(target, Rho):
        return target.rho
    if isinstance(target, Mu):
        return target.mu**2 / 2
    assert isinstance(target, EpsilonDelta)
    return theory.budget(target.epsilon, target.delta)


def usual_rounds(given: PlanningInputs, algorithm: Any) -> int:
    """A number of rounds for a named algorithm, from its kind and the schedule."""
    from consenso.algorithms.objective_perturbation import ObjectivePerturbation
    from consenso.algorithms.preconditioned import PreconditionedFixedPoint

    if isinstance(algorithm, ObjectivePerturbation):
        return 1
    if isinstance(algorithm, PreconditionedFixedPoint):
        return 1 + (algorithm.steps or 2 * USUAL_ROUNDS)
    if isinstance(algorithm, PeerAlgorithm) or given.schedule is None or isinstance(given.schedule, Everyone):
        return USUAL_ROUNDS
    # As many as give each party the usual number of passes.
    facts = given.schedule.participation(0, given.problem.parties, given.problem.parties)
    rate = getattr(facts, "rate", 1.0 / given.problem.parties)
    return math.ceil(USUAL_PASSES / rate)
