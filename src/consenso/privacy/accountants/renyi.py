"""Renyi differential privacy: the curve of every event at real orders above 1."""

from __future__ import annotations

import math

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.accountants.costs import find_rdp
from consenso.privacy.accountants.parts import parts
from consenso.privacy.accountants.series import log_weighted_exp
from consenso.privacy.events import Event, Mixture, Unbounded


def rdp(event: Event, order: float) -> float:
    """The Renyi divergence bound of an event at one real order above 1; infinite where there is none."""
    if not 1 < order < math.inf:
        raise InputError(f"rdp(order={order}): an order is a finite number above 1; give one.")
    return float(curve(event, np.array([float(order)]))[0])


def curve(event: Event, orders: Array) -> Array:
    """The bound at many orders above 1."""
    total = np.zeros_like(orders)
    for part, count in parts(event):
        total += count * find_rdp(part, orders)
    return total


@find_rdp.register
def _(part: Unbounded, orders: Array) -> Array:
    return np.full_like(orders, np.inf)


@find_rdp.register
def _(part: Mixture, orders: Array) -> Array:
    """What happened is revealed and does not depend on the data: the moments are averaged."""
    inner = np.stack([curve(event, orders) for event in part.events])
    return log_weighted_exp(np.array(part.weights), (orders - 1) * inner) / (orders - 1)
