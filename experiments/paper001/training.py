"""Gradient ADMM on the generalised lasso: objectives over the iterations, and runs with a stated guarantee."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq

from consenso.algorithms.gradient_admm import Hub
from consenso.engine.run import run
from consenso.planning.plan import Plan, plan
from consenso.privacy.accountants import epsilon as cheapest
from consenso.privacy.events import Bounded
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.privacy.theorems.gradient_admm import GradientIteration
from consenso.schedules import Cyclic, RandomOrder, RandomStopping, Schedule
from experiments.cards import checked
from experiments.paper001.claims import printed_final_iterate
from experiments.paper001.expansion import bound
from experiments.paper001.world import DELTA, FEATURES, PENALTY, STEP, THRESHOLD, World, world

GAP = 2 * THRESHOLD  # how far one user's gradient moves when the user is replaced: rows have norm 1
POINTS = 60
FAR = 3.0

Accounting = Literal["printed", "sharpened"]


def path(*, users: int, convexity: float, std: float, seed: int) -> dict[str, Any]:
    """One pass over the users: excess objective at some iterations, over that of the start, which is far."""
    made, rng = world(users, convexity), np.random.default_rng(seed)
    best = made.best
    at = np.unique(np.geomspace(1, users, POINTS).astype(int))
    hub, excess = Hub(x=np.full(FEATURES, FAR), dual=np.zeros(FEATURES - 1)), []
    start = made.objective(hub.x) - best
    for iteration in range(1, users + 1):
        x, dual = made.algorithm.advance(made.problem, hub, made.gradient(iteration - 1, hub.x))
        hub = Hub(x=x + std * rng.normal(size=FEATURES), dual=dual)
        if iteration in at:
            excess.append((made.objective(hub.x) - best) / start)
    return {"at": at, "excess": excess, "contraction": bound(made, convexity), "start": start}


def guaranteed(
    *, users: int, convexity: float, epsilon: float, accounting: Accounting, seeds: int, schedule: str
) -> dict[str, Any]:
    """Runs whose noise is the least with which the first half of the users have epsilon, by one of two accountings."""
    made = world(users, convexity)
    std = least_std(made, users, convexity, epsilon, accounting)
    best = made.best
    planned = with_std(made, users, std, schedule)
    excess = []
    for seed in range(seeds):
        result = run(with_std(made, users, std, schedule, seed), made.shards)
        excess.append(made.objective(result.model) - best)
    iteration = _iteration(made, convexity, std)
    return {
        "std": std,
        "excess": excess,
        "start": made.objective(np.zeros(FEATURES)) - best,
        "first half": cheapest(Bounded(iteration.rho(users // 2)), DELTA),
        "first half, printed": cheapest(Bounded(_printed(made, convexity, std, users // 2)), DELTA),
        **checked(planned.card(DELTA)),
    }


def least_std(made: World, users: int, convexity: float, epsilon: float, accounting: Accounting) -> float:
    """The noise with which a user after whom half of the iterations follow has epsilon."""

    def excess(log_std: float) -> float:
        std, later = math.exp(log_std), users // 2
        rho = (
            _iteration(made, convexity, std).rho(later)
            if accounting == "sharpened"
            else _printed(made, convexity, std, later)
        )
        return cheapest(Bounded(rho), DELTA) - epsilon

    return math.exp(brentq(excess, math.log(1e-6), math.log(1e3), xtol=1e-10))


def with_std(made: World, users: int, std: float, schedule: str, seed: int = 0) -> Plan:
    """One pass with noise of this standard deviation on x."""
    kinds: dict[str, Schedule] = {
        "fixed order": Cyclic(),
        "random order": RandomOrder(),
        "random stopping": RandomStopping(),
    }
    return plan(
        made.problem,
        made.algorithm,
        rounds=users,
        noise=GaussianNoise(multiplier=std / (STEP * GAP)),
        schedule=kinds[schedule],
        trust="local",
        sampler=Seeded(seed),
    )


def _iteration(made: World, convexity: float, std: float) -> GradientIteration:
    smallest, largest = made.algorithm.constraint.range
    return GradientIteration(
        step=STEP,
        penalty=PENALTY,
        std=std,
        gradient_gap=GAP,
        smoothness=1.0 + convexity,
        strong_convexity=convexity,
        smallest_singular_value=smallest,
        largest_singular_value=largest,
        rows=FEATURES - 1,
        columns=FEATURES,
    )


def _printed(made: World, convexity: float, std: float, later: int) -> float:
    """The printed constant, for singular values of at least 1."""
    iteration = _iteration(made, convexity, std)
    return printed_final_iterate(
        step=STEP,
        penalty=PENALTY,
        matrix_norm=iteration.largest_singular_value,
        std=std,
        distance=STEP * GAP,
        pairs=later // 2,
        pair_contraction=iteration.squared_contraction,
    )
