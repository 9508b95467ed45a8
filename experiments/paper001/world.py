"""The generalised lasso on which paper 001 is tried: a step function seen through random rows, D takes differences.

    minimise   mean over users of huber(<row_i, x> - target_i) + (convexity / 2) |x|^2 + strength |D x|_1

One user holds one record. The squared term is part of every user's loss and makes the iteration contract. The
constraint is A x = y with A = D / (its smallest singular value), and the strength of |y|_1 is scaled back: the same
problem, with singular values of at least 1, as the printed constants need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from consenso.algorithms.gradient_admm import GradientADMM, split_squared_term
from consenso.arrays import Array
from consenso.datasets import Dataset, make_generalised_lasso
from consenso.losses import Huber
from consenso.problem import Problem
from consenso.regularizers import L2, NoPenalty
from consenso.shards import Shards

DATA_SEED, FEATURES, PIECES, LABEL_NOISE = 1, 20, 4, 0.1
THRESHOLD, TARGET_BOUND, STRENGTH = 0.5, 4.0, 0.002
STEP, PENALTY = 0.02, 1.25
DELTA = 1e-5


@dataclass(frozen=True, kw_only=True)
class World:
    """A problem with its data, and the algorithm for it."""

    problem: Problem
    shards: Shards
    algorithm: GradientADMM
    data: Dataset
    strength: float

    def objective(self, x: Array) -> float:
        """The exact objective: what an experiment may look at, and a deployment may not."""
        jumps = np.abs(np.diff(x)).sum()
        return float(self.shards.cohort().value(x).mean() + self.problem.regularizer.value(x) + self.strength * jumps)

    def gradient(self, user: int, x: Array) -> Array:
        """Of one user's loss, without the squared term, which the algorithm adds itself."""
        row = self.data.X[user]
        slope: Array = row * np.clip(row @ x - self.data.y[user], -THRESHOLD, THRESHOLD)
        return slope

    @cached_property
    def best(self) -> float:
        """The least objective, from jumps that are split into their positive and negative parts."""
        from scipy.optimize import minimize

        X, y, convexity = self.data.X, self.data.y, split_squared_term(self.problem.regularizer)[0]

        def value(parts: Array) -> tuple[float, Array]:
            level, up, down = parts[0], parts[1:FEATURES], parts[FEATURES:]
            x = level + np.concatenate([[0.0], np.cumsum(up - down)])
            slopes = np.clip(X @ x - y, -THRESHOLD, THRESHOLD)
            gradient = X.T @ slopes / len(y) + convexity * x
            later = np.cumsum(gradient[::-1])[::-1]  # of everything to the right of a jump
            smooth = self.objective(x) - self.strength * float(np.abs(up - down).sum())
            pulled = np.concatenate([[later[0]], self.strength + later[1:], self.strength - later[1:]])
            return smooth + self.strength * float((up + down).sum()), pulled

        bounds = [(None, None)] + [(0.0, None)] * (2 * FEATURES - 2)
        options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-12}
        start = np.zeros(2 * FEATURES - 1)
        return float(minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun)


@lru_cache(maxsize=8)
def world(users: int, convexity: float, strength: float = STRENGTH) -> World:
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
        unit="party",
        adjacency="replace-one",
    )
    structure = np.asarray(data.structure, dtype=np.float64)
    smallest = float(np.linalg.svd(structure, compute_uv=False)[-1])
    algorithm = GradientADMM.generalised_lasso(
        structure / smallest, strength=strength * smallest, penalty=PENALTY, step=STEP
    )
    return World(
        problem=problem,
        shards=Shards.build(problem, data.X, data.y, np.arange(users + 1)),
        algorithm=algorithm,
        data=data,
        strength=strength,
    )
