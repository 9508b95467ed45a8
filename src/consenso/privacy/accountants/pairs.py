"""Pairs of distributions that dominate a part: their exact curves delta(epsilon), at every real epsilon.

A pair (P, Q) dominates a mechanism when no two neighbouring outputs are easier to tell apart than P and Q. Its curve
sup_S P(S) - exp(epsilon) Q(S) is all that composition needs. Sampled Gaussians under add-remove have two pairs, for the
unit removed (its contribution is in P) and added (it is in Q): both are composed and the worse one counts.
"""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array
from consenso.privacy.accountants import gaussian
from consenso.privacy.accountants.costs import Direction, certain_delta, delta, has_pair, is_lopsided
from consenso.privacy.accountants.parts import Parts, parts
from consenso.privacy.accountants.scalars import gdp
from consenso.privacy.events import Bounded, Event, Mixture


def is_supported(event: Event) -> bool:
    """Whether every part has a known dominating pair."""
    return all(
        all(is_supported(inner) for inner in part.events) if isinstance(part, Mixture) else has_pair(part)
        for part, _ in parts(event)
    )


def curve(event: Event, epsilon: Array) -> Array | None:
    """The exact delta of a single release, or of one drawn from several; None for any composition of others.

    Gaussian releases count as one. When what was drawn is revealed, the curves of a mixture are averaged.
    """
    if not _is_single(event):
        return None
    found = np.zeros_like(epsilon)
    for direction in directions(event):
        found = np.maximum(found, _single_curve(event, epsilon, direction))
    return found


def _is_single(event: Event) -> bool:
    found = parts(event)
    if all(isinstance(part, Bounded) for part, _ in found):
        return True
    ((part, count), *others) = found
    if others or count > 1:
        return False
    return all(map(_is_single, part.events)) if isinstance(part, Mixture) else is_supported(event)


def _single_curve(event: Event, epsilon: Array, direction: Direction) -> Array:
    mu = gdp(event)
    if mu is not None:
        return np.exp(gaussian.log_delta(mu, epsilon)) if mu else certain_delta(epsilon)
    ((part, _),) = parts(event)
    if not isinstance(part, Mixture):
        return delta(part, epsilon, direction)
    curves = [_single_curve(inner, epsilon, direction) for inner in part.events]
    return np.asarray(np.average(curves, axis=0, weights=part.weights), dtype=np.float64)


def directions(event: Event) -> tuple[Direction, ...]:
    """The directions that have to be composed."""
    return ("remove", "add") if _has_two_directions(parts(event)) else ("remove",)


def _has_two_directions(found: Parts) -> bool:
    return any(
        any(_has_two_directions(parts(inner)) for inner in part.events)
        if isinstance(part, Mixture)
        else is_lopsided(part)
        for part, _ in found
    )
