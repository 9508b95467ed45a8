"""Our solvers, each by its public rules, and the fit without privacy."""

from __future__ import annotations

from typing import Any

from benchmarks.utility.tasks import Task
from consenso.engine.run import run
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.samplers import Seeded
from consenso.shards import Shards
from consenso.solvers import names, prepare
from consenso.solvers.exact import fit_exact

NAMES = ("auto", *names())


def fit(task: Task, solver: str, epsilon: float, delta: float, seed: int) -> Any:
    """The coefficients, (features, outputs)."""
    problem = task.problem()
    shards = Shards.from_parties(problem, [(task.X, task.y)])
    prepared = prepare(problem, EpsilonDelta(epsilon=epsilon, delta=delta), solver=solver, sampler=Seeded(seed))
    return run(prepared, shards).coefficients


def exact(task: Task) -> Any:
    """The coefficients of the non-private optimum."""
    problem = task.problem()
    shards = Shards.from_parties(problem, [(task.X, task.y)])
    return fit_exact(problem, shards).reshape(problem.features, problem.outputs)
