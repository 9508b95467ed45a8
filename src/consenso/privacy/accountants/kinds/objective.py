"""Objective perturbation released once: the exact curve of Redberg, Koskela and Wang 2023 (docs/privacy.md).

With r = ratio, l = -log(1 - smoothness_share), h = r^2 / 2 and H the curve of an r-GDP mechanism,

    delta(epsilon) = 2 H(epsilon - l)                 for epsilon > l + h,
                   = 1 - exp(e) (1 - 2 H(h))          otherwise, e = epsilon - l - h.

The second line is linear in exp(epsilon) and meets the first with the same slope, so the curve is convex in
exp(epsilon); a convex curve that starts at 1 lies below that line also for negative epsilon. It is therefore the curve
of a pair of distributions that dominates the mechanism, and may be composed as such.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.accountants import costs, gaussian
from consenso.privacy.events import Event, ObjectivePerturbation


def floor(part: ObjectivePerturbation) -> float:
    """No noise brings epsilon below this."""
    return -math.log1p(-part.smoothness_share)


def least_loss(part: ObjectivePerturbation) -> float:
    """Where the linear part of the curve ends."""
    return floor(part) + part.ratio**2 / 2


def log_delta(part: ObjectivePerturbation, epsilon: Array) -> Array:
    """Logarithm of delta at every real epsilon."""
    if part.ratio == 0:
        # The noise has drowned the linear term; only the curvature differs between the worlds.
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(-np.expm1(epsilon - floor(part)), 0.0))
    bend = least_loss(part)
    beyond = np.maximum(epsilon, bend)
    curved = math.log(2) + gaussian.log_delta(part.ratio, beyond - floor(part))
    at_bend = 2 * math.exp(float(gaussian.log_delta(part.ratio, np.array([part.ratio**2 / 2]))[0]))
    line = -np.expm1(np.minimum(epsilon - bend, 0.0)) + np.exp(np.minimum(epsilon - bend, 0.0)) * at_bend
    return np.minimum(np.where(epsilon > bend, curved, np.log(line)), 0.0)


@costs.simplify.register
def _(event: ObjectivePerturbation) -> Event:
    ratio, share = costs.not_negative(event, "ratio"), costs.not_negative(event, "smoothness_share")
    if share >= 1:
        raise InputError(
            f"ObjectivePerturbation(smoothness_share={share}): the smoothness must stay below the strong convexity; "
            "regularize more."
        )
    return costs.finite(ObjectivePerturbation(ratio, share), max(ratio, share))


@costs.find_rdp.register
def _(part: ObjectivePerturbation, orders: Array) -> Array:
    swing = math.log(2) + log_ndtr((orders - 1) * part.ratio)
    return np.asarray(floor(part) + orders * part.ratio**2 / 2 + swing / (orders - 1), dtype=np.float64)


@costs.find_rho.register
def _(part: ObjectivePerturbation) -> float | None:
    # Every term of RDP / order decreases with the order: this is the limit at order 1.
    return floor(part) + part.ratio**2 / 2 + part.ratio * math.sqrt(2 / math.pi)


@costs.delta.register
def _(part: ObjectivePerturbation, epsilon: Array, direction: costs.Direction) -> Array:
    return np.exp(log_delta(part, epsilon))


@costs.span.register
def _(part: ObjectivePerturbation, log_tail: float, direction: costs.Direction) -> costs.Span:
    bend = least_loss(part)
    return costs.Span(bend, bend + part.ratio * costs.normal_reach(log_tail - math.log(2)))
