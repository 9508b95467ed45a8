"""Any epsilon-differentially private mechanism: randomized response is the worst of all."""

from __future__ import annotations

import math

import numpy as np

from consenso.arrays import Array
from consenso.privacy.accountants import costs
from consenso.privacy.events import Event, Pure


@costs.simplify.register
def _(event: Pure) -> Event:
    epsilon = costs.not_negative(event, "epsilon")
    return costs.finite(Pure(epsilon), epsilon)


@costs.find_rdp.register
def _(part: Pure, orders: Array) -> Array:
    """Bun and Steinke 2016."""
    reach = (orders - 1) * part.epsilon
    lean = math.tanh(part.epsilon / 2)
    small = np.minimum(reach, 1.0)
    near = np.log1p(2 * np.sinh(small / 2) ** 2 + lean * np.sinh(small))
    far = reach + np.log((1 + lean) / 2 + (1 - lean) / 2 * np.exp(-2 * reach))
    return np.where(reach < 1, near, far) / (orders - 1)


@costs.find_pure.register
def _(part: Pure) -> float | None:
    return part.epsilon


@costs.find_rho.register
def _(part: Pure) -> float | None:
    # RDP is at most order epsilon^2 / 2 (Bun and Steinke 2016), and at most epsilon.
    return min(part.epsilon**2 / 2, part.epsilon)


@costs.delta.register
def _(part: Pure, epsilon: Array, direction: costs.Direction) -> Array:
    inside = -np.expm1(np.minimum(epsilon - part.epsilon, 0.0)) / (1 + math.exp(-part.epsilon))
    return np.where(epsilon < -part.epsilon, costs.certain_delta(epsilon), inside)


@costs.span.register
def _(part: Pure, log_tail: float, direction: costs.Direction) -> costs.Span:
    return costs.Span(-part.epsilon, part.epsilon, has_top=True)
