"""Independent Laplace noise. A shift of one coordinate is the worst of its 1-norm (superadditivity)."""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array
from consenso.privacy.accountants import costs
from consenso.privacy.accountants.series import exp_less_line
from consenso.privacy.events import Event, Laplace


@costs.simplify.register
def _(event: Laplace) -> Event:
    shift = costs.ratio(event, "sensitivity", "scale")
    return costs.finite(Laplace(scale=1.0, sensitivity=shift), shift)


@costs.find_rdp.register
def _(part: Laplace, orders: Array) -> Array:
    """Mironov 2017."""
    shift = part.sensitivity / part.scale
    up, down = orders / (2 * orders - 1), (orders - 1) / (2 * orders - 1)
    # up (order - 1) = down order: the linear terms cancel, and what is left is positive.
    less_one = up * exp_less_line((orders - 1) * shift) + down * exp_less_line(-orders * shift)
    large = (orders - 1) * shift + np.log(up + down * np.exp(-(2 * orders - 1) * shift))
    with np.errstate(over="ignore"):
        return np.where((orders - 1) * shift < 1, np.log1p(less_one), large) / (orders - 1)


@costs.find_pure.register
def _(part: Laplace) -> float | None:
    return part.sensitivity / part.scale


@costs.find_rho.register
def _(part: Laplace) -> float | None:
    shift = part.sensitivity / part.scale
    return min(shift**2 / 2, shift)


@costs.delta.register
def _(part: Laplace, epsilon: Array, direction: costs.Direction) -> Array:
    shift = part.sensitivity / part.scale
    inside = -np.expm1(np.minimum(epsilon - shift, 0.0) / 2)
    return np.where(epsilon < -shift, costs.certain_delta(epsilon), inside)


@costs.span.register
def _(part: Laplace, log_tail: float, direction: costs.Direction) -> costs.Span:
    shift = part.sensitivity / part.scale
    return costs.Span(-shift, shift, has_top=True)
