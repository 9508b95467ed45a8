"""The same methods with every record's gradient shortened, public bounds, exact composition, and a card."""

from __future__ import annotations

import math
from typing import Any

from consenso import theory
from consenso.algorithms.networked import NetworkedADMM
from consenso.algorithms.padmm import PADMM
from consenso.algorithms.subgradient import DistributedSubgradient
from consenso.engine.in_process import InProcessRun
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise, Geometric, Polynomial
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from experiments.cards import checked
from experiments.paper004.claims import printed_total_rho
from experiments.paper004.published import CURVE, DECAY, PENALTY, STEEPER, STEP, fall_of
from experiments.paper004.worlds import DELTA, ITERATIONS, error, world

CLIP = 2.0  # of a record's gradient of the squared loss
RADIUS = 6.0  # of the ball in which the points of P-ADMM's proxes stay
METHODS = (
    "zCDP-NFL",
    "zCDP-NFL, free options",
    "zCDP-grad-NFL",
    "P-ADMM",
    f"zCDP-NFL{STEEPER}",
    f"zCDP-grad-NFL{STEEPER}",
)


def train(*, task: str, method: str, epsilon: float, seed: int, carded: bool) -> dict[str, Any]:
    """A run of total `epsilon` against whoever sees every message; `carded` computes its card again as well."""
    here = world(task, seed, bounded=True)
    rho = theory.budget(epsilon, DELTA)
    first = rho / printed_total_rho(first_rho=1.0, decay=DECAY, iterations=ITERATIONS)
    made = plan(
        here.problem,
        algorithm(method, task),
        rounds=ITERATIONS,
        noise=GaussianNoise(multiplier=Geometric(first=1 / math.sqrt(2 * first), ratio=DECAY)),
        topology=here.topology,
        sampler=Seeded(seed),
    )
    at = InProcessRun(made, here.shards)
    errors = [error(made.algorithm.models(made.facts.at(done - 1), at.state), here.solution) for done in at.rounds()]
    card = {"card": checked(made.card(DELTA))} if carded else {}
    return {
        "errors": errors[CURVE - 1 :: CURVE],
        "last": errors[-1],
        "epsilon": made.guarantee(Eavesdropper(), DELTA).epsilon(DELTA),
        **card,
    }


def algorithm(method: str, task: str) -> Any:
    """The definition behind a name."""
    clip = None if task == "least absolute deviations" else CLIP
    if method == "P-ADMM":
        return PADMM(penalty=PENALTY, radius=RADIUS)
    step = Polynomial(first=STEP, power=-fall_of(method))
    if method.startswith("zCDP-grad-NFL"):
        return DistributedSubgradient(step=step, clip=clip)
    if "free" in method:
        return NetworkedADMM(penalty=PENALTY, step=step, clip=clip, proximal=True, at_average=True, averaging=0.5)
    return NetworkedADMM(penalty=PENALTY, step=step, clip=clip)
