"""Pure epsilon and zCDP: costs that are single numbers, where they exist."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch

from consenso.privacy.accountants.parts import parts
from consenso.privacy.events import (
    ZCDP,
    Bounded,
    Event,
    GammaNorm,
    Laplace,
    Mixture,
    ObjectivePerturbation,
    Pure,
    Sampled,
    SampledFixedSize,
    SampledGroup,
    TokenWalk,
)


def pure(event: Event) -> float | None:
    """The epsilon at delta = 0, when the event has one; None otherwise."""
    return _total(event, _pure)


def zcdp(event: Event) -> float | None:
    """A rho with RDP at most order * rho at every order, when there is one; None otherwise.

    Sampling, walking and mixing hardly lower it: at large orders their amplification is lost.
    """
    return _total(event, _rho)


def _total(event: Event, cost: Callable[[object], float | None]) -> float | None:
    total = 0.0
    for part, count in parts(event):
        value = cost(part)
        if value is None:
            return None
        total += count * value
    return total


@singledispatch
def _pure(part: object) -> float | None:
    return None


@_pure.register
def _(part: Pure) -> float | None:
    return part.epsilon


@_pure.register
def _(part: Laplace | GammaNorm) -> float | None:
    return part.sensitivity / part.scale


@_pure.register
def _(part: Mixture) -> float | None:
    return _worst([pure(event) for event in part.events])


@singledispatch
def _rho(part: object) -> float | None:
    return None


@_rho.register
def _(part: Bounded) -> float | None:
    return part.rho


@_rho.register
def _(part: ZCDP) -> float | None:
    return part.rho


@_rho.register
def _(part: Pure) -> float | None:
    # RDP is at most order epsilon^2 / 2 (Bun and Steinke 2016), and at most epsilon.
    return min(part.epsilon**2 / 2, part.epsilon)


@_rho.register
def _(part: Laplace | GammaNorm) -> float | None:
    shift = part.sensitivity / part.scale
    return min(shift**2 / 2, shift)


@_rho.register
def _(part: Sampled) -> float | None:
    plain = 0.5 * (part.contribution / part.std) ** 2
    # Under replace-one, Q is at least (1 - rate) times the law without the unit.
    return plain if part.adjacency == "add-remove" else min(4 * plain, plain - math.log1p(-part.rate))


@_rho.register
def _(part: SampledGroup) -> float | None:
    total = part.records * part.contribution / part.std
    return 0.5 * (total if part.adjacency == "add-remove" else 2 * total) ** 2


@_rho.register
def _(part: SampledFixedSize) -> float | None:
    return 0.5 * (2 * part.contribution / part.std) ** 2


@_rho.register
def _(part: TokenWalk) -> float | None:
    return part.steps * part.visit_rho


@_rho.register
def _(part: ObjectivePerturbation) -> float | None:
    # Every term of RDP / order decreases with the order: this is the limit at order 1.
    return -math.log1p(-part.smoothness_share) + part.ratio**2 / 2 + part.ratio * math.sqrt(2 / math.pi)


@_rho.register
def _(part: Mixture) -> float | None:
    return _worst([zcdp(event) for event in part.events])


def _worst(costs: list[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return max(known) if len(known) == len(costs) else None
