"""IPADMM as Algorithm 1 has it, on 100 fully connected nodes, with noise by Theorem 6 with c_0 = 1.

    w = [ -grad + 2 dual + penalty sum_j (s_i + s_j) + eta w ] / (2 penalty degree + eta),   eta = eta_{k,r+1}     (13a)
    noise of standard deviation sigma 2 c_1 / (m (2 penalty degree + eta)),                   one record replaced

(18), inside a proof, prints eta_{k,r} in the denominator: a misprint, which the algorithm does not have.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.datasets import load_adult
from consenso.privacy.accountants import epsilon as epsilon_of
from consenso.privacy.events import Gaussian

NODES, PENALTY, DELTA = 100, 0.001, 1e-5
REGULARIZATION = 1e-4  # the paper's lambda, of which every node holds a share
STRENGTH = REGULARIZATION / NODES  # beside a node's mean loss
ROUNDS = 50
GROWTH = 0.05  # eta_{k,r} = GROWTH sqrt(k r)
CONSTANT = 1.0  # c_0 of Theorem 6


@cache
def records() -> tuple[Array, Array]:
    """Rows (nodes, records, features) and labels; shuffled, the few that do not divide evenly are left out."""
    adult = load_adult(preprocessing="paper", split=False)
    order = np.random.default_rng(0).permutation(len(adult.y))
    each = len(order) // NODES
    kept = order[: each * NODES]
    return adult.X[kept].reshape(NODES, each, -1), np.asarray(adult.y)[kept].reshape(NODES, each)


def risk(model: Array) -> float:
    """Empirical risk: the mean logistic loss over all records."""
    X, y = records()
    return float(np.logaddexp(0.0, -y * (X @ model)).mean())


def multiplier(epsilon: float, inner: int) -> float:
    """Sigma of Theorem 6."""
    return CONSTANT * math.sqrt(2 * ROUNDS * inner * math.log(1.25 / DELTA)) / epsilon


def train(*, epsilon: float, inner: int, seed: int) -> dict[str, Any]:
    """A run; infinite epsilon draws no noise. Risk of the mean of the nodes and of the first, and the true total."""
    X, y = records()
    each, features = X.shape[1:]
    rng = np.random.default_rng([seed, inner])
    w, said, dual = (np.zeros((NODES, features)) for _ in range(3))
    degree, sigma = NODES - 1, multiplier(epsilon, inner) if epsilon < math.inf else 0.0
    risks = []
    for k in range(1, ROUNDS + 1):
        pull = 2 * dual + PENALTY * (degree * said + said.sum(axis=0) - said)
        total = np.zeros_like(w)
        for r in range(1, inner + 1):
            near = GROWTH * math.sqrt(k * r)
            bottom = 2 * PENALTY * degree + near
            slopes = -y / (1 + np.exp(y * np.einsum("kmp,kp->km", X, w)))
            gradient = np.einsum("kmp,km->kp", X, slopes) / each + STRENGTH * w
            w = (pull - gradient + near * w) / bottom
            if sigma:
                w = w + rng.normal(size=w.shape) * sigma * 2 / (each * bottom)
            total += w
        said = total / inner
        dual -= PENALTY / 2 * (NODES * said - said.sum(axis=0))
        risks.append(risk(said.mean(axis=0)))
    return {"risk": risks[-1], "risks": risks, "node": risk(said[0]), "true": spent(epsilon, inner)}


def spent(epsilon: float, inner: int) -> float:
    """The true total of a run with a nominal epsilon: its steps are Gaussian mechanisms of multiplier sigma."""
    if epsilon == math.inf:
        return math.inf
    return epsilon_of(Gaussian(std=multiplier(epsilon, inner), sensitivity=math.sqrt(ROUNDS * inner)), DELTA)
