"""What the data of every user cost whoever sees the end: in a fixed order, a random one, and with random stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.privacy.accountants import epsilon as cheapest
from consenso.privacy.accountants import rdp
from consenso.privacy.events import Bounded, Event
from consenso.privacy.theorems.gradient_admm import (
    GradientIteration,
    GradientRandomOrder,
    GradientRandomStopping,
    GradientVisits,
)

ORDER = 2.0
POSITIONS = 41


def positions(*, users: int, convexity: float, smoothness: float, std: float, delta: float) -> dict[str, Any]:
    """Renyi divergence of order 2 and epsilon by position, with step, penalty, gap and singular value 1."""
    at = np.unique(np.linspace(1, users, min(users, POSITIONS)).astype(int))
    iteration = GradientIteration(
        step=1.0,
        penalty=1.0,
        std=std,
        gradient_gap=1.0,
        smoothness=smoothness,
        strong_convexity=convexity,
        smallest_singular_value=1.0,
        largest_singular_value=1.0,
        rows=1,
        columns=2,
    )
    fixed: list[Event] = [
        GradientVisits(iteration=iteration, iterations=users, positions=(t,)).event() for t in at.tolist()
    ]
    stopped: list[Event] = [
        GradientRandomStopping(iteration=iteration, users=users, position=t).event() for t in at.tolist()
    ]
    shuffled: list[Event] = [GradientRandomOrder(iteration=iteration, users=users).event()]
    seen: list[Event] = [Bounded(iteration.own_rho)]
    told: dict[str, Any] = {"at": at}
    for name, events in (
        ("fixed order", fixed),
        ("random order", shuffled),
        ("random stopping", stopped),
        ("every iterate seen", seen),
    ):
        told[name] = {
            "order 2": [rdp(event, ORDER) for event in events],
            "epsilon": [cheapest(event, delta) for event in events],
        }
    return told
