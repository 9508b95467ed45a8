"""A claim as one of a family: the same mechanism with its noise divided by a number.

An (epsilon, delta) lower bound from counted errors is weak at a small delta, since events that rare are not seen. Where
the shape of the trade-off curve is known and only its size is in doubt, much less evidence is enough: for Gaussian
releases the family is that of mu-GDP. So is it done here for any claim: the attack rules out every member of the family
whose curve it beats, and the epsilon of the strongest of these is the lower bound. It exceeds the claim exactly where
the claimed curve itself is refuted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from consenso.audit.bounds import GRID, AttackEvidence, Curve
from consenso.privacy import accountants
from consenso.privacy.accountants import gaussian
from consenso.privacy.events import Event

# Members between which the answer is looked for, as factors on the sensitivity.
SMALLEST, LARGEST = 1 / 32, 8.0
STEPS = 9


@lru_cache(maxsize=512)
def curve_of(event: Event) -> Curve:
    """The trade-off curve that an event claims."""
    return Curve(accountants.tradeoff(event, GRID))


def rule_out(event: Event, shown: AttackEvidence, delta: float) -> float:
    """The epsilon of the loudest member of a claim's family that the evidence refutes, 0 where it refutes none."""
    if accountants.gdp(event) is not None:
        return gaussian.epsilon(shown.mu, delta)
    return find_loudest(event, shown.refutes, delta)


def find_loudest(event: Event, refutes: Callable[[Curve], bool], delta: float) -> float:
    """The epsilon of the loudest member of a family that is refuted, 0 where none is."""
    low, high = (1.0, LARGEST) if refutes(curve_of(event)) else (SMALLEST, 1.0)
    if low < 1.0 and not refutes(curve_of(event.magnify(low))):
        return 0.0
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if refutes(curve_of(event.magnify(middle))) else (low, middle)
    return accountants.epsilon(event.magnify(low), delta)
