"""Tables with many columns: a step against a product with the non-zeros, and how time and memory grow with columns."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from benchmarks.measure import Figure, best, processor_seconds
from consenso.algorithms.averaging.centring import Centring, sum_gradients
from consenso.algorithms.averaging.directions import start_directions, sum_range
from consenso.algorithms.dual_averaging import DualAveraging
from consenso.algorithms.preconditioning.whitening import Slopes
from consenso.engine.run import run as run_plan
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2, Unpenalized
from consenso.shards import Shards
from consenso.solvers.wide import DIRECTIONS

RECORDS, WORDS, ROUNDS = 20_000, 30, 12
COLUMNS = (2_000, 20_000, 200_000, 2_000_000)


def run() -> Iterator[Figure]:
    """Ratios and slopes, measured in one run."""
    problem, matrix, signs = _table(10_000)
    cohort, w = Shards.from_parties(problem, [(matrix, signs)]).cohort(), np.zeros(10_000)
    centring = Centring(np.zeros(10_000), 0.7)
    ours, product = best(
        lambda: sum_gradients(cohort, w, Slopes(0.0, 1.0), centring),
        lambda: matrix.T @ (matrix @ w),
    )
    yield Figure("exact gradient of a step over two sparse products, 20000 x 10000", ours / product, limit=3.0)
    vectors = start_directions(10_000, DIRECTIONS, 1)
    ours, product = best(lambda: sum_range(cohort, centring, vectors), lambda: matrix.T @ (matrix @ vectors))
    yield Figure(f"exact pass for {DIRECTIONS} directions over as many sparse products", ours / product, limit=8.0)
    taken, held = [], []
    for columns in COLUMNS:
        problem, matrix, signs = _table(columns)
        shards = Shards.from_parties(problem, [(matrix, signs)])
        noise = {name: GaussianNoise(multiplier=1.0) for name in ("mean", "squares", "gradient")}
        made = plan(problem, DualAveraging(), rounds=ROUNDS, noise=noise, sampler=Seeded(0), trust="curator")
        taken.append(min(processor_seconds(lambda made=made, shards=shards: run_plan(made, shards)) for _ in range(2)))
        tracemalloc.start()
        run_plan(made, shards)
        held.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        yield Figure(f"{ROUNDS} rounds, {columns} columns", taken[-1], "s", note=f"{held[-1] / 2**20:.0f} MB")
    # The steepest part of a curve on logarithmic axes; where columns are few, the non-zeros are what costs.
    for name, figures in (("processor time", taken), ("memory", held)):
        slope = float(np.max(np.diff(np.log(figures)) / np.diff(np.log(COLUMNS))))
        yield Figure(f"slope of {name} in columns, {COLUMNS[0]} to {COLUMNS[-1]}", slope, limit=1.1)


def _table(columns: int) -> tuple[Problem, sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    words = rng.integers(columns, size=RECORDS * WORDS)
    values = np.full(words.size, WORDS**-0.5 / 2)
    matrix = sparse.csr_array((values, (np.repeat(np.arange(RECORDS), WORDS), words)), (RECORDS, columns))
    problem = Problem(
        loss=Logistic(),
        regularizer=Unpenalized(inner=L2(strength=1e-6), last=1),
        features=columns,
        sizes=np.array([RECORDS]),
        row_bound=1.0,
    )
    return problem, matrix, rng.choice([-1.0, 1.0], size=RECORDS)
