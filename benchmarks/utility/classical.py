"""Rivals that need no library: output perturbation, and sufficient statistics (AdaSSP) for regression.

Both protect one record that is added or removed; the number of records is public and divides nothing that is private.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.utility.ours import exact
from benchmarks.utility.tasks import Task
from consenso.privacy.calibrate import EpsilonDelta, calibrate_noise
from consenso.privacy.events import Gaussian


def multiplier(epsilon: float, delta: float) -> float:
    """Standard deviation over sensitivity of one Gaussian release."""
    target = EpsilonDelta(epsilon=epsilon, delta=delta)
    return calibrate_noise(lambda std: Gaussian(std=std, sensitivity=1.0), target)


def output_perturbation(task: Task, strength: float, epsilon: float, delta: float, seed: int) -> Any:
    """Noise on the minimiser of a strongly convex objective (Chaudhuri et al. 2011): it moves by L / (n strength)."""
    penalised = replace(task, alpha=strength, l1=False)
    problem = penalised.problem()
    sensitivity = problem.loss.lipschitz(task.row_bound) / (len(task.y) * strength)
    model = exact(penalised)
    noise = np.random.default_rng([seed, 1]).normal(size=model.shape)
    return model + multiplier(epsilon, delta) * sensitivity * noise


def adassp(task: Task, epsilon: float, delta: float, seed: int) -> Any:
    """Wang 2018, algorithm 2, with zCDP-exact Gaussian shares: a third of the squared budget for each release."""
    assert task.target_bound is not None
    rng, noise = np.random.default_rng([seed, 2]), math.sqrt(3) * multiplier(epsilon, delta)
    features, square = task.X.shape[1], task.row_bound**2
    moment, cross = task.X.T @ task.X, task.X.T @ task.y
    smallest = max(
        np.linalg.eigvalsh(moment)[0] + square * noise * (rng.normal() - math.sqrt(2 * math.log(6 / delta))), 0.0
    )
    # The largest eigenvalue of a symmetric Gaussian matrix of this scale, as the paper bounds it.
    wanted = math.sqrt(features * math.log(6 / delta) * math.log(2 * features**2 / 0.05)) * noise * square
    ridge = max(0.0, wanted - smallest)
    upper = np.triu(rng.normal(size=(features, features)))
    symmetric = upper + np.triu(upper, 1).T
    noisy = moment + square * noise * symmetric + ridge * np.eye(features)
    pulled = cross + task.row_bound * task.target_bound * noise * rng.normal(size=features)
    return np.linalg.lstsq(noisy, pulled, rcond=None)[0][:, None]
