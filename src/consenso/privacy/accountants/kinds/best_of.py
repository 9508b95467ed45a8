"""The best of a random number of runs (docs/privacy.md#private-search)."""

from __future__ import annotations

import math

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.accountants.costs import find_rdp, finite, not_negative, simplify
from consenso.privacy.events import BestOf, Event


@simplify.register
def _(event: BestOf) -> Event:
    rho, gamma = not_negative(event, "rho"), not_negative(event, "gamma")
    if not 0 < gamma < 1:
        raise InputError(f"BestOf(gamma={gamma}): it lies between 0 and 1; a small one makes many draws likely.")
    return finite(BestOf(rho, gamma), rho)


@find_rdp.register
def _(part: BestOf, orders: Array) -> Array:
    """Papernot and Steinke 2022, Theorem 2 with eta = 0; its second order is the best one, sqrt(log(1/gamma) / rho)."""
    tail = -math.log(part.gamma)
    chosen = 2 * math.sqrt(tail * part.rho) - part.rho if tail > part.rho else tail
    mean = (1 / part.gamma - 1) / tail
    return np.asarray(orders * part.rho + chosen + math.log(mean) / (orders - 1), dtype=np.float64)
