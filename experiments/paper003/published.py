"""DP-IADMM as the public code runs it: noise whose scale is measured on the private records, epsilon per iteration.

    w    = mean_p (z_p - dual_p / rho_t)
    G    = (1/I) X_p' (softmax(X_p z_p) - Y_p) + 2 beta z_p / P + xi,    xi Laplace, scale (20) from the agent's records
    z_p  = (rho w + dual + z_p/eta - G) / (rho + 1/eta)                  Prox,  eta = 1/sqrt(t)
           clip(w + (dual - G) / rho, z_p - radius, z_p + radius)        Trust, radius 1/t^2 in the text, 1 in the code
    dual_p += rho (w - z_p)

OutP (Huang et al. 2019) perturbs z_p instead, with the classical Gaussian mechanism for the sensitivity
2 c / (I_p (rho + 1/eta)), c the longest gradient of a record in the data.

Several runs of a method go side by side, so that the images are read once for all; what a run computes does not depend
on its neighbours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.paper003.lanes import gradient_pass, lanes_of
from experiments.paper003.worlds import world

BETA = 1e-6
DELTA = 1e-6
# c1, c2, Tc of the penalty min(1e9, c1 1.2^floor(t/Tc) + c2/eps).
PENALTY = {"MNIST": (2.0, 5.0, 10_000), "FEMNIST": (0.005, 0.05, 2_000)}
ITERATIONS = 20_000
METHODS = ("Prox", "Trust", "Trust, shrinking", "OutP")
POINTS = 60  # of a learning curve


def train(
    *,
    data: str,
    method: str,
    runs: tuple[tuple[float, int], ...],
    images: int,
    iterations: int,
    scaling: float = 1.0,
) -> dict[str, Any]:
    """Runs, each an epsilon of one iteration (infinite without noise) and a seed.

    `scaling` multiplies the proximity of Prox.
    """
    here = world(data, images)
    agents, classes, total = here.agents, here.classes, len(here.y)
    add_gradient = gradient_pass(len(runs), classes)
    parts = [slice(run * classes, (run + 1) * classes) for run in range(len(runs))]
    generators = [np.random.default_rng([seed, METHODS.index(method)]) for _, seed in runs]
    shape = (here.X.shape[1], lanes_of(len(runs), classes))
    z, dual = np.zeros((2, agents, *shape), dtype=np.float32)
    largest = np.zeros(len(runs), dtype=np.float32)
    kept = set(np.unique(np.geomspace(1, iterations + 1, POINTS).round().astype(int)).tolist())
    found: list[dict[str, Any]] = [{"at": [], "errors": [], "noise": [], "violation": []} for _ in runs]
    for t in range(1, iterations + 2):  # the official loop makes one more than it says
        rhos = [penalty_at(data, t, epsilon) for epsilon, _ in runs]
        rho = np.ones(shape[1], dtype=np.float32)
        rho[: len(runs) * classes] = np.repeat(rhos, classes)
        near = math.sqrt(t) / scaling
        w = (z - dual / rho).mean(axis=0)
        sizes = np.zeros(len(runs))
        for p in range(agents):
            first, last = here.offsets[p], here.offsets[p + 1]
            gradient = np.zeros(shape, dtype=np.float32)
            largest[:] = 0
            add_gradient(*here.sparse, here.y, first, last, z[p], gradient, largest)
            gradient /= np.float32(total)
            gradient += np.float32(2 * BETA / agents) * z[p]
            if method != "OutP":
                scales = [float(most) / (total * epsilon) for most, (epsilon, _) in zip(largest, runs, strict=True)]
                _add(gradient, parts, generators, scales, _laplace)
            z[p] = _solved(method, w, z[p], dual[p], gradient, rho, near, t)
            if method == "OutP":
                reach = 2 * here.longest / (last - first) * math.sqrt(2 * math.log(1.25 / DELTA))
                scales = [reach / ((own + near) * epsilon) for own, (epsilon, _) in zip(rhos, runs, strict=True)]
                _add(z[p], parts, generators, scales, _gaussian)
            sizes += scales
        dual += rho * (w - z)
        if t in kept:
            for each, part, size in zip(found, parts, sizes, strict=True):
                each["at"].append(t)
                each["errors"].append(here.test_error(w[:, part]))
                each["noise"].append(float(size / agents))
                each["violation"].append(float(np.linalg.norm(w[:, part] - z[..., part])))
    return {"runs": [{**each, "last": each["errors"][-1]} for each in found]}


def penalty_at(data: str, t: int, epsilon: float) -> float:
    """The paper's penalty in iteration t."""
    c1, c2, every = PENALTY[data]
    return min(1e9, c1 * 1.2 ** (t // every) + c2 / epsilon)


def _solved(method: str, w: Any, z: Any, dual: Any, gradient: Any, rho: Any, near: float, t: int) -> Any:
    if method.startswith("Trust"):
        radius = np.float32(1 / t**2 if "shrinking" in method else 1.0)
        return np.clip(w + (dual - gradient) / rho, z - radius, z + radius)
    return (rho * w + dual + np.float32(near) * z - gradient) / (rho + np.float32(near))


def _add(target: Any, parts: list[slice], generators: list[Any], scales: list[float], draw: Any) -> None:
    """Noise of each run on its own lanes, from its own generator."""
    for part, rng, scale in zip(parts, generators, scales, strict=True):
        if scale > 0:
            target[:, part] += np.float32(scale) * draw(rng, (len(target), part.stop - part.start))


def _laplace(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    drawn = rng.standard_exponential(shape, dtype=np.float32)
    drawn -= rng.standard_exponential(shape, dtype=np.float32)
    return drawn


def _gaussian(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.standard_normal(shape, dtype=np.float32)
