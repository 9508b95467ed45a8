"""What a round of a hub algorithm costs: beside a gradient pass, beside loops, in memory, and as parties are added."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from benchmarks.measure import Figure, best, seconds
from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.stateless_walk import StatelessWalk
from consenso.arrays import Array
from consenso.datasets import load_adult, load_mnist
from consenso.losses import Logistic, Softmax
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, NoPenalty
from consenso.runtime.local import LocalEngine
from consenso.runtime.plan import plan
from consenso.runtime.run import coins_of
from consenso.runtime.run import run as run_plan
from consenso.schedules import RandomWalk
from consenso.shards import Shards
from consenso.subproblems.batch import ROUNDING

MANY, WIDTH = 100_000, 64


def run() -> Iterator[Figure]:
    """All figures."""
    yield _pass_over_adult()
    yield _pass_over_mnist()
    yield _against_a_loop()
    yield _against_the_engine_party_by_party()
    yield _memory_of_a_million()
    yield _walk()
    yield from _growth()


def _rounds(
    problem: Problem, algorithm: Any, rows: Array, targets: Any, *, one_by_one: bool = False, **settings: Any
) -> Any:
    """A function that runs one round more."""
    made = plan(problem, algorithm, rounds=10_000, noise=GaussianNoise(multiplier=1.0), **settings)
    shards = Shards.build(problem, rows, targets, np.concatenate(([0], np.cumsum(problem.sizes))))
    engine = LocalEngine(stride=1, one_by_one=one_by_one)
    progress = engine.start(algorithm, made.setting, shards)
    rounds = engine.rounds(algorithm, made.setting, shards, progress, coins_of(made, progress))
    return lambda: next(rounds)


def _pass_over_adult() -> Figure:
    if "CONSENSO_DATA" in os.environ:
        adult = load_adult(preprocessing="paper", split=False)
        rows, labels = adult.X, adult.y
    else:
        rows, labels = _made_up(45_222, 104)
    problem = _problem([len(rows)], rows.shape[1])
    w = np.random.default_rng(0).normal(size=rows.shape[1])
    whole, bare = best(
        _rounds(problem, DualConsensusADMM(), rows, labels, trust="curator"),
        lambda: rows.T @ (-labels * expit(-labels * (rows @ w))),
        repeats=15,
    )
    return Figure("DualConsensusADMM by record, Adult, over a gradient pass", whole / bare, limit=1.5)


def _pass_over_mnist() -> Figure:
    if "CONSENSO_DATA" in os.environ:
        mnist = load_mnist()
        rows, digits = mnist.X.astype(np.float64), mnist.y.astype(np.int64)
    else:
        rows, labels = _made_up(60_000, 784)
        digits = (labels > 0).astype(np.int64)
    rows = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    problem = Problem(
        loss=Softmax(classes=10), regularizer=NoPenalty(), features=rows.shape[1], sizes=[len(rows)], row_bound=1.0
    )
    w, chosen = np.random.default_rng(0).normal(size=(rows.shape[1], 10)), np.eye(10)[digits]
    whole, bare = best(
        _rounds(problem, DualConsensusADMM(), rows, digits, trust="curator"),
        lambda: rows.T @ (softmax(rows @ w, axis=1) - chosen),
        repeats=5,
    )
    return Figure("DualConsensusADMM by record, MNIST softmax, over a gradient pass", whole / bare, limit=1.5)


def _against_a_loop() -> Figure:
    """The same arithmetic party by party in NumPy: prox of one logistic loss by Newton, noise, state."""
    rows, labels = _made_up(MANY, WIDTH)
    problem = _problem(np.ones(MANY, dtype=int), WIDTH, unit="user")
    (whole,) = best(_rounds(problem, ConsensusADMM(), rows, labels), repeats=3)
    rng, states, z, looped = np.random.default_rng(0), np.zeros((500, WIDTH)), np.zeros(WIDTH), 500

    def loop() -> Array:
        total = np.zeros(WIDTH)
        for i in range(looped):
            v = 2 * z - states[i]
            score, norm = float(rows[i] @ v), float(rows[i] @ rows[i])
            slope = -labels[i] / 2
            for _ in range(8):
                p = expit(-labels[i] * (score - norm * slope))
                slope -= (slope + labels[i] * p) / (1 + norm * p * (1 - p))
            increment = v - slope * rows[i] - z + rng.normal(scale=2.0, size=WIDTH)
            states[i] += increment
            total += increment
        return total

    return Figure(
        "a Python loop over 100,000 users, over a round of ConsensusADMM",
        seconds(loop) / looped * MANY / whole,
        limit=200,
        at_most=False,
    )


def _against_the_engine_party_by_party() -> Figure:
    """The library's own step for each user in turn, as a deployment makes it: checks, certificate, door, ledger."""
    rows, labels = _made_up(MANY, WIDTH)
    looped = 500
    several, few = (
        _problem(np.ones(MANY, dtype=int), WIDTH, unit="user"),
        _problem(np.ones(looped, int), WIDTH, unit="user"),
    )
    whole, apart = best(
        _rounds(several, ConsensusADMM(), rows, labels),
        _rounds(few, ConsensusADMM(), rows[:looped], labels[:looped], one_by_one=True),
        repeats=5,
    )
    return Figure("the engine, party by party, over a round of 100,000 users at once", apart / looped * MANY / whole)


MILLION = """
import resource
import numpy as np
from benchmarks.hub import _made_up, _problem, _rounds
from consenso.algorithms.consensus import ConsensusADMM
rows, labels = _made_up(1_000_000, 64)
step = _rounds(_problem(np.ones(1_000_000, dtype=int), 64, unit="user"), ConsensusADMM(), rows, labels)
step(); step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def _memory_of_a_million() -> Figure:
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=True)
    return Figure("peak memory of 1,000,000 users of 64 features, 2 rounds", float(done.stdout), "GB", limit=3.0)


def _walk() -> Figure:
    """A step of the walk in NumPy, with noise from NumPy's generator, over a compiled one.

    The compiled step draws noise in a second thread: with both cores busy elsewhere it takes almost twice as long.
    """
    users, steps, looped = 10_000, 200_000, 500
    rows, labels = _made_up(users, WIDTH)
    problem = _problem(np.ones(users, dtype=int), WIDTH, unit="user", regularizer=L1(strength=1e-3))
    shards = Shards.build(problem, rows, labels, np.arange(users + 1))
    walk, rng, share = StatelessWalk(), np.random.default_rng(0), 1.0 / users
    made = plan(
        problem, walk, rounds=steps, noise=GaussianNoise(multiplier=1.0), schedule=RandomWalk(), sampler=Seeded(0)
    )

    def loop() -> Array:
        z = np.zeros(WIDTH)
        for _ in range(looped):
            i = int(rng.integers(users))
            score, norm = float(rows[i] @ z), float(rows[i] @ rows[i])
            slope = -labels[i] / 2
            for _ in range(8):
                p = expit(-labels[i] * (score - norm * slope))
                slope -= (slope + labels[i] * p) / (1 + norm * p * (1 - p))
            x = z - slope * rows[i]
            # The certificate that the compiled step makes as well: the gradient at x, and rounding.
            gap = abs(slope + labels[i] * expit(-labels[i] * (rows[i] @ x)))
            residual = x - z
            if not gap + ROUNDING * (np.sqrt(x @ x) + np.sqrt(z @ z) + abs(slope)) <= walk.tolerance:
                raise ArithmeticError("a prox is not certified")
            if not np.isfinite(residual).all():
                raise ArithmeticError("a residual is not finite")
            v = z + share * (residual + rng.normal(scale=2.0, size=WIDTH))
            z = np.sign(v) * np.maximum(np.abs(v) - share * 1e-3, 0.0)
        return z

    whole, interpreted = best(lambda: run_plan(made, shards), loop, repeats=15)
    return Figure(
        "a NumPy step of the walk, over a compiled one",
        interpreted / looped / (whole / steps),
        limit=50,
        at_most=False,
        note=f"{1e6 * whole / steps:.2f} microseconds a step",
    )


def _growth() -> Iterator[Figure]:
    """Exponents of the time of a round in users and in features, by a line through logarithms."""
    users = (1_000, 10_000, 100_000, 1_000_000)
    times = []
    for count in users:
        rows, labels = _made_up(count, 16)
        problem = _problem(np.ones(count, dtype=int), 16, unit="user")
        times += best(_rounds(problem, ConsensusADMM(), rows, labels), repeats=3)
    yield Figure("exponent of the time in users, 1e3 to 1e6", _slope(users, times), limit=1.15)
    features = (8, 64, 512, 2048)
    times = []
    for count in features:
        rows, labels = _made_up(10_000, count)
        problem = _problem(np.ones(10_000, dtype=int), count, unit="user")
        times += best(_rounds(problem, ConsensusADMM(), rows, labels), repeats=3)
    yield Figure("exponent of the time in features, 8 to 2048", _slope(features, times), limit=1.15)


def _slope(sizes: tuple[int, ...], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def _problem(sizes: Any, features: int, **changes: Any) -> Problem:
    settings = {"loss": Logistic(), "regularizer": NoPenalty(), "row_bound": 1.0}
    return Problem(features=features, sizes=np.asarray(sizes), **(settings | changes))


def _made_up(count: int, features: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count, features))
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0)
