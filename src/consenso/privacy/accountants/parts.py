"""Every event as a list of simple parts with counts, checked.

Accountants add `count * cost(part)` over `parts(event)`: compositions and repeats are opened here and nowhere else.
Degenerate events are put in the form that they amount to: no noise is `Unbounded`, no sensitivity is nothing,
sampling at rate 1 is a Gaussian, and a Gaussian is `Bounded` (both are exactly sqrt(2 rho)-GDP).
"""

from __future__ import annotations

import math
import numbers
from functools import lru_cache, singledispatch
from typing import TypeAlias

from consenso.errors import InputError
from consenso.privacy.accountants.gamma_norm import MOST_DIM
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

Part: TypeAlias = (
    Bounded
    | Laplace
    | GammaNorm
    | Pure
    | ZCDP
    | Sampled
    | SampledGroup
    | SampledFixedSize
    | Mixture
    | TokenWalk
    | ObjectivePerturbation
    | BestOf
    | Unbounded
)
Parts: TypeAlias = tuple[tuple[Part, int], ...]

# Shifts of gamma-norm noise below this are too small for quadrature, and cost next to nothing as pure ones.
_LEAST_SHIFT = 1e-8
# How far the weights of a mixture may miss 1 by rounding.
_WEIGHT_TOLERANCE = 1e-9


@lru_cache(maxsize=1024)
def parts(event: Event) -> Parts:
    """The distinct parts of an event and how often each happened; empty when nothing was released."""
    counts: dict[Part, int] = {}
    stack: list[tuple[Event, int]] = [(event, 1)]
    while stack:
        current, count = stack.pop()
        if isinstance(current, Composed):
            stack.extend((inner, count) for inner in reversed(current.events))
        elif isinstance(current, Repeated):
            times = _whole(current, "count", current.count, least=0)
            if times:
                stack.append((current.event, count * times))
        else:
            part = _simple(current)
            if isinstance(part, Repeated | Composed):
                stack.append((part, count))
            elif not isinstance(part, Nothing | Gaussian):  # a Gaussian has become Bounded
                counts[part] = counts.get(part, 0) + count
    return tuple(counts.items())


def is_unbounded(event: Event) -> bool:
    """Whether some value left without any bound (also with positive probability, inside a mixture)."""
    for part, _ in parts(event):
        if isinstance(part, Unbounded):
            return True
        if isinstance(part, Mixture) and any(is_unbounded(inner) for inner in part.events):
            return True
    return False


@lru_cache(maxsize=1024)
def excess(event: Event) -> float:
    """Total variation between the samplers that were used and the laws of the event, over the whole tree.

    It is no part of any curve. When both worlds' outputs are within E of an ideal that has delta(epsilon), the real
    ones have delta(epsilon) + (1 + exp(epsilon)) E, because P' <= P + E <= exp(epsilon) Q + delta + E and Q <= Q' + E.
    """
    parts(event)  # refuses malformed events
    if isinstance(event, Composed):
        return math.fsum(excess(inner) for inner in event.events)
    if isinstance(event, Repeated):
        return event.count * excess(event.event)
    if isinstance(event, Mixture):
        return math.fsum(w * excess(inner) for w, inner in zip(event.weights, event.events, strict=True))
    return _not_negative(event, "excess", getattr(event, "excess", 0.0))


@singledispatch
def _simple(event: object) -> Event:
    raise InputError(f"{type(event).__name__}: an event of consenso.privacy.events must be given, got {event!r}.")


@_simple.register
def _(event: Nothing) -> Event:
    return event


@_simple.register
def _(event: Unbounded) -> Event:
    return event


@_simple.register
def _(event: Gaussian) -> Event:
    ratio = _ratio(event, "sensitivity", event.sensitivity, "std", event.std)
    return _bounded(0.5 * ratio * ratio)  # a product that is too large is infinite, a power raises


@_simple.register
def _(event: Bounded) -> Event:
    return _bounded(_not_negative(event, "rho", event.rho))


@_simple.register
def _(event: ZCDP) -> Event:
    rho = _not_negative(event, "rho", event.rho)
    return _finite(ZCDP(rho), rho)


@_simple.register
def _(event: Pure) -> Event:
    epsilon = _not_negative(event, "epsilon", event.epsilon)
    return _finite(Pure(epsilon), epsilon)


@_simple.register
def _(event: Laplace) -> Event:
    ratio = _ratio(event, "sensitivity", event.sensitivity, "scale", event.scale)
    return _finite(Laplace(scale=1.0, sensitivity=ratio), ratio)


@_simple.register
def _(event: GammaNorm) -> Event:
    ratio = _ratio(event, "sensitivity", event.sensitivity, "scale", event.scale)
    dim = _whole(event, "dim", event.dim, least=1)
    if dim == 1:
        return _finite(Laplace(scale=1.0, sensitivity=ratio), ratio)
    if dim > MOST_DIM or ratio < _LEAST_SHIFT:
        return _finite(Pure(ratio), ratio)
    return _finite(GammaNorm(1.0, ratio, dim), ratio)


@_simple.register
def _(event: SampledGroup) -> Event:
    records = _whole(event, "records", event.records, least=1)
    # One record, and all of them: what is left after the checks of both is a group.
    one = _simple(Sampled(event.std, event.contribution, event.rate, event.adjacency))
    if records == 1 or not isinstance(one, Sampled):
        return _bounded(one.rho * records**2) if isinstance(one, Bounded) else one
    return SampledGroup(1.0, one.contribution, one.rate, records, one.adjacency)


@_simple.register
def _(event: Sampled) -> Event:
    ratio = _ratio(event, "contribution", event.contribution, "std", event.std)
    if not 0 < event.rate <= 1:  # also refuses NaN
        raise InputError(
            f"Sampled(rate={event.rate}): a rate lies in (0, 1]; leave the event out where nothing is sampled."
        )
    if event.adjacency not in ("add-remove", "replace-one"):
        raise InputError(f"Sampled(adjacency={event.adjacency!r}): use 'add-remove' or 'replace-one'.")
    if event.rate == 1:
        seen = ratio if event.adjacency == "add-remove" else 2 * ratio
        return _bounded(0.5 * seen * seen)
    return _finite(Sampled(1.0, ratio, float(event.rate), event.adjacency), ratio)


@_simple.register
def _(event: SampledFixedSize) -> Event:
    ratio = _ratio(event, "contribution", event.contribution, "std", event.std)
    size = _whole(event, "size", event.size, least=1)
    population = _whole(event, "population", event.population, least=1)
    if size > population:
        raise InputError(
            f"SampledFixedSize(size={size}, population={population}): a sample is at most the population; lower it."
        )
    if size == population:
        return _bounded(2.0 * ratio * ratio)
    return _finite(SampledFixedSize(1.0, ratio, size, population), ratio)


@_simple.register
def _(event: ObjectivePerturbation) -> Event:
    ratio = _not_negative(event, "ratio", event.ratio)
    share = _not_negative(event, "smoothness_share", event.smoothness_share)
    if share >= 1:
        raise InputError(
            f"ObjectivePerturbation(smoothness_share={share}): the smoothness must stay below the strong convexity; "
            "regularize more."
        )
    cost = max(ratio, share)
    return _finite(ObjectivePerturbation(ratio, share), math.inf if math.isinf(ratio) else cost)


@_simple.register
def _(event: BestOf) -> Event:
    rho, gamma = _not_negative(event, "rho", event.rho), _not_negative(event, "gamma", event.gamma)
    if not 0 < gamma < 1:
        raise InputError(f"BestOf(gamma={gamma}): it lies between 0 and 1; a small one makes many draws likely.")
    return _finite(BestOf(rho, gamma), rho)


@_simple.register
def _(event: TokenWalk) -> Event:
    rho = _not_negative(event, "visit_rho", event.visit_rho)
    parties = _whole(event, "parties", event.parties, least=2)
    steps = _whole(event, "steps", event.steps, least=0)
    observers = _whole(event, "observers", event.observers, least=0)
    if observers >= parties:
        raise InputError(
            f"Walk(observers={observers}, parties={parties}): someone must be left to protect; name fewer observers."
        )
    if steps == 0 or (observers == 0 and not event.final_model):
        return Nothing()
    return _finite(TokenWalk(rho, parties, steps, observers, bool(event.final_model)), rho)


@_simple.register
def _(event: Mixture) -> Event:
    weights = tuple(_not_negative(event, "weights", weight) for weight in event.weights)
    if len(weights) != len(event.events) or abs(math.fsum(weights) - 1) > _WEIGHT_TOLERANCE:
        raise InputError(
            f"Mixture(weights={event.weights}): there is one weight for each of the {len(event.events)} events and "
            "they sum to 1; name Nothing() for the rest."
        )
    # What rounding left of the sum is shared out, so that no probability is lost.
    total = math.fsum(weights)
    kept = [
        (weight / total, inner, parts(inner)) for weight, inner in zip(weights, event.events, strict=True) if weight
    ]
    if len({simple for _, _, simple in kept}) == 1:
        # The same thing happens whatever is drawn.
        return kept[0][1] if isinstance(kept[0][1], Composed | Repeated) else _simple(kept[0][1])
    return Mixture(tuple(weight for weight, _, _ in kept), tuple(inner for _, inner, _ in kept))


def _bounded(rho: float) -> Event:
    return _finite(Bounded(rho), rho)


def _finite(event: Event, cost: float) -> Event:
    """The event, nothing when it costs nothing, unbounded when its cost is not finite."""
    if cost == 0:
        return Nothing()
    if math.isinf(cost):
        return Unbounded(f"{type(event).__name__} without a finite bound")
    return event


def _ratio(event: Event, what: str, size: float, against: str, noise: float) -> float:
    """Sensitivity over noise; infinite without noise, zero without sensitivity."""
    size, noise = _not_negative(event, what, size), _not_negative(event, against, noise)
    if size == 0 or math.isinf(noise):
        if math.isinf(size):
            raise InputError(
                f"{type(event).__name__}({what}=inf, {against}=inf): the ratio is undefined; state one of them."
            )
        return 0.0
    return math.inf if noise == 0 else size / noise


def _not_negative(event: Event, name: str, value: object) -> float:
    if type(value) is not bool and isinstance(value, numbers.Real) and float(value) >= 0:  # NaN is not
        return float(value)
    raise InputError(f"{type(event).__name__}({name}={value!r}): a number that is not negative must be given.")


def _whole(event: Event, name: str, value: object, *, least: int) -> int:
    if type(value) is not bool and isinstance(value, numbers.Integral) and int(value) >= least:
        return int(value)
    raise InputError(f"{type(event).__name__}({name}={value!r}): a whole number, at least {least}, must be given.")
