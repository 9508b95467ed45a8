"""A claim as one of a family: the same mechanism with its noise divided by a number.

An (epsilon, delta) lower bound from counted errors is weak at a small delta, since events that rare are not seen. Where
the shape of the trade-off curve is known and only its size is in doubt, much less evidence is enough: for Gaussian
releases the family is that of mu-GDP. So is it done here for any claim: the attack rules out every member of the family
whose curve it beats, and the epsilon of the strongest of these is the lower bound. It exceeds the claim exactly where
the claimed curve itself is refuted.
"""

from __future__ import annotations

import math
from functools import lru_cache

from consenso.audit.bounds import GRID, AttackEvidence, Curve
from consenso.privacy import accountants
from consenso.privacy.accountants import gaussian
from consenso.privacy.events import (
    ZCDP,
    BestOf,
    Bounded,
    Composed,
    Event,
    GammaNorm,
    Gaussian,
    Laplace,
    Mixture,
    Nothing,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Sampled,
    SampledFixedSize,
    SampledGroup,
    TokenWalk,
    Unbounded,
)

# Members between which the answer is looked for, as factors on the sensitivity.
SMALLEST, LARGEST = 1 / 32, 8.0
STEPS = 9


def louder(event: Event, factor: float) -> Event:
    """The same event when a unit can do `factor` times as much."""
    match event:
        case Nothing() | Unbounded():
            return event
        case Gaussian(std, sensitivity, excess):
            return Gaussian(std, sensitivity * factor, excess)
        case Laplace(scale, sensitivity, excess):
            return Laplace(scale, sensitivity * factor, excess)
        case GammaNorm(scale, sensitivity, dim):
            return GammaNorm(scale, sensitivity * factor, dim)
        case Pure(epsilon):
            return Pure(epsilon * factor)
        case ZCDP(rho):
            return ZCDP(rho * factor**2)
        case Bounded(rho):
            return Bounded(rho * factor**2)
        case Sampled(std, contribution, rate, adjacency, excess):
            return Sampled(std, contribution * factor, rate, adjacency, excess)
        case SampledGroup(std, contribution, rate, records, adjacency, excess):
            return SampledGroup(std, contribution * factor, rate, records, adjacency, excess)
        case SampledFixedSize(std, contribution, size, population, excess):
            return SampledFixedSize(std, contribution * factor, size, population, excess)
        case Mixture(weights, events):
            return Mixture(weights, tuple(louder(each, factor) for each in events))
        case TokenWalk(rho, parties, steps, observers, final_model):
            return TokenWalk(rho * factor**2, parties, steps, observers, final_model)
        case BestOf(rho, gamma, excess):
            return BestOf(rho * factor**2, gamma, excess)
        case ObjectivePerturbation(ratio, share):
            return ObjectivePerturbation(ratio * factor, share)
        case Repeated(inner, count):
            return Repeated(louder(inner, factor), count)
        case Composed(events):
            return Composed(tuple(louder(each, factor) for each in events))


@lru_cache(maxsize=512)
def curve_of(event: Event) -> Curve:
    """The trade-off curve that an event claims."""
    return Curve(accountants.tradeoff(event, GRID))


def rule_out(event: Event, shown: AttackEvidence, delta: float) -> float:
    """The epsilon of the loudest member of a claim's family that the evidence refutes, 0 where it refutes none."""
    if accountants.gdp(event) is not None:
        return gaussian.epsilon(shown.mu, delta)
    low, high = (1.0, LARGEST) if shown.refutes(curve_of(event)) else (SMALLEST, 1.0)
    if low < 1.0 and not shown.refutes(curve_of(louder(event, low))):
        return 0.0
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if shown.refutes(curve_of(louder(event, middle))) else (low, middle)
    return accountants.epsilon(louder(event, low), delta)
