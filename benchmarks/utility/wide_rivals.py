"""Rivals on tables with many columns: scores of the test part at every setting of a grid, for one draw of noise.

    descent                 noisy full-batch gradient descent, the last iterate or the mean of the later half
    objective perturbation  Redberg, Koskela and Wang 2023; the least penalty that its noise allows
    Frank-Wolfe             Talwar, Thakurta and Zhang 2015, over an L1 ball; corners chosen with Gumbel noise
    dual averaging          centred and sparse, with constants chosen on tables of words: what the default grew out of

One record is added or removed, the number of records is public, and accounting is exact. Frank-Wolfe is given the
largest entry of the table, which is private: it favours it. Rows are those of `Made.rows_with_constant`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

from benchmarks.utility.classical import multiplier
from benchmarks.utility.wide_tables import Made
from consenso.arrays import Array

DELTA = 1e-5
CURVATURE = 0.25  # of the logistic loss
Scores = Callable[[Made, tuple[Any, ...], float, int], Array]


def descend(table: Made, grid: tuple[Any, ...], epsilon: float, seed: int) -> Array:
    """Settings: steps, rate, clip, and whether the later half is averaged."""
    rng, rows = np.random.default_rng(seed), table.rows_with_constant.astype(np.float32)
    A, b = rows[: table.records], table.signs[: table.records, None].astype(np.float32)
    lengths = np.sqrt(np.asarray((A * A).sum(axis=1)).reshape(-1, 1))
    runs = list(dict.fromkeys(setting[:3] for setting in grid))
    steps, rates, clips = (np.array(each, dtype=np.float32) for each in zip(*runs, strict=True))
    noise = clips * np.sqrt(steps) * multiplier(epsilon, DELTA)
    w = np.zeros((A.shape[1], len(runs)), dtype=np.float32)
    late = np.zeros_like(w)
    for step in range(int(steps.max())):
        going = np.flatnonzero(step < steps)
        slopes = -b * expit(-b * (A @ w[:, going]))
        slopes *= np.minimum(1.0, clips[going] / np.maximum(np.abs(slopes) * lengths, 1e-9))
        noisy = A.T @ slopes + rng.standard_normal(size=(len(w), len(going)), dtype=np.float32) * noise[going]
        w[:, going] -= rates[going] / table.records * noisy
        late[:, going] += w[:, going] * (step >= steps[going] // 2)
    models = {False: w, True: late / (steps - steps // 2)}
    chosen = np.stack([models[setting[3]][:, runs.index(setting[:3])] for setting in grid], axis=1)
    return np.asarray(rows[table.records :] @ chosen, dtype=np.float64)


def perturb_objective(table: Made, grid: tuple[Any, ...], epsilon: float, seed: int) -> Array:
    """Settings: noise, relative to that of one Gaussian release."""
    rng, rows = np.random.default_rng(seed), table.rows_with_constant
    A, b = rows[: table.records], table.signs[: table.records]
    models = []
    for (relative,) in grid:
        noise, penalty = _noise_and_penalty(relative, epsilon)
        tilt = noise * rng.normal(size=A.shape[1])

        def objective(w: Array, tilt: Array = tilt, penalty: float = penalty) -> tuple[float, Array]:
            margins = b * (A @ w)
            value = np.logaddexp(0.0, -margins).sum() + penalty / 2 * (w @ w) + tilt @ w
            return float(value), penalty * w + tilt - A.T @ (b * expit(-margins))

        models.append(minimize(objective, np.zeros(A.shape[1]), jac=True, method="L-BFGS-B").x)
    return np.asarray(rows[table.records :] @ np.stack(models, axis=1))


def _noise_and_penalty(relative: float, epsilon: float) -> tuple[float, float]:
    """The least penalty for which this much noise suffices (Theorem 3.1 of the paper, sensitivity 1)."""
    least = multiplier(epsilon, DELTA)

    def hockey_stick(at: float, noise: float) -> float:
        return float(norm.cdf(0.5 / noise - at * noise) - math.exp(at) * norm.cdf(-0.5 / noise - at * noise))

    def delta(noise: float, penalty: float) -> float:
        loss, square = abs(math.log(1 - CURVATURE / penalty)), 0.5 / noise**2
        if epsilon > loss + square:
            return 2 * hockey_stick(epsilon - loss, noise)
        return 1 - math.exp(epsilon - loss - square) * (1 - 2 * hockey_stick(square, noise))

    penalty = 1.02 * CURVATURE
    while delta(relative * least, penalty) > DELTA:
        penalty *= 1.04
    return relative * least, penalty


def take_corners(table: Made, grid: tuple[Any, ...], epsilon: float, seed: int) -> Array:
    """Frank-Wolfe. Settings: radius of the ball, and steps. A choice costs epsilon^2 / 8 in zCDP."""
    rng, rows = np.random.default_rng(seed), table.rows_with_constant
    A, b = rows[: table.records], table.signs[: table.records]
    largest, rho = float(abs(A).max()), 0.5 / multiplier(epsilon, DELTA) ** 2
    models = np.zeros((A.shape[1], len(grid)))
    for place, (radius, steps) in enumerate(grid):
        w, scale = models[:, place], 2 * largest / math.sqrt(8 * rho / steps)
        for step in range(steps):
            gradient = -(A.T @ (b * expit(-b * (A @ w))))
            which = int(np.argmax(np.concatenate([gradient, -gradient]) + rng.gumbel(0, scale, size=2 * len(w))))
            w *= 1 - 2 / (step + 2)
            w[which % len(w)] += 2 / (step + 2) * (-radius if which < len(w) else radius)
    return np.asarray(rows[table.records :] @ models)


def average_duals(table: Made, grid: tuple[Any, ...], epsilon: float, seed: int) -> Array:
    """Settings: largest slope, and how far noise may move a coefficient."""
    return np.stack([_average(table, *setting, epsilon, seed) for setting in grid], axis=1)


def _average(table: Made, slope: float, reach: float, epsilon: float, seed: int, steps: int = 100) -> Array:
    rng, all_rows, mu = np.random.default_rng(seed), table.rows_with_constant, 1 / multiplier(epsilon, DELTA)
    X, b, n = all_rows[: table.records, :-1], table.signs[: table.records], table.records
    squares, constant = X * X, float(all_rows[0, [-1]].sum())
    blur = 1 / (mu * math.sqrt(0.01))
    mean = np.asarray(X.sum(axis=0)).ravel() + blur * rng.normal(size=X.shape[1])
    mean = np.where(np.abs(mean) > 3 * blur, mean, 0.0) / n
    blur = 1 / (mu * math.sqrt(0.02))
    spread = (np.asarray(squares.sum(axis=0)).ravel() + blur * rng.normal(size=X.shape[1])) / n - mean**2
    lengths = np.asarray(squares.sum(axis=1)).ravel() - 2 * (X @ mean) + mean @ mean
    shortened = np.minimum(1.0, np.sqrt((1 - constant**2) / np.maximum(lengths, 1e-12)))
    noise = slope * math.sqrt(steps) / (mu * math.sqrt(0.97)) / n
    rates = np.minimum(reach / (noise * math.sqrt(steps)), 4 / np.maximum(spread, blur / n))
    w, total, free = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0
    for step in range(steps):
        pulls = b * np.minimum(expit(-b * (X @ w - mean @ w + constant * free)), slope)
        short = pulls * shortened
        total += noise * rng.normal(size=len(w)) - (X.T @ short - mean * short.sum()) / n
        free -= 4 / constant**2 * (noise * rng.normal() - constant * pulls.sum() / n)
        w = -rates * np.sign(total) * np.maximum(np.abs(total) - noise * math.sqrt(step + 1), 0.0)
    test = all_rows[table.records :, :-1]
    return np.asarray(test @ w - mean @ w + constant * free)


RIVALS: dict[str, tuple[Scores, tuple[Any, ...]]] = {
    "descent": (
        descend,
        tuple(product((40, 160, 400), (8.0, 32.0, 128.0, 512.0), (1.0, 0.65, 0.3), (False, True))),
    ),
    "objective perturbation": (perturb_objective, ((1.1,), (1.5,), (3.0,), (10.0,))),
    "Frank-Wolfe": (take_corners, tuple(product((0.3, 1.0, 3.0, 10.0, 30.0), (5, 20, 60)))),
    "dual averaging": (average_duals, tuple(product((1.0, 0.65), (1.0, 2.0, 4.0)))),
}
