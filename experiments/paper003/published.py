"""DP-IADMM as the public code runs it: noise whose scale is measured on the private records, epsilon per iteration.

    w    = mean_p (z_p - dual_p / rho_t)
    G    = (1/I) X_p' (softmax(X_p z_p) - Y_p) + 2 beta z_p / P + xi,    xi Laplace, scale (20) from the agent's records
    z_p  = (rho w + dual + z_p/eta - G) / (rho + 1/eta)                  Prox (Algorithm 1),   eta = 1/sqrt(t)
           clip(w + (dual - G) / rho, z_p - radius, z_p + radius)        Trust (Algorithm 2),  radius 1/t^2, or 1 as in
    dual_p += rho (w - z_p)                                              the code, whose a/(t)*(t) is a

OutP (Huang et al. 2019) perturbs z_p, with the classical Gaussian mechanism; its turn order is z, w, dual. Two forms:

    OutP              G, eta and rho as for Prox; sensitivity 2 c / (I (rho + 1/eta)), c a record's longest gradient
    OutP, its code    as the public code has it: the gradient is a mean over the agent's own I_p records,
                      1/eta = I_p/4 + 2 sqrt(t ln(1.25/delta))/eps, c = I_p in place of a record's bound, and the
                      *square* of the standard deviation as the deviation

Runs of several methods go side by side, so that the images are read once for all; what a run computes does not depend
on its neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.paper003.lanes import gradient_pass, lanes_of
from experiments.paper003.worlds import World, world

BETA = 1e-6
DELTA = 1e-6
# c1, c2, Tc of the penalty min(1e9, c1 1.2^floor(t/Tc) + c2/eps).
PENALTY = {"MNIST": (2.0, 5.0, 10_000), "FEMNIST": (0.005, 0.05, 2_000)}
ITERATIONS = 20_000
METHODS = ("Prox", "Trust", "Trust, shrinking", "OutP", "OutP, its code")
POINTS = 60  # of a learning curve
CLASSICAL = math.sqrt(2 * math.log(1.25 / DELTA))  # multiplier of the Gaussian mechanism at epsilon 1


@dataclass(frozen=True)
class Run:
    """A method at an epsilon of one iteration (infinite without noise), with a seed.

    `scaling` multiplies eta of Prox and OutP, and the radius of Trust: the a of the public code.
    """

    method: str
    epsilon: float
    seed: int = 0
    scaling: float = 1.0

    def is_output(self) -> bool:
        """Whether the noise is added to z."""
        return self.method.startswith("OutP")

    def near(self, t: int, records: int) -> float:
        """1/eta: the weight of the last z of an agent with so many records."""
        if self.method.startswith("Trust"):
            return 0.0
        if self.method == "OutP, its code":
            grown = 2 * math.sqrt(t * math.log(1.25 / DELTA)) / self.epsilon  # its c_w cancels the dimension
            return (records / 4 + grown) / self.scaling
        return math.sqrt(t) / self.scaling

    def radius(self, t: int) -> float:
        """How far a coordinate may move."""
        if not self.method.startswith("Trust"):
            return math.inf
        return self.scaling * (1 / t**2 if "shrinking" in self.method else 1.0)

    def scale(self, here: World, largest: float, records: int, bottom: float) -> float:
        """Of the noise: Laplace on the gradient, or the standard deviation of what is added to z."""
        if not self.is_output():
            return largest / (len(here.y) * self.epsilon)
        if self.method == "OutP":
            return 2 * here.longest / len(here.y) * CLASSICAL / (bottom * self.epsilon)
        return (2 * CLASSICAL / (self.epsilon * bottom)) ** 2


def train(*, data: str, runs: tuple[Run, ...], images: int, iterations: int) -> dict[str, Any]:
    """Test errors, mean absolute noise and sum of |w - z| over the agents, by iteration, for each run."""
    here = world(data, images)
    agents, classes, total = here.agents, here.classes, len(here.y)
    add_gradient = gradient_pass(len(runs), classes)
    parts = [slice(place * classes, (place + 1) * classes) for place in range(len(runs))]
    generators = [np.random.default_rng([run.seed, METHODS.index(run.method)]) for run in runs]
    lanes = lanes_of(len(runs), classes)
    shape = (here.X.shape[1], lanes)
    z, dual = np.zeros((2, agents, *shape), dtype=np.float32)
    largest = np.zeros(len(runs), dtype=np.float32)
    kept = set(np.unique(np.geomspace(1, iterations + 1, POINTS).round().astype(int)).tolist())
    found: list[dict[str, Any]] = [{"at": [], "errors": [], "noise": [], "violation": []} for _ in runs]
    rhos = [penalty_at(data, 1, run.epsilon) for run in runs]
    w = np.zeros(shape, dtype=np.float32)
    summed = np.zeros(shape, dtype=np.float32)  # of z - dual / rho over the agents, for the rho to come

    def spread(values: list[float], blank: float) -> Any:
        """A number of each run on its lanes."""
        row = np.full(lanes, blank, dtype=np.float32)
        row[: len(runs) * classes] = np.repeat(np.asarray(values, dtype=np.float32), classes)
        return row

    late = spread([float(run.is_output()) for run in runs], 0.0) > 0  # lanes whose hub answers last
    for t in range(1, iterations + 2):  # the official loop makes one more than it says
        w = np.where(late, w, summed / np.float32(agents))
        rho, reach = spread(rhos, 1.0), spread([run.radius(t) for run in runs], math.inf)
        after = [penalty_at(data, t + 1, run.epsilon) for run in runs]
        inverse, early = 1 / spread(after, 1.0), np.where(late, np.float32(0), rho)
        sizes, apart = np.zeros(len(runs)), np.zeros(lanes)
        summed = np.zeros(shape, dtype=np.float32)
        for p in range(agents):
            first, last = here.offsets[p], here.offsets[p + 1]
            records = int(last - first)
            near = [run.near(t, records) for run in runs]
            bottoms = [own + close for own, close in zip(rhos, near, strict=True)]
            gradient = np.zeros(shape, dtype=np.float32)
            largest[:] = 0
            add_gradient(*here.sparse, here.y, first, last, z[p], gradient, largest)
            # The code of OutP takes a mean over the agent's own records.
            gradient /= spread([records if run.method == "OutP, its code" else total for run in runs], 1.0)
            gradient += np.float32(2 * BETA / agents) * z[p]
            scales = [
                run.scale(here, float(most), records, bottom)
                for run, most, bottom in zip(runs, largest, bottoms, strict=True)
            ]
            for run, part, rng, scale, place in zip(runs, parts, generators, scales, range(len(runs)), strict=True):
                if not run.is_output():
                    sizes[place] += _add(gradient[:, part], rng, scale, _laplace)
            close = spread(near, 0.0)
            fresh = rho * w + dual[p] + close * z[p] - gradient
            fresh /= rho + close
            if np.isfinite(reach).any():
                np.clip(fresh, z[p] - reach, z[p] + reach, out=fresh)
            for run, part, rng, scale, place in zip(runs, parts, generators, scales, range(len(runs)), strict=True):
                if run.is_output():
                    sizes[place] += _add(fresh[:, part], rng, scale, _gaussian)
            z[p] = fresh
            gap = w - fresh
            dual[p] += early * gap
            summed += fresh - dual[p] * inverse
            if t in kept:
                apart += np.abs(gap).sum(axis=0)
        if late.any():
            w[:, late] = (z[..., late] - dual[..., late] / rho[late]).mean(axis=0)
            dual[..., late] += rho[late] * (w[:, late] - z[..., late])
            if t in kept:
                apart[late] = np.abs(w[:, late] - z[..., late]).sum(axis=(0, 1))
        rhos = after
        if t in kept:
            for each, part, size in zip(found, parts, sizes, strict=True):
                each["at"].append(t)
                each["errors"].append(here.test_error(w[:, part]))
                each["noise"].append(float(size / agents))
                each["violation"].append(float(apart[part].sum() / agents))
    return {"runs": [{**each, "last": each["errors"][-1]} for each in found]}


def penalty_at(data: str, t: int, epsilon: float) -> float:
    """The paper's penalty in iteration t."""
    c1, c2, every = PENALTY[data]
    return min(1e9, c1 * 1.2 ** (t // every) + c2 / epsilon)


def _add(target: Any, rng: np.random.Generator, scale: float, draw: Any) -> float:
    """Add noise of a run to its lanes, from its own generator; its mean absolute value, which is what is expected."""
    if scale <= 0:
        return 0.0
    target += np.float32(scale) * draw(rng, target.shape)
    return scale if draw is _laplace else scale * math.sqrt(2 / math.pi)


def _laplace(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    drawn = rng.standard_exponential(shape, dtype=np.float32)
    drawn -= rng.standard_exponential(shape, dtype=np.float32)
    return drawn


def _gaussian(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.standard_normal(shape, dtype=np.float32)
