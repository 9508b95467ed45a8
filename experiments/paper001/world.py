"""The generalised lasso on which paper 001 is tried: a step function seen through random rows, D takes differences.

    minimise   mean over users of huber(<row_i, x> - target_i) + (convexity / 2) |x|^2 + strength |D x|_1

One user holds one record. The squared term is part of every user's loss and makes the iteration contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from consenso.algorithms.gradient_admm import GradientADMM, Hub
from consenso.arrays import Array
from consenso.datasets import Dataset, make_generalised_lasso
from consenso.losses import Huber
from consenso.problem import Problem
from consenso.regularizers import L2, NoPenalty
from consenso.shards import Shards

DATA_SEED, FEATURES, PIECES, LABEL_NOISE = 1, 20, 4, 0.1
THRESHOLD, TARGET_BOUND, STRENGTH = 0.5, 4.0, 0.002
STEP, PENALTY = 0.1, 10.0
DELTA = 1e-5


@dataclass(frozen=True, kw_only=True)
class World:
    """A problem with its data, and the algorithm for it."""

    problem: Problem
    shards: Shards
    algorithm: GradientADMM
    data: Dataset

    def objective(self, x: Array) -> float:
        """The exact objective: what an experiment may look at, and a deployment may not."""
        jumps = np.abs(np.diff(x)).sum()
        return float(self.shards.cohort().value(x).mean() + self.problem.regularizer.value(x) + STRENGTH * jumps)

    def gradient(self, user: int, x: Array) -> Array:
        """Of one user's loss, without the squared term, which the algorithm adds itself."""
        row = self.data.X[user]
        slope: Array = row * np.clip(row @ x - self.data.y[user], -THRESHOLD, THRESHOLD)
        return slope

    def optimum(self) -> Array:
        """By the same iteration with everybody's gradient and no noise, until it stands still."""
        hub = Hub(x=np.zeros(FEATURES), dual=np.zeros(FEATURES - 1))
        for _ in range(100_000):
            mean = self.shards.cohort().gradient(hub.x).mean(axis=0)
            x, dual = self.algorithm.advance(self.problem, hub, mean)
            still = float(np.abs(x - hub.x).max()) < 1e-13
            hub = Hub(x=x, dual=dual)
            if still:
                break
        return hub.x


@lru_cache(maxsize=8)
def world(users: int, convexity: float) -> World:
    """So many users with one record each."""
    data = make_generalised_lasso(
        seed=DATA_SEED, records=users, test_records=1, features=FEATURES, pieces=PIECES, noise=LABEL_NOISE
    )
    problem = Problem(
        loss=Huber(threshold=THRESHOLD),
        regularizer=L2(strength=convexity) if convexity else NoPenalty(),
        features=FEATURES,
        sizes=np.ones(users, dtype=np.int64),
        row_bound=1.0,
        target_bound=TARGET_BOUND,
        unit="user",
        adjacency="replace-one",
    )
    algorithm = GradientADMM.generalised_lasso(data.structure, strength=STRENGTH, penalty=PENALTY, step=STEP)
    return World(
        problem=problem,
        shards=Shards.build(problem, data.X, data.y, np.arange(users + 1)),
        algorithm=algorithm,
        data=data,
    )
