"""Rules of PreconditionedFixedPoint."""

from __future__ import annotations

import math

from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.solvers.request import Recipe, Request

NAME = "preconditioned"
MOST_STEPS = 100


def refusal(request: Request) -> str | None:
    """Bounded slopes and curvature, everybody in every round."""
    loss = request.problem.loss
    if math.isinf(loss.slope_bound):
        return f"the slope of the {loss.name} loss is unbounded"
    if math.isinf(loss.curvature_bound):
        return f"the slope of the {loss.name} loss jumps"
    if not request.takes_everyone:
        return "it needs every party in every round"
    return None


def recipe(request: Request) -> Recipe:
    """One round for the second moment, then steps."""
    return Recipe(algorithm=PreconditionedFixedPoint(), rounds=1 + MOST_STEPS)
