"""Parties as a batch axis: what a thousand parties cost compared with one stacked matrix and with a loop.

Run `python -m benchmarks.parties`. Ratios are taken between the best of several repetitions that take turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from threadpoolctl import threadpool_limits

from benchmarks.measure import Figure, best
from consenso.losses import Logistic
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.shards import Shards

PARTIES, RECORDS, FEATURES = 1000, 45, 104  # Adult's rows after one-hot encoding, cut into a thousand silos
LOOPED, STEP, ACCURACY = 50, 8.0, 1e-10
MOST_GRADIENT_RATIO, LEAST_PROX_RATIO = 3.0, 20.0


def run() -> list[Figure]:
    """Measure: name, seconds, seconds of the reference, ratio, its limit if any and whether it is kept."""
    rng = np.random.default_rng(0)
    shards = _adult_shaped(rng)
    return [_gradient(shards, rng), *_prox(shards, rng)]


def _adult_shaped(rng: np.random.Generator) -> Shards:
    rows = PARTIES * RECORDS
    X = (rng.random((rows, FEATURES)) < 14 / FEATURES).astype(np.float64)
    X[:, -1] = 1.0
    X /= np.sqrt(FEATURES)
    y = np.where(X @ rng.normal(size=FEATURES) + 0.2 * rng.normal(size=rows) > 0, 1.0, -1.0)
    sizes = np.full(PARTIES, RECORDS)
    problem = Problem(loss=Logistic(), regularizer=NoPenalty(), features=FEATURES, sizes=sizes, row_bound=1.0)
    return Shards.build(problem, X, y, np.arange(PARTIES + 1) * RECORDS)


def _gradient(shards: Shards, rng: np.random.Generator) -> Figure:
    stacked = rng.normal(size=(PARTIES * RECORDS, FEATURES))
    w, r = rng.normal(size=FEATURES), rng.normal(size=PARTIES * RECORDS)
    x, cohort = rng.normal(size=(PARTIES, FEATURES)), shards.cohort()
    batched, plain = best(lambda: cohort.gradient(x), lambda: (stacked @ w, stacked.T @ r), repeats=31)
    ratio = batched / plain
    name = "gradients of 1000 parties, over X @ w and X.T @ r"
    return Figure(name, ratio, limit=MOST_GRADIENT_RATIO)


def _prox(shards: Shards, rng: np.random.Generator) -> list[Figure]:
    v = 0.1 * rng.normal(size=(PARTIES, FEATURES))
    tables = [_table(shards, i) for i in range(LOOPED)]
    cohort = shards.cohort()
    parties = np.concatenate((np.arange(1, PARTIES), [0]))

    def loop() -> list[Any]:
        return [_by_scipy(*table, v[i], "L-BFGS-B", {"ftol": 0.0}) for i, table in enumerate(tables)]

    def default_loop() -> list[Any]:
        return [_by_scipy(*table, v[i], "BFGS", {}) for i, table in enumerate(tables)]

    # A cohort in another order is made anew each time, so that nothing is left over from the call before.
    # BLAS threads slow a loop of small products down; the loop is measured with and without them.
    def quiet_loop() -> list[Any]:
        with threadpool_limits(1, user_api="blas"):
            return loop()

    again, anew, looped, quiet, default = best(
        lambda: cohort.prox(v, STEP),
        lambda: shards.cohort(parties).prox(v, STEP),
        loop,
        quiet_loop,
        default_loop,
        repeats=9,
    )
    looped, quiet = looped * PARTIES / LOOPED, quiet * PARTIES / LOOPED
    name = "a loop of L-BFGS-B, over the local prox of 1000 parties"
    return [
        Figure(name, looped / again, limit=LEAST_PROX_RATIO, at_most=False),
        Figure(f"{name}, BLAS held to one thread", quiet / again),
        Figure("a loop of scipy's default minimizer, over the same", default * PARTIES / LOOPED / again),
        Figure(f"{name}, first call, which also multiplies the rows of each party", looped / anew),
    ]


def _table(shards: Shards, party: int) -> tuple[Any, Any, float]:
    cohort = shards.cohort(party)
    return cohort._rows.matrix, cohort._targets, float(cohort.scales[0])


def _by_scipy(X: Any, y: Any, scale: float, v: Any, method: str, options: dict[str, Any]) -> Any:
    def objective(x: Any) -> tuple[float, Any]:
        margins = y * (X @ x)
        away = x - v
        value = scale * np.logaddexp(0.0, -margins).sum() + away @ away / (2 * STEP)
        return value, X.T @ (-scale * y * expit(-margins)) + away / STEP

    # To the accuracy that our prox certifies: F is 1/STEP-strongly convex, so |x - x*| <= STEP |gradient|.
    return minimize(objective, v, jac=True, method=method, options={"gtol": ACCURACY / STEP, **options}).x
