"""Gaussian releases, whatever is known of them: one shift, a bound on all shifts, or a rho alone."""

from __future__ import annotations

import math

import numpy as np

from consenso.arrays import Array
from consenso.privacy.accountants import gaussian
from consenso.privacy.accountants.costs import (
    Direction,
    Span,
    delta,
    find_rdp,
    find_rho,
    finite,
    normal_reach,
    not_negative,
    ratio,
    simplify,
    span,
)
from consenso.privacy.events import ZCDP, Bounded, Event, Gaussian


def simplify_rho(rho: float) -> Event:
    """A Gaussian release in its plainest form: exactly sqrt(2 rho)-GDP."""
    return finite(Bounded(rho), rho)


@simplify.register
def _(event: Gaussian) -> Event:
    shift = ratio(event, "sensitivity", "std")
    return simplify_rho(0.5 * shift * shift)  # a product that is too large is infinite, a power raises


@simplify.register
def _(event: Bounded) -> Event:
    return simplify_rho(not_negative(event, "rho"))


@simplify.register
def _(event: ZCDP) -> Event:
    rho = not_negative(event, "rho")
    return finite(ZCDP(rho), rho)


@find_rdp.register
def _(part: Bounded | ZCDP, orders: Array) -> Array:
    return orders * part.rho


@find_rho.register
def _(part: Bounded | ZCDP) -> float | None:
    return part.rho


@delta.register
def _(part: Bounded, epsilon: Array, direction: Direction) -> Array:
    return np.exp(gaussian.log_delta(math.sqrt(2 * part.rho), epsilon))


@span.register
def _(part: Bounded, log_tail: float, direction: Direction) -> Span:
    width = math.sqrt(2 * part.rho) * normal_reach(log_tail)
    return Span(part.rho - width, part.rho + width)
