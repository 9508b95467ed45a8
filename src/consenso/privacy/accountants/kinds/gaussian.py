"""Gaussian releases, whatever is known of them: one shift, a bound on all shifts, or a rho alone."""

from __future__ import annotations

import math

import numpy as np

from consenso.arrays import Array
from consenso.privacy.accountants import costs, gaussian
from consenso.privacy.events import ZCDP, Bounded, Event, Gaussian


def simplify_rho(rho: float) -> Event:
    """A Gaussian release in its plainest form: exactly sqrt(2 rho)-GDP."""
    return costs.finite(Bounded(rho), rho)


@costs.simplify.register
def _(event: Gaussian) -> Event:
    shift = costs.ratio(event, "sensitivity", "std")
    return simplify_rho(0.5 * shift * shift)  # a product that is too large is infinite, a power raises


@costs.simplify.register
def _(event: Bounded) -> Event:
    return simplify_rho(costs.not_negative(event, "rho"))


@costs.simplify.register
def _(event: ZCDP) -> Event:
    rho = costs.not_negative(event, "rho")
    return costs.finite(ZCDP(rho), rho)


@costs.find_rdp.register
def _(part: Bounded | ZCDP, orders: Array) -> Array:
    return orders * part.rho


@costs.find_rho.register
def _(part: Bounded | ZCDP) -> float | None:
    return part.rho


@costs.delta.register
def _(part: Bounded, epsilon: Array, direction: costs.Direction) -> Array:
    return np.exp(gaussian.log_delta(math.sqrt(2 * part.rho), epsilon))


@costs.span.register
def _(part: Bounded, log_tail: float, direction: costs.Direction) -> costs.Span:
    width = math.sqrt(2 * part.rho) * costs.normal_reach(log_tail)
    return costs.Span(part.rho - width, part.rho + width)
