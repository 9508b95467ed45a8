"""The models of the demo: is a handwritten digit even? The digits are scikit-learn's; their pixel range is public."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.ipadmm import IPADMM
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.arrays import Array
from consenso.datasets import load_digits
from consenso.losses import Logistic
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.observers import Eavesdropper, Observer, Public, Server
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.runtime.plan import Plan, plan
from consenso.runtime.run import run
from consenso.shards import Shards
from consenso.topology import Topology

DELTA = 1e-5
PARTIES = 20
TEST = 357  # digits kept as a public test set


@dataclass(frozen=True)
class Trained:
    """One setting's model and how it did on the public test digits."""

    name: str
    what: str
    plan: Plan
    accuracy: float
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """Everything that the demo shows."""

    epsilon: float
    majority: float
    exact: float
    trained: tuple[Trained, ...]


def train(epsilon: float, console: Console) -> Outcome:
    """Train in all three settings, with a progress bar."""
    rows, labels, test_rows, test_labels = _digits()

    def accuracy(model: Array) -> float:
        return float(np.mean(np.where(test_rows @ model > 0, 1.0, -1.0) == test_labels))

    bar = Progress(
        TextColumn("{task.description:14}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
    )
    with bar:
        trained = tuple(
            _train(name, what, make(rows.shape, epsilon), rows, labels, accuracy, bar) for name, what, make in SETTINGS
        )
    return Outcome(
        epsilon=epsilon,
        majority=float(max(np.mean(test_labels > 0), np.mean(test_labels < 0))),
        exact=accuracy(_exact(rows, labels)),
        trained=trained,
    )


def _train(
    name: str, what: str, made: Plan, rows: Array, labels: Array, accuracy: Callable[[Array], float], bar: Progress
) -> Trained:
    offsets = np.concatenate(([0], np.cumsum(made.problem.sizes)))
    shards = Shards.build(made.problem, rows, labels, offsets)
    task = bar.add_task(name, total=made.setting.rounds)
    start = time.perf_counter()
    result = run(made, shards, progress=lambda done, planned: bar.update(task, completed=done))
    bar.update(task, total=result.rounds, completed=result.rounds)
    return Trained(name, what, made, accuracy(result.model), time.perf_counter() - start)


def _problem(shape: tuple[int, ...], parties: int) -> Problem:
    sizes = np.full(parties, shape[0] // parties)
    return Problem(
        loss=Logistic(), regularizer=L2(strength=1e-3), features=shape[1], sizes=sizes, row_bound=1.0, unit="record"
    )


def _central(shape: tuple[int, ...], epsilon: float) -> Plan:
    return _plan(_problem(shape, 1), PreconditionedFixedPoint(), epsilon, Public(), rounds=101, trust="curator")


def _federated(shape: tuple[int, ...], epsilon: float) -> Plan:
    algorithm = DualConsensusADMM(step=8.0, rate=0.5)
    return _plan(_problem(shape, PARTIES), algorithm, epsilon, Server(), rounds=60, trust="secure-sum")


def _decentralized(shape: tuple[int, ...], epsilon: float) -> Plan:
    graph = Topology.random_regular(PARTIES, 6, seed=0)
    return _plan(_problem(shape, PARTIES), IPADMM(), epsilon, Eavesdropper(), rounds=60, topology=graph)


def _plan(problem: Problem, algorithm: Any, epsilon: float, observer: Observer, **settings: Any) -> Plan:
    target = EpsilonDelta(epsilon=epsilon, delta=DELTA)
    return plan(problem, algorithm, target=target, observer=observer, sampler=Seeded(0), **settings)


SETTINGS: tuple[tuple[str, str, Callable[[tuple[int, ...], float], Plan]], ...] = (
    ("central", "one curator holds the table", _central),
    ("federated", f"{PARTIES} clients, a server that sees sums only", _federated),
    ("decentralized", f"{PARTIES} peers on a graph of degree 6, no server", _decentralized),
)


def _digits() -> tuple[Array, Array, Array, Array]:
    """Rows of norm at most 1 with a constant column, labels +1 for even digits; the last ones are the test set."""
    digits = load_digits()
    rows = np.hstack([digits.X, np.ones((len(digits.X), 1))])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(digits.y % 2 == 0, 1.0, -1.0)
    train_rows = (len(rows) - TEST) // PARTIES * PARTIES
    return rows[:train_rows], labels[:train_rows], rows[-TEST:], labels[-TEST:]


def _exact(rows: Array, labels: Array) -> Array:
    """The model without noise: consensus ADMM run to convergence."""
    from consenso.privacy.noise import NoNoise

    problem = _problem(rows.shape, 1)
    made = plan(problem, DualConsensusADMM(step=64.0), rounds=300, noise=NoNoise(), sampler=Seeded(0))
    return run(made, Shards.build(problem, rows, labels, [0, len(rows)])).model
