"""What the transcriptions of papers share: small silos, seeded draws and a Newton method.

A transcription is the pseudo-code of the paper in plain NumPy. It takes nothing from the algorithm that it checks: the
data are generated here, and the noise is drawn again from the seed, at the scale that the paper says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.release import COIN_STREAM, HUB
from consenso.privacy.samplers import Key, Seeded
from consenso.problem import Problem
from consenso.regularizers import L1
from consenso.shards import Shards
from consenso.topology import Topology

SEED = 7
SIZES = np.array([4, 7, 5, 6, 4, 5])
# Unequal degrees: 3, 2, 2, 3, 2, 2.
GRAPH = Topology.from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 3)])

with_and_without_noise = pytest.mark.parametrize("multiplier", [0.0, 0.4], ids=["exact", "noisy"])


def noise_of(multiplier: float, kind: Any = GaussianNoise) -> Any:
    return kind(multiplier=multiplier) if multiplier else NoNoise()


def silos(loss: Any, regularizer: Any, sizes: Any = SIZES, *, features: int = 3, **options: Any) -> Any:
    """A problem, its shards and each party's rows (of length 1) and targets."""
    rng, truth, parties = np.random.default_rng(0), np.linspace(1.0, -0.5, features), []
    for size in sizes:
        rows = rng.normal(size=(size, features))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        targets = rows @ truth + 0.3 * rng.normal(size=size)
        parties.append((rows, np.where(targets > 0, 1.0, -1.0) if loss.targets == "sign" else targets))
    bound = {"target_bound": 3.0} if loss.targets == "real" else {}
    settings = {"features": features, "sizes": np.asarray(sizes), "row_bound": 1.0} | bound | options
    problem = Problem(loss=loss, regularizer=regularizer, **settings)
    return problem, Shards.from_parties(problem, parties), parties


def curator(loss: Any, *, records: int = 40, **options: Any) -> Any:
    """One party's table with columns of different sizes: the problem, its shards, the rows and the targets."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(records, 3)) * np.array([1.0, 0.4, 0.1])
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    targets = rng.integers(loss.outputs, size=records) if loss.outputs > 1 else rng.choice([-1.0, 1.0], size=records)
    settings = {"regularizer": L1(strength=0.01), "features": 3, "sizes": np.array([records]), "row_bound": 1.0}
    problem = Problem(loss=loss, **(settings | options))
    return problem, Shards.from_parties(problem, [(rows, targets)]), rows, targets


def drawn(kind: str, round_: int, parties: Any, size: int, scale: Any, *, release: int = 0, repetition: int = 0) -> Any:
    """Noise of a kind ("gaussian", "laplace", "gamma_norm") as each party adds it, (parties, size)."""
    numbers = np.atleast_1d(np.asarray(parties))
    if not np.any(scale):
        return np.zeros((len(numbers), size))
    key = Key(parties=numbers, round=round_, release=release, repetition=repetition)
    return getattr(Seeded(SEED), kind)(np.zeros((len(numbers), size)), scale, key, sensitivity=1.0)


def drawn_on_sum(round_: int, size: int, std: float, *, release: int = 0) -> Any:
    """Gaussian noise as a curator adds it to a sum, (size,)."""
    return drawn("gaussian", round_, HUB, size, std, release=release)[0]


def sampled_records(round_: int, party: int, records: int, rate: float) -> Any:
    """Which records of a party the hidden coins of a round take, (records,)."""
    key = Key(parties=np.array([party]), round=round_, release=0, repetition=0, stream=COIN_STREAM)
    return Seeded(SEED).uniform(key, records)[0] < rate


def soft(v: Any, threshold: Any) -> Any:
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)


def logistic_gradient(rows: Any, targets: Any, w: Any) -> Any:
    """Of sum log(1 + exp(-target <row, w>))."""
    return rows.T @ (-targets / (1 + np.exp(targets * (rows @ w))))


def record_gradients(loss: Any, rows: Any, targets: Any, u: Any) -> Any:
    """(records, dim): the array that the library never makes. Logistic loss, or softmax of several outputs."""
    scores = rows @ u.reshape(rows.shape[1], -1)
    if loss.outputs == 1:
        slopes = -targets[:, None] / (1 + np.exp(targets[:, None] * scores))
    else:
        slopes = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) - np.eye(loss.outputs)[targets]
    return (rows[:, :, None] * slopes[:, None, :]).reshape(len(rows), -1)


def minimise_logistic(rows: Any, targets: Any, weight: float, curvature: Any, pull: Any) -> Any:
    """argmin weight * sum log(1 + exp(-target <row, w>)) + <w, curvature w>/2 - <pull, w>, by Newton's method."""
    w, square = np.zeros(len(pull)), curvature * np.eye(len(pull)) if np.ndim(curvature) == 0 else curvature
    for _ in range(30):
        p = 1 / (1 + np.exp(targets * (rows @ w)))
        gradient = -weight * rows.T @ (targets * p) + square @ w - pull
        w = w - np.linalg.solve(weight * rows.T @ ((p * (1 - p))[:, None] * rows) + square, gradient)
        if np.abs(gradient).max() < 1e-15:
            break
    return w


def clean(values: Any, noise: float) -> Any:
    """Eigenvalues l_j - 2 s^2 mean over i of d / (d^2 + s^2 / p), d = l_j - l_i, s^2 = p noise^2 / 2; none below 0."""
    p, square = len(values), len(values) * noise**2 / 2
    if not noise:
        return np.maximum(values, 0)
    pushed = [sum((one - other) / ((one - other) ** 2 + square / p) for other in values) / p for one in values]
    return np.array([max(0.0, one - 2 * square * push) for one, push in zip(values, pushed, strict=True)])
