"""What a run takes: seconds and memory, estimated from public sizes and from how fast this machine multiplies."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.planning.plan import Plan

NUMBER = 8  # bytes
#: Seconds for one noisy number, measured: operating-system entropy through OpenDP, and a seeded generator.
SAFE_DRAW, SEEDED_DRAW = 1.3e-5, 1e-7
#: Seconds that a round takes however small the data are, and start-up with its imports and compiled kernels.
ROUND, START = 2e-4, 3.0
#: Passes over the rows of a gradient, and of a local minimisation to its tolerance.
GRADIENT_PASSES, SOLVE_PASSES = 2, 24
#: Copies of the rows while a table is read and dealt, and of messages in a round.
ROW_COPIES, MESSAGE_COPIES = 3, 4
#: A cohort's messages are handled in pieces of this many numbers.
PIECE = 1 << 23


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """An estimate for all parties in one process; a party of a federation takes its share."""

    seconds: float
    memory: int  # bytes


def estimate_cost(plan: Plan) -> CostEstimate:
    """The cost of running a plan here, to an order of magnitude."""
    problem, setting = plan.problem, plan.spec
    rounds, rate = setting.rounds, setting.facts.rate
    touched = rate * problem.records * problem.dim
    multiplications = rounds * touched * _passes(plan.algorithm) + _once(plan)
    drawn = rounds * _numbers_per_round(plan)
    draw = SAFE_DRAW if setting.policy.sampler.private else SEEDED_DRAW
    messages = rounds * rate * problem.parties * problem.dim
    seconds = START + rounds * ROUND + (multiplications + 4 * messages) / _speed() + drawn * draw
    rows = ROW_COPIES * problem.records * problem.features
    spoken = MESSAGE_COPIES * min(problem.parties * problem.dim, PIECE)
    state = 2 * problem.parties * problem.dim if problem.parties > 1 else 2 * problem.records
    return CostEstimate(seconds=seconds, memory=NUMBER * (rows + spoken + state))


def _passes(algorithm: Any) -> int:
    solves = hasattr(algorithm, "tolerance") and getattr(algorithm, "level", "party") == "party"
    return (SOLVE_PASSES if solves else GRADIENT_PASSES) * int(getattr(algorithm, "inner_steps", 1))


def _once(plan: Plan) -> float:
    """Multiplications of a second moment, where the algorithm releases one."""
    features = plan.problem.features
    return (
        float(plan.problem.records * features**2 + 10 * features**3)
        if "second moment" in plan.spec.policy.noise
        else 0.0
    )


def _numbers_per_round(plan: Plan) -> float:
    setting, everyone = plan.spec, plan.spec.representatives()
    total = 0.0
    rounds = {0, setting.rounds - 1}
    for round_ in rounds:
        for release in setting.declared(plan.algorithm.releases)(everyone.at(round_)):
            speakers = 1 if release.at == "sum" and setting.policy.trust == "curator" else setting.parties
            total += release.size * max(1.0, setting.facts.rate * speakers)
    return total / len(rounds)


def _speed() -> float:
    """Multiplications per second of a product with rows that do not fit in the fastest cache."""
    rows = np.ones((4096, 128))
    x = np.ones(128)
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        _ = rows @ x
        best = min(best, time.perf_counter() - start)
    return float(rows.size / max(best, 1e-9))
