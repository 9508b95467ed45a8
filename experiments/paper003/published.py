"""DP-IADMM as the public code runs it: noise whose scale is measured on the private records, epsilon per iteration.

    w    = mean_p (z_p - dual_p / rho_t)
    G    = (1/I) X_p' (softmax(X_p z_p) - Y_p) + 2 beta z_p / P + xi,    xi Laplace, scale (20) from the agent's records
    z_p  = (rho w + dual + z_p/eta - G) / (rho + 1/eta)                  Prox,  eta = 1/sqrt(t)
           clip(w + (dual - G) / rho, z_p - radius, z_p + radius)        Trust, radius 1/t^2 in the text, 1 in the code
    dual_p += rho (w - z_p)

OutP (Huang et al. 2019) perturbs z_p instead, with the classical Gaussian mechanism for the sensitivity
2 c / (I_p (rho + 1/eta)), c the longest gradient of a record in the data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.paper003.worlds import World, world

BETA = 1e-6
DELTA = 1e-6
# c1, c2, Tc of the penalty min(1e9, c1 1.2^floor(t/Tc) + c2/eps).
PENALTY = {"MNIST": (2.0, 5.0, 10_000), "FEMNIST": (0.005, 0.05, 2_000)}
ITERATIONS = 20_000
METHODS = ("Prox", "Trust", "Trust, shrinking", "OutP")
POINTS = 40  # of a learning curve


def train(
    *, data: str, method: str, epsilon: float, images: int, iterations: int, seed: int, scaling: float = 1.0
) -> dict[str, Any]:
    """A run; `epsilon` is that of one iteration, infinite without noise. `scaling` multiplies the proximity of Prox."""
    here = world(data, images)
    rng = np.random.default_rng([seed, METHODS.index(method)])
    features, outputs, agents = here.X.shape[1], here.classes, here.agents
    z = np.zeros((agents, features, outputs), dtype=np.float32)
    dual = np.zeros_like(z)
    c1, c2, every = PENALTY[data]
    onehot = np.eye(outputs, dtype=np.float32)[here.y]
    lengths = here.X.sum(axis=1)
    longest = math.sqrt(2) * float(np.sqrt(np.einsum("ij,ij->i", here.X, here.X).max()))
    kept = set(np.unique(np.linspace(1, iterations + 1, POINTS).astype(int)).tolist())
    at, errors, noises, violations = [], [], [], []
    for t in range(1, iterations + 2):  # the official loop makes one more than it says
        rho = min(1e9, c1 * 1.2 ** (t // every) + (c2 / epsilon if epsilon < math.inf else 0.0))
        near = math.sqrt(t) / scaling
        w = (z - dual / np.float32(rho)).mean(axis=0)
        size = 0.0
        for p in range(agents):
            part = slice(here.offsets[p], here.offsets[p + 1])
            gradient, scale = _gradient(here, onehot, lengths, part, z[p], epsilon)
            if method != "OutP":
                gradient += _laplace(rng, gradient.shape, scale)
                size += scale
            before = z[p]
            z[p] = _solved(method, w, before, dual[p], gradient, rho, near, t)
            if method == "OutP" and epsilon < math.inf:
                sensitivity = 2 * longest / ((part.stop - part.start) * (rho + near))
                std = sensitivity * math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon
                z[p] += rng.standard_normal(z[p].shape, dtype=np.float32) * np.float32(std)
                size += std
        dual += np.float32(rho) * (w - z)
        if t in kept:
            at.append(t)
            errors.append(here.test_error(w))
            noises.append(size / agents)
            violations.append(float(np.linalg.norm(w - z)))
    return {"at": at, "errors": errors, "noise": noises, "violation": violations, "last": errors[-1]}


def _gradient(here: World, onehot: Any, lengths: Any, part: slice, z: Any, epsilon: float) -> tuple[Any, float]:
    """The agent's part of the gradient of the mean, and the noise scale that (20) measures on its records."""
    X = here.X[part]
    scores = X @ z
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    scores -= onehot[part]
    gradient = X.T @ scores
    gradient /= np.float32(len(here.y))
    gradient += np.float32(2 * BETA / here.agents) * z
    largest = float((lengths[part] * np.abs(scores).sum(axis=1)).max())
    return gradient, 0.0 if epsilon == math.inf else largest / (len(here.y) * epsilon)


def _solved(method: str, w: Any, z: Any, dual: Any, gradient: Any, rho: float, near: float, t: int) -> Any:
    if method.startswith("Trust"):
        radius = np.float32(1 / t**2 if "shrinking" in method else 1.0)
        point = w + (dual - gradient) / np.float32(rho)
        return np.clip(point, z - radius, z + radius)
    return (np.float32(rho) * w + dual + np.float32(near) * z - gradient) / np.float32(rho + near)


def _laplace(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Any:
    if scale == 0.0:
        return np.zeros(shape, dtype=np.float32)
    drawn = rng.standard_exponential(shape, dtype=np.float32)
    drawn -= rng.standard_exponential(shape, dtype=np.float32)
    drawn *= np.float32(scale)
    return drawn
