"""What an event costs: the tightest of the curves that are valid for it.

| curve | for | exact |
| --- | --- | --- |
| GDP | Gaussian releases only | yes |
| one release | a single part with a dominating pair (`pairs`), or one of several drawn at random | yes |
| PLD | compositions of such parts | to about 1e-5, from above |
| RDP | everything | no |
| zCDP | where nothing but a rho is known | as stated |
| pure | sums of epsilons | at delta = 0 |

All of them are upper bounds, so the smallest may be taken. Samplers that miss their law by `excess` in total variation
add (1 + exp(epsilon)) * excess to delta (`parts.excess`); names that one unit alone has, and that are told with a
probability p, add p (`parts.find_told`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.accountants import conversion, gaussian, pairs, renyi
from consenso.privacy.accountants.parts import excess, find_told, is_unbounded, parts
from consenso.privacy.accountants.renyi import rdp
from consenso.privacy.accountants.scalars import gdp, pure, zcdp
from consenso.privacy.events import ZCDP, Bounded, Event

__all__ = [
    "Cost",
    "best",
    "delta",
    "epsilon",
    "excess",
    "find_told",
    "gdp",
    "ideal",
    "is_unbounded",
    "pure",
    "rdp",
    "tradeoff",
    "zcdp",
]

# epsilon is rounded up by this much where an excess has to fit beside the ideal delta.
_ROUND_UP = 1e-9
# The smallest positive number.
_LEAST = 5e-324
# An excess that adds less than this share to delta is not worth looking for a better epsilon.
_EXCESS_MATTERS = 1.001
# How many epsilons a trade-off curve is drawn from, and the delta of the last of them.
_TRADEOFF_POINTS, _TRADEOFF_DELTA = 64, 1e-9


@dataclass(frozen=True)
class Cost:
    """An epsilon, and the curve that gave it."""

    epsilon: float
    method: str


def epsilon(event: Event, delta: float) -> float:
    """The smallest epsilon that is known to hold at a delta in [0, 1); infinite when there is none."""
    return best(event, delta).epsilon


def best(event: Event, delta: float) -> Cost:
    """The same with the name of the curve."""
    if not 0 <= delta < 1:  # also refuses NaN
        raise InputError(f"best(delta={delta}): a delta lies in [0, 1); take one far below 1 / records.")
    delta, missed, told = float(delta), excess(event), find_told(event)
    found = ideal(event, delta)
    if missed == told == 0 or math.isinf(found.epsilon):
        return found
    # Less delta is left for the ideal mechanism, the more so the larger epsilon: climb until both fit.
    claimed = found.epsilon * (1 + _ROUND_UP) + _ROUND_UP
    while (left := delta - told - (1 + math.exp(min(claimed, 700.0))) * missed) > 0:
        found = ideal(event, left)
        if found.epsilon <= claimed:
            return Cost(claimed, found.method)
        claimed = found.epsilon * (1 + _ROUND_UP)
    return Cost(math.inf, found.method)


def delta(event: Event, epsilon: float) -> float:
    """The smallest delta that is known to hold at an epsilon above 0."""
    if not epsilon > 0:  # also refuses NaN
        raise InputError(f"delta(epsilon={epsilon}): an epsilon is above 0; give one.")
    epsilon, missed, told = min(float(epsilon), 1e100), excess(event), find_told(event)
    least = _ideal_delta(event, epsilon)
    if missed == 0:
        return min(least + told, 1.0)
    found = _with_excess(least, epsilon, missed)
    if found > _EXCESS_MATTERS * least:
        # What holds at a smaller epsilon holds here too, and a smaller epsilon multiplies the excess less.
        turn = _turning_point(event)
        if turn < epsilon:
            found = min(found, _with_excess(_ideal_delta(event, turn), turn, missed))
    return min(found + told, 1.0)


def _with_excess(ideal: float, epsilon: float, missed: float) -> float:
    return min(ideal + (1 + math.exp(min(epsilon, 700.0))) * missed, 1.0)


@lru_cache(maxsize=256)
def _turning_point(event: Event) -> float:
    """The epsilon from which on the excess costs more than the ideal delta falls; the sum is convex in exp(epsilon)."""
    from scipy.optimize import minimize_scalar

    missed = excess(event)
    most = max(1.0, 1 - math.log(missed))  # beyond this the excess alone exceeds 1
    found = minimize_scalar(
        lambda value: _with_excess(_ideal_delta(event, float(value)), value, missed),
        bounds=(1e-9, most),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return float(found.x)


def tradeoff(event: Event, fpr: Array) -> Array:
    """Lower bound on the false negative rate of every test, at these false positive rates in [0, 1].

    A test decides, from all that the observer saw, between two neighbouring data sets.
    """
    rates = np.asarray(fpr, dtype=np.float64)
    if not np.all((rates >= 0) & (rates <= 1)):
        raise InputError("tradeoff(fpr=...): rates lie in [0, 1]; give such rates.")
    # Both worlds are within so much of an ideal, in total variation.
    mu, missed = gdp(event), excess(event) + find_told(event)
    if mu is not None:
        shifted = np.minimum(rates + missed, 1.0)
        return np.asarray(np.maximum(gaussian.fnr(mu, shifted) - missed, 0.0))
    if is_unbounded(event):
        return np.zeros_like(rates)
    # A point (epsilon, delta) of the curve bounds the trade-off by two lines; so does every mixture of points.
    epsilons = np.linspace(0.0, min(ideal(event, _TRADEOFF_DELTA).epsilon, 700.0), _TRADEOFF_POINTS)[:, None]
    deltas = _ideal_deltas(event, epsilons[:, 0])[:, None] + (1 + np.exp(epsilons)) * missed
    flat = rates.reshape(1, -1)
    lines = np.maximum(1 - deltas - np.exp(epsilons) * flat, np.exp(-epsilons) * (1 - deltas - flat))
    return np.asarray(np.maximum(lines.max(axis=0), 0.0).reshape(rates.shape))


@lru_cache(maxsize=1024)
def ideal(event: Event, delta: float) -> Cost:
    """The cost with perfect samplers, and if nothing is told by name."""
    if not parts(event):
        return Cost(0.0, "nothing released")
    if is_unbounded(event):
        return Cost(math.inf, "unbounded")
    mu = gdp(event)
    if mu is not None:
        return Cost(gaussian.epsilon(mu, delta), "GDP (exact)")
    candidates = [Cost(math.inf, "unbounded")]
    total = pure(event)
    if total is not None:
        candidates.append(Cost(total, "pure"))
    if delta > 0 and _single_delta(event, 0.0) is not None:
        candidates.append(Cost(_single_epsilon(event, delta), "one release (exact)"))
    elif delta > 0:
        name = "zCDP" if _is_linear(event) else "RDP"
        candidates.append(Cost(conversion.to_epsilon(lambda orders: renyi.curve(event, orders), delta).value, name))
        if candidates[-1].epsilon > 0 and pairs.is_supported(event):
            from consenso.privacy.accountants import pld

            candidates.append(Cost(pld.epsilon(event, delta), "PLD"))
    return min(candidates, key=lambda cost: cost.epsilon)


@lru_cache(maxsize=1024)
def _ideal_delta(event: Event, epsilon: float) -> float:
    if not parts(event):
        return 0.0
    if is_unbounded(event):
        return 1.0
    mu, single, total = gdp(event), _single_delta(event, epsilon), pure(event)
    if mu is not None:
        return _exp(float(gaussian.log_delta(mu, np.array([epsilon]))[0]))
    if total is not None and epsilon >= total:
        return 0.0
    if single is not None:
        return max(single, _LEAST)
    found = conversion.to_log_delta(lambda orders: renyi.curve(event, orders), epsilon).value
    if pairs.is_supported(event):
        from consenso.privacy.accountants import pld

        found = min(found, pld.log_delta(event, epsilon))
    return _exp(found)


def _ideal_deltas(event: Event, epsilons: Array) -> Array:
    """Delta at many epsilons from 0 on, which need not be accurate where it is tiny."""
    single = pairs.curve(event, epsilons)
    if single is not None:
        return single
    if pairs.is_supported(event):
        from consenso.privacy.accountants import pld

        return pld.deltas(event, epsilons)
    return np.exp(conversion.to_log_deltas(lambda orders: renyi.curve(event, orders), epsilons))


def _single_delta(event: Event, epsilon: float) -> float | None:
    """Delta of a single release, exactly; None for compositions."""
    found = pairs.curve(event, np.array([epsilon]))
    return None if found is None else float(found[0])


def _single_epsilon(event: Event, delta: float) -> float:
    log_target = math.log(delta)

    def excess_of_log_delta(epsilon: float) -> float:
        found = _single_delta(event, epsilon)
        return max(math.log(found) - log_target, -50.0) if found else -50.0

    return gaussian.smallest_epsilon(excess_of_log_delta, 1.0)


def _is_linear(event: Event) -> bool:
    """Whether the Renyi curve is order * rho, of which the conversion is the best that can be said."""
    return all(isinstance(part, ZCDP | Bounded) for part, _ in parts(event))


def _exp(log_delta: float) -> float:
    """exp, rounded up: a delta that is not 0 is never reported as 0."""
    return min(max(math.exp(log_delta) * (1 + 1e-15), _LEAST), 1.0) if log_delta > -math.inf else 0.0
