"""From a Renyi curve to epsilon and delta (Canonne, Kamath and Steinke 2020):

    epsilon = min over orders of RDP(order) + log(1 - 1/order) - (log delta + log order) / (order - 1)

Every order gives a valid bound, so the search over orders decides only how tight the result is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from consenso.arrays import Array

Curve: TypeAlias = Callable[[Array], Array]

# Orders less 1 of the first look, and how far it may be extended on either side.
_FIRST_LOOK = np.geomspace(0.05, 1024.0, 40)
_LEAST, _MOST = 1e-6, 1e9
_ZOOMS, _ZOOM_POINTS = 4, 9
# From here on whole orders are as good as any, and cheaper for sampled mechanisms.
_WHOLE_FROM = 128.0
# Orders less 1 for a whole curve of deltas.
_ALL_ROUND = np.geomspace(1e-3, 1e6, 136)


@dataclass(frozen=True)
class Converted:
    """A converted value and the order that gave it."""

    value: float
    order: float


def to_epsilon(curve: Curve, delta: float) -> Converted:
    """The least epsilon at a delta in (0, 1)."""
    log_delta = math.log(delta)

    def at(orders: Array) -> Array:
        return curve(orders) + np.log1p(-1 / orders) - (log_delta + np.log(orders)) / (orders - 1)

    found = _minimum(at)
    return Converted(max(found.value, 0.0), found.order)


def to_log_delta(curve: Curve, epsilon: float) -> Converted:
    """The same bound read for delta, as a logarithm, at most 0."""

    def at(orders: Array) -> Array:
        return (orders - 1) * (curve(orders) - epsilon + np.log1p(-1 / orders)) - np.log(orders)

    found = _minimum(at)
    return Converted(min(found.value, 0.0), found.order)


def to_log_deltas(curve: Curve, epsilons: Array) -> Array:
    """Logarithms of delta at many epsilons, from one look at the curve."""
    orders = _round_orders(1 + _ALL_ROUND)
    divergences = curve(orders)
    bounds = (orders - 1) * (divergences - epsilons[:, None] + np.log1p(-1 / orders)) - np.log(orders)
    return np.asarray(np.minimum(bounds.min(axis=1), 0.0), dtype=np.float64)


def _minimum(function: Curve) -> Converted:
    orders = _round_orders(1 + _FIRST_LOOK)
    values = function(orders)
    while np.argmin(values) == orders.size - 1 and orders[-1] < _MOST and np.isfinite(values[-1]):
        orders, values = _extend(function, orders, values, orders[-1] * np.geomspace(1.5, 8, 4))
    while np.argmin(values) == 0 and orders[0] - 1 > _LEAST:
        orders, values = _extend(function, orders, values, 1 + (orders[0] - 1) * np.geomspace(0.125, 0.7, 4))
    for _ in range(_ZOOMS):
        best = int(np.argmin(values))
        low, high = orders[max(best - 1, 0)], orders[min(best + 1, orders.size - 1)]
        between = np.setdiff1d(_round_orders(1 + np.geomspace(low - 1, high - 1, _ZOOM_POINTS)), orders)
        if not between.size:
            break
        orders, values = _extend(function, orders, values, between)
    best = int(np.argmin(values))
    return Converted(float(values[best]), float(orders[best]))


def _extend(function: Curve, orders: Array, values: Array, more: Array) -> tuple[Array, Array]:
    more = _round_orders(more)
    both = np.concatenate([orders, more])
    found = np.concatenate([values, function(more)])
    places = np.argsort(both)
    return both[places], found[places]


def _round_orders(orders: Array) -> Array:
    return np.unique(np.where(orders >= _WHOLE_FROM, np.rint(orders), orders))
