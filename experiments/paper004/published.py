"""The methods as the paper describes them: gradients of any length, noise for a bound that is read from the data.

    zCDP-NFL            variance of a step (2 c_1 / (M D))^2 / (2 phi_n), phi_n = phi_1 tau^-(n-1)           (12)
    (eps, delta)-NFL    the same mechanism, its noise set by composing (eps', delta') steps (Dwork, Rothblum, Vadhan)
    zCDP-grad-NFL       subgradient steps instead of ADMM's, of the same length
    P-ADMM              exact local minimisers, ridge only

Steps vary over time, as in the paper, which does not say how: STEP n^-1/4 in iteration n for all that have steps. Names
with another fall ("steps n^-1/2", "constant step") are run beside it, because the order of the methods depends on it.
Every method gets the same nominal total epsilon. The last iterate counts, as in the paper.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso import theory
from consenso.arrays import Array
from consenso.privacy.accountants import epsilon as epsilon_of
from consenso.privacy.events import Gaussian
from experiments.paper004.claims import printed_total_rho
from experiments.paper004.worlds import DELTA, ITERATIONS, OBSERVATIONS, World, error, world

DECAY = 0.99  # tau
PENALTY, STEP = 3.0, 0.3
FALL = 0.25  # of the steps: STEP n^-FALL
STEEPER = ", steps n^-1/2"
METHODS = (
    *("zCDP-NFL", "(eps, delta)-NFL", "zCDP-grad-NFL", "P-ADMM"),
    *(f"zCDP-NFL{STEEPER}", f"zCDP-grad-NFL{STEEPER}", "zCDP-NFL, constant step"),
)
CURVE = 5  # every so many rounds a point of the learning curve is kept


def train(*, task: str, method: str, epsilon: float, seed: int) -> dict[str, Any]:
    """A run with a nominal total epsilon: its errors by round, and the bound that its noise was made for."""
    here = world(task, seed, bounded=False)
    bound = assumed_bound(here, task)
    rng = np.random.default_rng([seed, round(1000 * epsilon), METHODS.index(method)])
    errors = [error(models, here.solution) for models in _rounds(here, method, bound, epsilon, rng)]
    return {"errors": errors[CURVE - 1 :: CURVE], "last": errors[-1], "bound": bound, "largest": longest_at_zero(here)}


def fall_of(method: str) -> float:
    """The power with which a method's steps fall."""
    if "constant" in method:
        return 0.0
    return 0.5 if method.endswith(STEEPER) else FALL


def assumed_bound(here: World, task: str) -> float:
    """c_1: the longest gradient of a record at the central solution. Nothing bounds gradients elsewhere."""
    slopes = np.ones_like(here.y) if task == "least absolute deviations" else here.X @ here.solution - here.y
    return float((np.abs(slopes) * np.linalg.norm(here.X, axis=2)).max())


def longest_at_zero(here: World) -> float:
    """The longest gradient of a record in the first round, which starts at zero."""
    slopes = here.problem.loss.slope(np.zeros(here.y.size), here.y.ravel()).reshape(here.y.shape)
    return float((np.abs(slopes) * np.linalg.norm(here.X, axis=2)).max())


def multipliers(epsilon: float, method: str) -> Array:
    """Standard deviation over sensitivity in each round, as the method's own accountant sets it."""
    rounds = np.arange(ITERATIONS)
    if method == "(eps, delta)-NFL":
        return composed_multiplier(epsilon) * DECAY ** (rounds / 2) / _mean_decrease()
    rho = (math.sqrt(epsilon + math.log(1 / DELTA)) - math.sqrt(math.log(1 / DELTA))) ** 2
    first = rho / printed_total_rho(first_rho=1.0, decay=DECAY, iterations=ITERATIONS)
    return DECAY ** (rounds / 2) / math.sqrt(2 * first)


def composed_multiplier(epsilon: float) -> float:
    """The classical Gaussian mechanism, its steps joined by advanced composition with half of delta for each."""
    share = DELTA / 2

    def total(each: float) -> float:
        return math.sqrt(2 * ITERATIONS * math.log(1 / share)) * each + ITERATIONS * each * math.expm1(each)

    low, high = 0.0, min(epsilon, 50.0)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) <= epsilon else (low, middle)
    return math.sqrt(2 * math.log(1.25 * ITERATIONS / share)) / low


def accountants(*, epsilon: float) -> dict[str, float]:
    """What the noise of both accountants really costs, and the first multipliers that exact composition asks for."""
    found = {}
    for name in ("zCDP-NFL", "(eps, delta)-NFL"):
        spread = multipliers(epsilon, name)
        mu = math.sqrt(float((spread**-2.0).sum()))
        found[f"true epsilon, {name}"] = epsilon_of(Gaussian(std=1.0, sensitivity=mu), DELTA)
        # The decreasing schedule of the method, scaled so that its exact total is the nominal one.
        found[f"exact multiplier, {name}"] = float(spread[0]) * mu / math.sqrt(2 * theory.budget(epsilon, DELTA))
    return found


def _mean_decrease() -> float:
    """The decreasing noise of the paper with the cost of a constant one: root mean square of the inverse."""
    inverse = DECAY ** (-np.arange(ITERATIONS))
    return 1 / math.sqrt(float(inverse.mean()))


def _rounds(here: World, method: str, bound: float, epsilon: float, rng: np.random.Generator) -> Any:
    adjacency, degrees = here.topology.adjacency, here.topology.degrees[:, None].astype(float)
    shape = (len(here.X), here.X.shape[2])
    w, dual, spread = np.zeros(shape), np.zeros(shape), multipliers(epsilon, method)
    regularizer, loss = here.problem.regularizer, here.problem.loss
    sensitivity = 2 * bound / OBSERVATIONS
    mixing = here.topology.metropolis
    solve = _minimisers(here, 2 * PENALTY * degrees[:, 0]) if method == "P-ADMM" else None

    def gradient(at: Array) -> Array:
        scores = np.einsum("kmp,kp->km", here.X, at)
        slopes = loss.slope(scores.ravel(), here.y.ravel()).reshape(scores.shape)
        return np.asarray(np.einsum("kmp,km->kp", here.X, slopes) / OBSERVATIONS)

    for round_ in range(ITERATIONS):
        noise = rng.normal(size=shape)
        step = STEP * (1 + round_) ** -fall_of(method)
        if method.startswith("zCDP-grad-NFL"):
            noise *= step * sensitivity * spread[round_]
            w = mixing @ w - step * (gradient(w) + regularizer.subgradient(w)) + noise
            yield w
            continue
        pull = PENALTY * (degrees * w + adjacency @ w) - dual
        if solve is not None:
            bottom = 2 * PENALTY * degrees + regularizer.strong_convexity
            w = solve(pull) + noise * sensitivity / bottom * spread[round_]
        else:
            bottom = 2 * PENALTY * degrees + 1 / step
            fresh = (w / step + pull - gradient(w) - regularizer.subgradient(w)) / bottom
            w = fresh + noise * sensitivity / bottom * spread[round_]
        dual = dual + PENALTY * (degrees * w - adjacency @ w)
        yield w


def _minimisers(here: World, penalties: Array) -> Any:
    """The minimiser of the local ridge problem with the penalty of the edges, for every node."""
    square = here.problem.regularizer.strong_convexity
    moments = np.einsum("kmp,kmq->kpq", here.X, here.X) / OBSERVATIONS
    systems = moments + (penalties + square)[:, None, None] * np.eye(here.X.shape[2])
    targets = np.einsum("kmp,km->kp", here.X, here.y) / OBSERVATIONS
    inverse = np.linalg.inv(systems)
    return lambda pull: np.einsum("kpq,kq->kp", inverse, targets + pull)
