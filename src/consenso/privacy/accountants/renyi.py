"""Renyi differential privacy: the curve of every event at real orders above 1."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np
from scipy.special import log_ndtr

from consenso.arrays import Array
from consenso.errors import InputError, UnsupportedEventError
from consenso.privacy.accountants import gamma_norm, groups
from consenso.privacy.accountants.parts import parts
from consenso.privacy.accountants.sampled import fixed_size_rdp, poisson_rdp
from consenso.privacy.accountants.series import exp_less_line, log_weighted_exp
from consenso.privacy.accountants.walk import walk_rdp
from consenso.privacy.events import (
    ZCDP,
    BestOf,
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
    Unbounded,
)


def rdp(event: Event, order: float) -> float:
    """The Renyi divergence bound of an event at one real order above 1; infinite where there is none."""
    if not 1 < order < math.inf:
        raise InputError(f"rdp(order={order}): an order is a finite number above 1; give one.")
    return float(curve(event, np.array([float(order)]))[0])


def curve(event: Event, orders: Array) -> Array:
    """The bound at many orders above 1."""
    total = np.zeros_like(orders)
    for part, count in parts(event):
        total += count * _cost(part, orders)
    return total


@singledispatch
def _cost(part: object, orders: Array) -> Array:
    raise UnsupportedEventError(f"rdp({type(part).__name__}): no Renyi curve is known for this event.")


@_cost.register
def _(part: Unbounded, orders: Array) -> Array:
    return np.full_like(orders, np.inf)


@_cost.register
def _(part: Bounded, orders: Array) -> Array:
    return orders * part.rho


@_cost.register
def _(part: ZCDP, orders: Array) -> Array:
    return orders * part.rho


@_cost.register
def _(part: Laplace, orders: Array) -> Array:
    """Mironov 2017; a shift of one coordinate is the worst of its 1-norm (superadditivity)."""
    shift = part.sensitivity / part.scale
    up, down = orders / (2 * orders - 1), (orders - 1) / (2 * orders - 1)
    # up (order - 1) = down order: the linear terms cancel, and what is left is positive.
    less_one = up * exp_less_line((orders - 1) * shift) + down * exp_less_line(-orders * shift)
    large = (orders - 1) * shift + np.log(up + down * np.exp(-(2 * orders - 1) * shift))
    with np.errstate(over="ignore"):
        return np.where((orders - 1) * shift < 1, np.log1p(less_one), large) / (orders - 1)


@_cost.register
def _(part: GammaNorm, orders: Array) -> Array:
    shift = part.sensitivity / part.scale
    return np.minimum(gamma_norm.rdp(shift, part.dim, orders), _cost(Pure(shift), orders))


@_cost.register
def _(part: SampledGroup, orders: Array) -> Array:
    return groups.rdp(part, orders)


@_cost.register
def _(part: Pure, orders: Array) -> Array:
    """Randomized response is the worst of all epsilon-DP mechanisms (Bun and Steinke 2016)."""
    reach = (orders - 1) * part.epsilon
    lean = math.tanh(part.epsilon / 2)
    small = np.minimum(reach, 1.0)
    near = np.log1p(2 * np.sinh(small / 2) ** 2 + lean * np.sinh(small))
    far = reach + np.log((1 + lean) / 2 + (1 - lean) / 2 * np.exp(-2 * reach))
    return np.where(reach < 1, near, far) / (orders - 1)


@_cost.register
def _(part: Sampled, orders: Array) -> Array:
    return poisson_rdp(part.contribution / part.std, part.rate, part.adjacency, orders)


@_cost.register
def _(part: SampledFixedSize, orders: Array) -> Array:
    return fixed_size_rdp(part.contribution / part.std, part.size, part.population, orders)


@_cost.register
def _(part: TokenWalk, orders: Array) -> Array:
    return walk_rdp(part.visit_rho, part.parties, part.steps, part.observers, part.final_model, orders)


@_cost.register
def _(part: ObjectivePerturbation, orders: Array) -> Array:
    """Redberg, Koskela and Wang 2023, see docs/privacy.md."""
    swing = math.log(2) + log_ndtr((orders - 1) * part.ratio)
    total = -math.log1p(-part.smoothness_share) + orders * part.ratio**2 / 2 + swing / (orders - 1)
    return np.asarray(total, dtype=np.float64)


@_cost.register
def _(part: BestOf, orders: Array) -> Array:
    """Papernot and Steinke 2022, Theorem 2 with eta = 0; its second order is the best one, sqrt(log(1/gamma) / rho)."""
    tail = -math.log(part.gamma)
    chosen = 2 * math.sqrt(tail * part.rho) - part.rho if tail > part.rho else tail
    mean = (1 / part.gamma - 1) / tail
    return np.asarray(orders * part.rho + chosen + math.log(mean) / (orders - 1), dtype=np.float64)


@_cost.register
def _(part: Mixture, orders: Array) -> Array:
    """What happened is revealed and does not depend on the data: the moments are averaged."""
    inner = np.stack([curve(event, orders) for event in part.events])
    return log_weighted_exp(np.array(part.weights), (orders - 1) * inner) / (orders - 1)
