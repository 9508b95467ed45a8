"""Every event as a list of simple parts with counts, checked.

Accountants add `count * cost(part)` over `parts(event)`: compositions and repeats are opened here and nowhere else.
Degenerate events are put in the form that they amount to: no noise is `Unbounded`, no sensitivity is nothing,
sampling at rate 1 is a Gaussian, and a Gaussian is `Bounded` (both are exactly sqrt(2 rho)-GDP).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

import consenso.privacy.accountants.kinds  # noqa: F401 - every kind answers for its event
from consenso.errors import InputError
from consenso.privacy.accountants.costs import check_number, simplify, whole
from consenso.privacy.events import Composed, Event, Gaussian, Mixture, Nothing, Repeated, Told, Unbounded

Parts: TypeAlias = tuple[tuple[Event, int], ...]

# How far the weights of a mixture may miss 1 by rounding.
_WEIGHT_TOLERANCE = 1e-9


@lru_cache(maxsize=1024)
def parts(event: Event) -> Parts:
    """The distinct parts of an event and how often each happened; empty when nothing was released."""
    counts: dict[Event, int] = {}
    stack: list[tuple[Event, int]] = [(event, 1)]
    while stack:
        current, count = stack.pop()
        if isinstance(current, Composed):
            stack.extend((inner, count) for inner in reversed(current.events))
        elif isinstance(current, Repeated):
            times = whole(current, "count", least=0)
            if times:
                stack.append((current.event, count * times))
        else:
            part = simplify(current)
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
    return check_number(event, "excess", getattr(event, "excess", 0.0))


@lru_cache(maxsize=1024)
def find_told(event: Event) -> float:
    """The probability, over the whole tree, that something is told by name which one unit alone has.

    It is no part of any curve, and is added to delta (docs/privacy.md#what-may-be-told).
    """
    parts(event)
    if isinstance(event, Composed):
        return math.fsum(find_told(inner) for inner in event.events)
    if isinstance(event, Repeated):
        return event.count * find_told(event.event)
    if isinstance(event, Mixture):
        return math.fsum(w * find_told(inner) for w, inner in zip(event.weights, event.events, strict=True))
    return min(event.probability, 1.0) if isinstance(event, Told) else 0.0


@simplify.register
def _(event: Nothing | Unbounded) -> Event:
    return event


@simplify.register
def _(event: Mixture) -> Event:
    weights = tuple(check_number(event, "weights", weight) for weight in event.weights)
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
        return kept[0][1] if isinstance(kept[0][1], Composed | Repeated) else simplify(kept[0][1])
    return Mixture(tuple(weight for weight, _, _ in kept), tuple(inner for _, inner, _ in kept))
