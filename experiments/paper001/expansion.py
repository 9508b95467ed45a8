"""Lemma 5.3: one iteration does not bring two states further apart, in the paper's norm; in the plain one it may.

The penalty on jumps is strong here, so that many jumps are zero: then x moves the dual, and the plain norm grows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.algorithms.gradient_admm import GradientADMM, Hub
from consenso.arrays import Array
from consenso.privacy.theorems.gradient_admm import contraction
from experiments.paper001.world import FEATURES, PENALTY, STEP, World, world

STRONG = 1.0


def pairs(*, convexity: float, pairs: int, users: int, seed: int) -> dict[str, Any]:
    """Growth of the distance of random pairs of states in one iteration of a random user."""
    made, rng = world(users, convexity, STRONG), np.random.default_rng(seed)
    grown: dict[str, list[float]] = {"custom": [], "plain": []}
    for _ in range(pairs):
        one, user = _state(rng, 10 ** rng.uniform(-3, 0.5)), int(rng.integers(users))
        # Near, where the pieces of the prox and of the loss agree, and far; in x, in the dual, or in both.
        other = _moved(one, rng, 10 ** rng.uniform(-4, 1), parts=int(rng.integers(1, 4)))
        before, after = (one, other), [_step(made, hub, user) for hub in (one, other)]
        for name, length in (("custom", _custom(made)), ("plain", _plain)):
            grown[name].append(length(_apart(*after)) / length(_apart(*before)))
    return {name: np.array(ratios) for name, ratios in grown.items()} | {"bound": bound(made, convexity)}


def coupled(*, convexity: float, iterations: int, users: int, seed: int) -> dict[str, Any]:
    """Two runs that differ in the start only and share users and noise: their distance over the iterations."""
    made, rng = world(users, convexity, STRONG), np.random.default_rng(seed)
    one = _state(rng, 0.01)
    other = Hub(x=one.x + 0.01 * rng.normal(size=FEATURES), dual=one.dual)
    custom, plain = [], []
    for iteration in range(iterations + 1):
        gap = _apart(one, other)
        custom.append(_custom(made)(gap))
        plain.append(_plain(gap))
        noise = 0.001 * rng.normal(size=FEATURES)
        one, other = (_step(made, hub, iteration % users, noise) for hub in (one, other))
    return {"custom": np.array(custom), "plain": np.array(plain), "bound": bound(made, convexity)}


def bound(made: World, convexity: float) -> float:
    """By how much one iteration contracts at least, in the custom norm (not squared)."""
    smallest, largest = made.algorithm.constraint.range
    factor = max(abs(1 - STEP * convexity), abs(1 - STEP * (1 + convexity)))
    squared = contraction(
        curvature=STEP * PENALTY,
        smallest=smallest,
        largest=largest,
        gradient_factor=1.0 if convexity == 0 else factor,
    )
    return float(np.sqrt(squared))


def _step(made: World, hub: Hub, user: int, noise: Array | float = 0.0) -> Hub:
    x, dual = made.algorithm.advance(made.problem, hub, made.gradient(user, hub.x))
    return Hub(x=x + noise, dual=dual)


def _state(rng: np.random.Generator, size: float) -> Hub:
    return Hub(x=size * rng.normal(size=FEATURES), dual=size * rng.normal(size=FEATURES - 1))


def _moved(hub: Hub, rng: np.random.Generator, size: float, parts: int) -> Hub:
    x, dual = rng.normal(size=FEATURES), rng.normal(size=FEATURES - 1)
    return Hub(x=hub.x + size * (parts & 1 > 0) * x, dual=hub.dual + size * (parts & 2 > 0) * dual)


def _apart(one: Hub, other: Hub) -> Hub:
    return Hub(x=one.x - other.x, dual=one.dual - other.dual)


def _custom(made: World) -> Any:
    algorithm: GradientADMM = made.algorithm
    return lambda gap: algorithm.norm(made.problem, gap)


def _plain(gap: Hub) -> float:
    return float(np.sqrt(gap.x @ gap.x + gap.dual @ gap.dual))
