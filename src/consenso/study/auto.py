"""What "auto" means: an algorithm, its parameters and its rounds by rules from public facts and the budget.

With noise the rules of `consenso.solvers` decide, around a hub and on a graph; what is here is for runs without noise,
and for algorithms that a study names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from consenso.algorithms.shape import PeerAlgorithm
from consenso.errors import InputError
from consenso.privacy.calibrate import PureEpsilon, Target
from consenso.problem import Problem
from consenso.schedules import Everyone, Schedule
from consenso.solvers import choose as solvers
from consenso.solvers.choose import Choice
from consenso.solvers.request import Request
from consenso.topology import Topology
from consenso.trust import Trust, mode_of

#: Consensus ADMM without noise: long steps, and rounds until nothing moves any more.
EXACT_STEP, EXACT_ROUNDS = 64.0, 150
#: Rounds of a named algorithm when nothing better is known, and passes over the parties where one acts in a round.
USUAL_ROUNDS, USUAL_PASSES = 50, 10


@dataclass(frozen=True, kw_only=True)
class PlanningInputs:
    """The public facts that the rules may look at."""

    problem: Problem
    target: Target | None
    trust: Trust
    schedule: Schedule | None
    topology: Topology | None
    exact: bool = False  # no noise is added at all
    constant: float | None = None  # value of the last column where it is that of an intercept
    penalty_follows: bool = False  # see Request


def choose(given: PlanningInputs, *, algorithm: Any | None, rounds: int | None) -> Choice:
    """The algorithm and the rounds as stated, or by the rules."""
    if algorithm is not None:
        name = type(algorithm).__name__
        found = usual_rounds(given, algorithm) if rounds is None else rounds
        told = "" if rounds is not None else f", and {found} rounds is its usual number here"
        return Choice(solver="named", algorithm=algorithm, rounds=found, reason=f"{name}: the study names it{told}.")
    choice = _without_noise(given) if given.exact else _by_solvers(given)
    if rounds is None:
        return choice
    adapted = choice.algorithm.for_rounds(rounds) if hasattr(choice.algorithm, "for_rounds") else choice.algorithm
    return replace(choice, algorithm=adapted, rounds=rounds)


def _by_solvers(given: PlanningInputs) -> Choice:
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
    request = Request(
        problem=given.problem,
        target=given.target,
        trust=given.trust,
        schedule=given.schedule,
        topology=given.topology,
        constant=given.constant,
        penalty_follows=given.penalty_follows,
    )
    return solvers.choose(request)


def _without_noise(given: PlanningInputs) -> Choice:
    """An exact method, for epsilon = inf."""
    from consenso.algorithms.distributed_admm import DistributedADMM
    from consenso.algorithms.dual_consensus import DualConsensusADMM
    from consenso.algorithms.preconditioned import PreconditionedFixedPoint

    loss = given.problem.loss
    if given.topology is not None and not mode_of(given.trust).on_graph:
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
        solver="exact",
        algorithm=algorithm,
        rounds=EXACT_ROUNDS,
        reason=f"{type(algorithm).__name__}: it reaches the exact model where no noise is added.",
    )


def usual_rounds(given: PlanningInputs, algorithm: Any) -> int:
    """A number of rounds for a named algorithm, from its kind and the schedule."""
    from consenso.algorithms.objective_perturbation import ObjectivePerturbation
    from consenso.algorithms.preconditioned import PreconditionedFixedPoint
    from consenso.algorithms.preconditioned_gossip import PreconditionedGossip

    if isinstance(algorithm, ObjectivePerturbation):
        return 1
    if isinstance(algorithm, PreconditionedGossip):
        return algorithm.rounds
    if isinstance(algorithm, PreconditionedFixedPoint):
        return 1 + (algorithm.steps or 2 * USUAL_ROUNDS)
    if isinstance(algorithm, PeerAlgorithm) or given.schedule is None or isinstance(given.schedule, Everyone):
        return USUAL_ROUNDS
    # As many as give each party the usual number of passes.
    facts = given.schedule.participation(0, given.problem.parties, given.problem.parties)
    rate = getattr(facts, "rate", 1.0 / given.problem.parties)
    return math.ceil(USUAL_PASSES / rate)
