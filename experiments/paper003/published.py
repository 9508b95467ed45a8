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

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.checkpoints import Checkpoint, current
from experiments.paper003.blocks import aligned, lanes_of
from experiments.paper003.lanes import NUMBERS, agent_step, gradient_pass
from experiments.paper003.worlds import World, world

BETA = 1e-6
DELTA = 1e-6
# c1, c2, Tc of the penalty min(1e9, c1 1.2^floor(t/Tc) + c2/eps).
PENALTY = {"MNIST": (2.0, 5.0, 10_000), "FEMNIST": (0.005, 0.05, 2_000)}
ITERATIONS = 20_000
METHODS = ("Prox", "Trust", "Trust, shrinking", "OutP", "OutP, its code")
POINTS = 60  # of a learning curve
FAR = 1e30  # for a radius that is infinite: loops that are compiled count on finite numbers
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
        if self.epsilon == math.inf:
            return 0.0
        if not self.is_output():
            return largest / (len(here.y) * self.epsilon)
        if self.method == "OutP":
            return 2 * here.longest / len(here.y) * CLASSICAL / (bottom * self.epsilon)
        return (2 * CLASSICAL / (self.epsilon * bottom)) ** 2


def train(*, data: str, runs: tuple[Run, ...], images: int, iterations: int) -> dict[str, Any]:
    """Test errors, mean absolute noise and sum of |w - z| over the agents, by iteration, for each run.

    The runs all perturb the objective, or all perturb the output.
    """
    (output,) = {run.is_output() for run in runs}
    here = world(data, images)
    agents, classes, total = here.agents, here.classes, len(here.y)
    add_gradient, step = gradient_pass(len(runs), classes), agent_step(output)
    lanes = lanes_of(len(runs), classes)
    shape = (here.X.shape[1], lanes)
    z, dual = (aligned((agents, *shape)) for _ in range(2))
    w, summed, gradient = (aligned(shape) for _ in range(3))
    states = _states(runs, classes, lanes)
    numbers = np.zeros((len(NUMBERS), lanes), dtype=np.float32)
    numbers[NUMBERS.index("rho")] = 1  # lanes that fill up stay at zero

    def spread(**values: Any) -> None:
        """Put a number of each run on all its lanes."""
        for name, of_runs in values.items():
            numbers[NUMBERS.index(name), : len(runs) * classes] = np.tile(np.asarray(of_runs, np.float32), classes)

    largest = np.zeros(len(runs), dtype=np.float32)
    kept = set(np.unique(np.geomspace(1, iterations + 1, POINTS).round().astype(int)).tolist())
    found: list[dict[str, Any]] = [{"at": [], "errors": [], "noise": [], "violation": []} for _ in runs]
    none = np.zeros(len(runs))
    spread(shrink=none + 2 * BETA / agents, before=none)
    state = {"z": z, "dual": dual, "w": w, "summed": summed, "numbers": numbers, "states": states}
    checkpoint = current()
    done = _resume(checkpoint, state, found)
    for t in range(done + 1, iterations + 2):  # the official loop makes one more than it says
        rho, later = (np.array([penalty_at(data, at, run.epsilon) for run in runs]) for at in (t, t + 1))
        spread(rho=rho, reach=[min(run.radius(t), FAR) for run in runs], answer=none if output else rho)
        spread(inverse=1 / (rho if output else later))
        if not output:
            np.divide(summed, np.float32(agents), out=w)
        summed[:] = 0
        sizes = np.zeros(len(runs))
        for p in range(agents):
            records = int(here.offsets[p + 1] - here.offsets[p])
            near = np.array([run.near(t, records) for run in runs])
            largest[:] = 0
            add_gradient(*here.blocks, here.y, *here.blocks_of(p), z[p], gradient, largest)
            scale = [
                run.scale(here, float(most), records, bottom)
                for run, most, bottom in zip(runs, largest, rho + near, strict=True)
            ]
            # The code of OutP takes a mean over the agent's own records.
            share = [1 / (records if run.method == "OutP, its code" else total) for run in runs]
            spread(near=near, scale=scale, share=share)
            step(gradient, z[p], dual[p], w, summed, numbers, states)
            sizes += scale
        if output:
            np.divide(summed, np.float32(agents), out=w)
            spread(before=rho)
        if t in kept:
            apart = _of_runs(np.abs(w - z).sum(axis=0), len(runs), classes)
            models = _of_runs(w, len(runs), classes)
            for place, each in enumerate(found):
                each["at"].append(t)
                each["errors"].append(here.test_error(np.ascontiguousarray(models[..., place])))
                # The mean absolute value that is expected of the noise.
                each["noise"].append(_digits(sizes[place] / agents * (math.sqrt(2 / math.pi) if output else 1)))
                each["violation"].append(_digits(apart[..., place].sum() / agents))
        if checkpoint.is_due():
            checkpoint.save({**state, "done": t, "found": json.dumps(found)})
    return {"runs": [{**each, "last": each["errors"][-1]} for each in found]}


def _resume(checkpoint: Checkpoint, state: dict[str, Any], found: list[dict[str, Any]]) -> int:
    """Set arrays and curves to what a checkpoint has; how many iterations that were."""
    kept = checkpoint.load()
    if kept is None:
        return 0
    for name, array in state.items():
        array[...] = kept[name]
    found[:] = json.loads(str(kept["found"]))
    return int(kept["done"])


def _digits(value: Any) -> float:
    """What single precision has of a number."""
    return float(f"{float(value):.6g}")


def _of_runs(model: Any, runs: int, classes: int) -> Any:
    """Lanes as (features, classes, runs)."""
    return model[:, : classes * runs].reshape(len(model), classes, runs)


def states_of(run: Run, classes: int) -> Any:
    """What the generators of a run's lanes start from: (4, classes)."""
    drawn = np.random.SeedSequence([run.seed, METHODS.index(run.method)]).generate_state(4 * classes)
    return drawn.astype(np.uint32).reshape(4, classes)


def _states(runs: tuple[Run, ...], classes: int, lanes: int) -> Any:
    states = np.ones((4, lanes), dtype=np.uint32)
    for place, run in enumerate(runs):
        states[:, place : len(runs) * classes : len(runs)] = states_of(run, classes)
    return states


def penalty_at(data: str, t: int, epsilon: float) -> float:
    """The paper's penalty in iteration t."""
    c1, c2, every = PENALTY[data]
    return min(1e9, c1 * 1.2 ** (t // every) + c2 / epsilon)
