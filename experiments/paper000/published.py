"""Figure 1 as the public code ran it: federated private ADMM and proximal DP-SGD on the lasso, flaws included.

    ADMM   for each of `SAMPLE` draws i, with replacement:  x = prox of user i at 2 z - u_i
                                                            u_i <- u_i + relaxation (2 clipped(x - z) + noise)
           z <- shrink(z + (sum of the changes of u) / n, 2 kappa step / assumed n)
    SGD    g = sum over the draws of <a, z> - b times a, shortened as a whole, plus noise
           z <- shrink(z - step g / assumed n, kappa step / assumed n)

The noise is 2 clip^2 K / (rho n^2) times a standard normal: a variance, used as a standard deviation. The score of a
run is the least of its K objectives on the test set. Draws are made in the order of the public code, so that its seeds
give its numbers. Nothing here is private, and none of it is used by the package.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.datasets import Dataset, make_lasso, make_sphere_lasso
from experiments.paper000.claims import code_budget, code_noise

Law = Literal["code", "sphere"]

DATA_SEED = 18
FEATURES, SUPPORT, LABEL_NOISE = 64, 8, 0.1
ASSUMED_USERS = 1000  # what the noise and the thresholds are made for; the code trains on 800 of them
ITERATIONS, SAMPLE, DELTA = 1000, 100, 1e-6
ADMM_RELAXATION, ADMM_STEP, ADMM_CLIP = 0.464159, 1.584893, 1.6
SGD_STEP, SGD_CLIP = 0.31, 13.0
START = 10.0  # times kappa
TRAINING: dict[Law, int] = {"code": 800, "sphere": 1000}  # users whose records are trained on


@lru_cache(maxsize=2)
def data(law: Law) -> Dataset:
    """The draw of the public code, or one with the rows of the text."""
    make = make_lasso if law == "code" else make_sphere_lasso
    return make(seed=DATA_SEED, records=ASSUMED_USERS, features=FEATURES, support=SUPPORT, noise=LABEL_NOISE)


@lru_cache(maxsize=2)
def cross_validated(law: Law) -> tuple[float, Array]:
    """Kappa and the coefficients of scikit-learn's LassoCV on the private data, as the public code chooses them."""
    from sklearn.linear_model import LassoCV

    drawn = data(law)
    fitted = LassoCV().fit(drawn.X, drawn.y)
    return float(fitted.alpha_), fitted.coef_


def objective(X: Array, y: Array, kappa: float, model: Array) -> float:
    """Mean squared error plus kappa |model|_1: the public code has no factor 1/2, which LassoCV has."""
    residuals = X @ model - y
    return float(residuals @ residuals / len(y) + kappa * np.abs(model).sum())


def levels(*, law: Law) -> dict[str, float]:
    """What needs no noise: kappa, and the test objectives of the zero model and of LassoCV."""
    drawn, (kappa, coefficients) = data(law), cross_validated(law)
    test = (drawn.X_test, drawn.y_test, kappa)
    return {
        "kappa": kappa,
        "zero": objective(*test, np.zeros(FEATURES)),
        "exact": objective(*test, coefficients),
        "users": len(drawn.y),
        "row norm": float(np.linalg.norm(drawn.X, axis=1).mean()),
    }


def admm(*, law: Law, epsilon: float, seed: int) -> dict[str, float]:
    """One run of private ADMM at a nominal epsilon: the best, the last and the averaged test objective."""
    drawn, (kappa, _) = data(law), cross_validated(law)
    X, y, users, rng = drawn.X, drawn.y, len(drawn.y), np.random.default_rng(seed)
    norms = np.einsum("ij,ij->i", X, X)
    noise = code_noise(rho=code_budget(epsilon, DELTA), clip=ADMM_CLIP, rounds=ITERATIONS, users=ASSUMED_USERS)
    z, u = np.full(FEATURES, START * kappa), np.zeros((users, FEATURES))
    path = np.empty((ITERATIONS, FEATURES))
    for iteration in range(ITERATIONS):
        drawn_users = rng.integers(users, size=SAMPLE)
        normals = rng.normal(size=(SAMPLE, FEATURES))
        total = np.zeros(FEATURES)
        for turn in _turns(drawn_users):  # whoever was drawn twice acts twice, one after the other
            who = drawn_users[turn]
            points = 2 * z - u[who]
            residuals = (np.einsum("ij,ij->i", X[who], points) - y[who]) / (1 / ADMM_STEP + norms[who])
            moved = _shortened(points - residuals[:, None] * X[who] - z, ADMM_CLIP)
            change = ADMM_RELAXATION * (2 * moved + noise * normals[turn])
            u[who] += change
            total += change.sum(axis=0)
        z = _shrunk(z + total / users, 2 * kappa * ADMM_STEP / ASSUMED_USERS)
        path[iteration] = z
    return _scores(drawn, kappa, path)


def sgd(*, law: Law, epsilon: float, seed: int) -> dict[str, float]:
    """One run of proximal DP-SGD at a nominal epsilon."""
    drawn, (kappa, _) = data(law), cross_validated(law)
    X, y, users, rng = drawn.X, drawn.y, len(drawn.y), np.random.default_rng(seed)
    noise = code_noise(rho=code_budget(epsilon, DELTA), clip=SGD_CLIP, rounds=ITERATIONS, users=ASSUMED_USERS)
    z, path = np.full(FEATURES, START * kappa), np.empty((ITERATIONS, FEATURES))
    for iteration in range(ITERATIONS):
        who = rng.integers(users, size=SAMPLE)
        gradient = _shortened((X[who].T @ (X[who] @ z - y[who]))[None], SGD_CLIP)[0]
        gradient = gradient + noise * rng.normal(size=FEATURES)
        z = _shrunk(z - SGD_STEP * gradient / ASSUMED_USERS, kappa * SGD_STEP / ASSUMED_USERS)
        path[iteration] = z
    return _scores(drawn, kappa, path)


def _scores(drawn: Dataset, kappa: float, path: Array) -> dict[str, float]:
    test = (drawn.X_test, drawn.y_test, kappa)
    scores = [objective(*test, z) for z in path]
    late = path[len(path) // 2 :].mean(axis=0)
    return {"best": min(scores), "last": scores[-1], "averaged": objective(*test, late), "at": int(np.argmin(scores))}


def _turns(drawn: IntArray) -> list[IntArray]:
    """Places of first draws, of second draws, and so on."""
    order = np.argsort(drawn, kind="stable")
    _, first, inverse = np.unique(drawn[order], return_index=True, return_inverse=True)
    turn = np.empty(len(drawn), dtype=np.int64)
    turn[order] = np.arange(len(drawn)) - first[inverse]
    return [np.flatnonzero(turn == k) for k in range(turn.max() + 1)]


def _shortened(rows: Array, length: float) -> Array:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, length / np.maximum(norms, 1e-300)))


def _shrunk(z: Array, threshold: float) -> Array:
    return np.sign(z) * np.maximum(np.abs(z) - threshold, 0.0)
