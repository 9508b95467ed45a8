"""What a peer round costs: an inner step of IPADMM, and a round on a sparse graph of 10,000 nodes.

Run `python -m benchmarks.peers`; with CONSENSO_DATA set the first figures are of Adult, else of a table of its shape.
Rounds are whole rounds of the in-process engine: gradient, noise, ledger, prox, neighbour sums, duals. Ratios are taken
between the best CPU times of repetitions that take turns, with one BLAS thread: a busy machine lengthens the time on
the clock and makes waiting threads spin, and neither is work. The gradient pass of a reference is the faster of two:
NumPy's two products, and the compiled kernels that the algorithms themselves use, which beat them on rows this short.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from benchmarks.measure import Figure
from consenso.algorithms.ipadmm import IPADMM
from consenso.algorithms.networked import NetworkedADMM
from consenso.arrays import Array
from consenso.datasets import load_adult
from consenso.engine.in_process import InProcessRun
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.topology import Topology

SILOS, INNER_STEPS, MOST_INNER_RATIO = 100, 10, 2.0
NODES, DEGREE, FEATURES, RECORDS, MOST_ROUND_RATIO = 10_000, 6, 100, 10, 5.0
ADULT_ROWS, ADULT_FEATURES = 45_222, 104
REPETITIONS = 12


def run() -> list[Figure]:
    """Inner steps on Adult, and rounds on a sparse graph."""
    return [*_inner_steps(), *_sparse_rounds()]


def _inner_steps() -> Iterator[Figure]:
    rows, labels, source = _adult()
    sizes = np.full(SILOS, len(labels) // SILOS)
    sizes[: len(labels) % SILOS] += 1
    w = 0.1 * np.random.default_rng(1).normal(size=rows.shape[1])
    options = {"penalty": 1e-3, "proximity": 0.1, "inner_steps": INNER_STEPS}
    for form, algorithm in (
        ("", IPADMM(**options)),
        (", clipped, at the average", IPADMM(clip=0.7, at_average=True, averaging=0.5, **options)),
    ):
        rounds, shards = _rounds(algorithm, rows, labels, sizes, Topology.complete(SILOS))
        whole, bare = _best(lambda rounds=rounds: next(rounds), _passes(rows, labels, w, shards), INNER_STEPS)
        name = f"one inner step of IPADMM{form}, {SILOS} nodes, {source}, over a gradient pass"
        yield Figure(name, whole / INNER_STEPS / bare, limit=MOST_INNER_RATIO)


def _sparse_rounds() -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(NODES * RECORDS, FEATURES))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = rng.choice([-1.0, 1.0], size=len(rows))
    topology = Topology.random_regular(NODES, DEGREE, seed=0)
    models, w = rng.normal(size=(NODES, FEATURES)), rng.normal(size=FEATURES)
    sizes = np.full(NODES, RECORDS)
    options = {"penalty": 0.05, "at_average": True, "averaging": 0.5}
    for algorithm in (IPADMM(proximity=0.2, **options), NetworkedADMM(step=5.0, proximal=True, **options)):
        rounds, shards = _rounds(algorithm, rows, labels, sizes, topology)
        whole, bare = _best(lambda rounds=rounds: next(rounds), _passes(rows, labels, w, shards), 4)
        product = min(_time(lambda: topology.adjacency @ models) for _ in range(9))
        kind = type(algorithm).__name__
        name = f"a round of {kind}, {NODES} nodes of degree {DEGREE}, over neighbour product and gradient pass"
        yield Figure(name, whole / (product + bare), limit=MOST_ROUND_RATIO)


def _adult() -> tuple[Array, Array, str]:
    if "CONSENSO_DATA" in os.environ:
        adult = load_adult(preprocessing="paper", split=False)
        return adult.X, adult.y, "Adult"
    rng = np.random.default_rng(0)
    rows = (rng.random((ADULT_ROWS, ADULT_FEATURES)) < 14 / ADULT_FEATURES).astype(np.float64)
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return rows, np.where(rows @ rng.normal(size=ADULT_FEATURES) > 0, 1.0, -1.0), "Adult's shape"


def _gradient_pass(rows: Array, labels: Array, w: Array) -> Array:
    """The least that a gradient of the logistic loss costs: two products and the slopes."""
    slopes = -labels * expit(-labels * (rows @ w))
    gradient: Array = rows.T @ slopes
    return gradient


def _passes(rows: Array, labels: Array, w: Array, shards: Shards) -> list[Callable[[], Any]]:
    """Ways to compute a gradient of the same table."""
    models, cohort = np.tile(w, (len(shards.parties), 1)), shards.cohort()
    return [lambda: _gradient_pass(rows, labels, w), lambda: cohort.gradient(models)]


def _rounds(algorithm: Any, rows: Array, labels: Array, sizes: Any, topology: Topology) -> tuple[Iterator[int], Shards]:
    """Rounds of a run, one after the other, and what it runs on."""
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=1e-4), features=rows.shape[1], sizes=sizes, row_bound=1.0
    )
    shards = Shards.build(problem, rows, labels, np.concatenate([[0], np.cumsum(sizes)]))
    made = plan(problem, algorithm, rounds=100, noise=GaussianNoise(multiplier=30.0), topology=topology)
    return InProcessRun(made, shards).rounds(), shards


def _best(work: Callable[[], Any], references: list[Callable[[], Any]], count: int) -> tuple[float, float]:
    """Best times of the work and of the fastest reference, which is timed `count` calls at a time, about as long.

    One call each is not counted.
    """

    def repeated(call: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: [call() for _ in range(count)]

    with threadpool_limits(1, user_api="blas"):
        times = [[_time(call) for call in (work, *map(repeated, references))] for _ in range(REPETITIONS + 1)]
    whole, *others = np.min(times[1:], axis=0)
    return float(whole), float(min(others)) / count


def _time(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
