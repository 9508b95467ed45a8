"""What a run takes: seconds and memory, estimated from public sizes and from how fast this machine multiplies."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from consenso.planning.plan import Plan
from consenso.tables.frames import BATCH_NUMBERS

#: Where rows are during a run.
Where = Literal["memory", "storage", "workers"]

NUMBER = 8  # bytes
#: Seconds for one noisy number, measured: operating-system entropy through OpenDP, and a seeded generator.
SAFE_DRAW, SEEDED_DRAW = 1.3e-5, 1e-7
#: Seconds that a round takes however small the data are, and start-up with its imports and compiled kernels.
ROUND, START = 2e-4, 3.0
#: Passes over the rows of a gradient, and of a local minimisation to its tolerance.
GRADIENT_PASSES, SOLVE_PASSES = 2, 24
#: Copies of the rows while a table is read and dealt, and of messages in a round.
ROW_COPIES, MESSAGE_COPIES = 3, 4
#: Batches in memory at once, with the copies that are made of each: one is read while one is worked on.
BATCH_COPIES = 8
#: Bytes of numbers that are decoded from files in a second, measured on Parquet.
DECODED = 3e8
#: Passes over a table in storage besides the rounds: one to check every cell, one to know the rows again on resuming.
OTHER_PASSES = 2
#: A cohort's messages are handled in pieces of this many numbers.
PIECE = 1 << 23


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """An estimate for all parties in one process; a party of a federation takes its share."""

    seconds: float
    memory: int  # bytes, of this process
    reading: Reading


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How often the table is read, and where its rows are meanwhile.

    passes: over the table by this process, at most. size: bytes of the rows as numbers. disk: bytes beside them, of
    numbers that are remembered of rows in storage. workers: whether a cluster holds the rows.
    """

    where: Where
    passes: int
    size: int
    disk: int = 0

    @property
    def sentence(self) -> str:
        size = show_bytes(self.size)
        if self.where == "memory":
            return f"the table is read once, into memory: {size} of numbers"
        if self.where == "workers":
            return (
                f"this process reads the table {self.passes} times, to check it and to know it again, and the workers "
                f"read it once and hold {size} of numbers; what a lost worker held is read again"
            )
        return (
            f"the table is read at most {self.passes} times ({self.passes - OTHER_PASSES} rounds, a check before, and "
            f"one to know it again), {size} of numbers each time; a few batches are in memory, and "
            f"{show_bytes(self.disk)} in a temporary file"
        )


def show_bytes(size: int) -> str:
    """A size for people."""
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{max(1, round(size / 2**20))} MB"


def estimate_reading(plan: Plan, where: Where) -> Reading:
    """How often a table is read where its rows are in memory, in storage, or held by the workers of a cluster."""
    problem = plan.problem
    size = NUMBER * problem.records * problem.features
    if where == "memory":
        return Reading(where=where, passes=1, size=size)
    if where == "workers":
        return Reading(where=where, passes=OTHER_PASSES, size=size)
    return Reading(where=where, passes=plan.rounds + OTHER_PASSES, size=size, disk=NUMBER * problem.records)


def estimate_cost(plan: Plan, where: Where = "memory") -> CostEstimate:
    """The cost of running a plan here, to an order of magnitude."""
    problem, rounds, rate = plan.problem, plan.rounds, plan.facts.rate
    touched = rate * problem.records * problem.dim
    multiplications = rounds * touched * _passes(plan.algorithm) + _once(plan)
    drawn = rounds * _numbers_per_round(plan)
    draw = SAFE_DRAW if plan.sampler.private else SEEDED_DRAW
    messages = rounds * rate * problem.parties * problem.dim
    seconds = START + rounds * ROUND + (multiplications + 4 * messages) / _speed() + drawn * draw
    rows = problem.records * problem.features
    spoken = MESSAGE_COPIES * min(problem.parties * problem.dim, PIECE)
    state = 2 * problem.parties * problem.dim if problem.parties > 1 else 2 * problem.records
    reading = estimate_reading(plan, where)
    if where == "memory":
        held = ROW_COPIES * rows + state
    else:
        held = BATCH_COPIES * min(BATCH_NUMBERS, rows) + 2 * problem.parties * problem.dim
        seconds += reading.passes * reading.size / DECODED
    if "second moment" in plan.noise:
        spoken += MESSAGE_COPIES * problem.features**2
    return CostEstimate(seconds=seconds, memory=NUMBER * (held + spoken), reading=reading)


def _passes(algorithm: Any) -> int:
    solves = hasattr(algorithm, "tolerance") and getattr(algorithm, "level", "party") == "party"
    return (SOLVE_PASSES if solves else GRADIENT_PASSES) * int(getattr(algorithm, "inner_steps", 1))


def _once(plan: Plan) -> float:
    """Multiplications of a second moment, where the algorithm releases one."""
    features = plan.problem.features
    return float(plan.problem.records * features**2 + 10 * features**3) if "second moment" in plan.noise else 0.0


def _numbers_per_round(plan: Plan) -> float:
    everyone = plan.representatives()
    total = 0.0
    rounds = {0, plan.rounds - 1}
    for round_ in rounds:
        for release in plan.remember(plan.algorithm.releases)(everyone.at(round_)):
            speakers = 1 if release.at == "sum" and plan.mode.noise_at_hub else plan.parties
            total += release.size * max(1.0, plan.facts.rate * speakers)
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
