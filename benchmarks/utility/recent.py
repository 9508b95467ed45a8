"""Newer rivals, written after their papers: one record is added or removed, and the number of records is public.

    double-noise Newton       Ganesh et al. 2023: a noisy gradient, then a Newton step with noise of its own, since the
                              step moves with the Hessian of a record
    boosted AdaSSP            Tang et al. 2023: a noisy second moment, then rounds of least squares on clipped errors.
                              Corrected: the noise of every round is that of row bound times clip, and all are paid for
    iterative Hessian mixing  2026: rounds of Newton steps, each with a fresh Gaussian sketch of a noisy second moment
    Frank-Wolfe               Talwar, Thakurta, Zhang 2015: over an L1 ball, corners chosen with Gumbel noise

Of a sketch only the noise that is added is counted on to hide a record; the mixing itself is given no credit, which is
safe, and noisier than the paper's own accounting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.utility.classical import multiplier
from benchmarks.utility.tasks import Task
from consenso.arrays import Array


def newton(task: Task, setting: tuple[float, int], epsilon: float, delta: float, seed: int) -> Any:
    """Logistic loss; setting: ridge, in units of the root of the records, and steps. The late half is averaged."""
    relative, steps = setting
    rng, noise = np.random.default_rng([seed, 3]), math.sqrt(2 * steps) * multiplier(epsilon, delta)
    features, bound, curvature = task.X.shape[1], task.row_bound, 0.25 * task.row_bound**2
    ridge = relative * math.sqrt(len(task.y)) * bound**2
    model, late = np.zeros(features), np.zeros(features)
    for step in range(steps):
        wrong = expit(-task.y * (task.X @ model))
        gradient = -(task.X.T @ (task.y * wrong)) + bound * noise * rng.normal(size=features)
        hessian = task.X.T @ ((wrong * (1 - wrong))[:, None] * task.X) + ridge * np.eye(features)
        # (H + a a' c + ridge)^-1 and (H + ridge)^-1 are at most c |a|^2 / (ridge^2 + ridge c |a|^2) apart.
        moved = float(np.linalg.norm(gradient)) * curvature / (ridge**2 + ridge * curvature)
        model = model - np.linalg.solve(hessian, gradient) - moved * noise * rng.normal(size=features)
        late += model if step >= steps // 2 else 0.0
    return (late / (steps - steps // 2))[:, None]


def boosted_adassp(task: Task, setting: tuple[int, float], epsilon: float, delta: float, seed: int) -> Any:
    """setting: rounds, and the clip of residuals over the target bound."""
    assert task.target_bound is not None
    rounds, relative = setting
    rng, whole = np.random.default_rng([seed, 4]), multiplier(epsilon, delta)
    features, clip = task.X.shape[1], relative * task.target_bound
    # A third of the squared budget for the second moment, the rest for the rounds in equal parts.
    moment = _noisy_moment(task, math.sqrt(3) * whole, rng)
    noise = math.sqrt(1.5 * rounds) * whole * task.row_bound * clip
    model = np.zeros(features)
    for _ in range(rounds):
        residuals = np.clip(task.y - task.X @ model, -clip, clip)
        model = model + np.linalg.solve(moment, task.X.T @ residuals + noise * rng.normal(size=features))
    return model[:, None]


def hessian_mixing(task: Task, setting: tuple[int, float], epsilon: float, delta: float, seed: int) -> Any:
    """setting: rounds, and the clip of residuals over the target bound; half of each round's budget for its sketch."""
    assert task.target_bound is not None
    rounds, relative = setting
    rng, noise = np.random.default_rng([seed, 5]), math.sqrt(2 * rounds) * multiplier(epsilon, delta)
    features, clip, size = task.X.shape[1], relative * task.target_bound, 8 * task.X.shape[1]
    model = np.zeros(features)
    for _ in range(rounds):
        # A sketch has the second moment of the rows on average; the noise of that moment hides one row.
        moment = _noisy_moment(task, noise, rng)
        values, vectors = np.linalg.eigh(moment)
        mixed = rng.normal(size=(size, features)) @ ((vectors * np.sqrt(values)) @ vectors.T) / math.sqrt(size)
        residuals = np.clip(task.y - task.X @ model, -clip, clip)
        gradient = task.X.T @ residuals + noise * task.row_bound * clip * rng.normal(size=features)
        model = model + np.linalg.solve(mixed.T @ mixed, gradient)
    return model[:, None]


def frank_wolfe(task: Task, setting: tuple[float, int], epsilon: float, delta: float, seed: int) -> Any:
    """setting: radius of the ball, and steps. A choice among corners costs what its epsilon^2 / 8 is in zCDP."""
    radius, steps = setting
    rng, features = np.random.default_rng([seed, 6]), task.X.shape[1]
    rho = 0.5 / multiplier(epsilon, delta) ** 2
    each = math.sqrt(8 * rho / steps)
    limit = 1.0 if task.target_bound is None else task.target_bound
    largest = limit * float(task.row_bound)  # of an entry of a row times its slope: public, unlike the largest entry
    model = np.zeros(features)
    for step in range(steps):
        scores = task.X @ model
        slopes = np.clip(scores - task.y, -limit, limit)
        if task.kind == "binary":
            slopes = -task.y * expit(-task.y * scores)
        gradient = task.X.T @ slopes
        noisy = np.concatenate([gradient, -gradient]) + rng.gumbel(0, 2 * largest / each, size=2 * features)
        corner, which = np.zeros(features), int(np.argmax(noisy))
        corner[which % features] = -radius if which < features else radius
        model += 2 / (step + 2) * (corner - model)
    return model[:, None]


def _noisy_moment(task: Task, noise: float, rng: np.random.Generator) -> Array:
    """X'X with symmetric noise, and a ridge that keeps it positive definite with high probability."""
    features, scale = task.X.shape[1], task.row_bound**2 * noise
    upper = np.triu(rng.normal(size=(features, features)), 1) / math.sqrt(2)
    symmetric = upper + upper.T + np.diag(rng.normal(size=features))
    values, vectors = np.linalg.eigh(task.X.T @ task.X + scale * symmetric)
    lifted: Array = (vectors * (np.maximum(values, 0.0) + scale * math.sqrt(2 * features))) @ vectors.T
    return lifted
