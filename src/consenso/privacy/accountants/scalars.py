"""GDP, pure epsilon and zCDP: costs that are single numbers, where they exist."""

from __future__ import annotations

import math
from collections.abc import Callable

from consenso.privacy.accountants.costs import find_pure, find_rho
from consenso.privacy.accountants.parts import parts
from consenso.privacy.events import Bounded, Event, Mixture


def gdp(event: Event) -> float | None:
    """The mu of an event that consists of Gaussian releases only; None for any other."""
    total = 0.0
    for part, count in parts(event):
        if not isinstance(part, Bounded):
            return None
        total += count * 2 * part.rho
    return math.sqrt(total)


def pure(event: Event) -> float | None:
    """The epsilon at delta = 0, when the event has one; None otherwise."""
    return _total(event, find_pure)


def zcdp(event: Event) -> float | None:
    """A rho with RDP at most order * rho at every order, when there is one; None otherwise.

    Sampling, walking and mixing hardly lower it: at large orders their amplification is lost.
    """
    return _total(event, find_rho)


def _total(event: Event, cost: Callable[[object], float | None]) -> float | None:
    total = 0.0
    for part, count in parts(event):
        value = cost(part)
        if value is None:
            return None
        total += count * value
    return total


@find_pure.register
def _(part: Mixture) -> float | None:
    return _worst([pure(event) for event in part.events])


@find_rho.register
def _(part: Mixture) -> float | None:
    return _worst([zcdp(event) for event in part.events])


def _worst(costs: list[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return max(known) if len(known) == len(costs) else None
