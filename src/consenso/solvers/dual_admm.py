"""Rules of DualConsensusADMM."""

from __future__ import annotations

import math
from typing import Any

from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.solvers.request import Request

NAME = "dual-admm"
PLACE = 3


def refusal(request: Request) -> str | None:
    """Bounded slopes."""
    problem = request.problem
    if math.isinf(problem.loss.slope_bound):
        return f"the slope of the {problem.loss.name} loss is unbounded"
    if not request.takes_everyone:
        return "its records need every party in every round"
    return None


def weakness(request: Request) -> str | None:
    """Proxes beat gradients where slopes jump; elsewhere its steps are no better and cost more."""
    loss = request.problem.loss
    return None if math.isinf(loss.curvature_bound) else f"the {loss.name} loss has no kinks"


def recipe(request: Request) -> tuple[Any, int]:
    """Records as units of consensus."""
    problem = request.problem
    rounds = int(min(max(request.mu * problem.records / math.sqrt(problem.dim), 5), 100))
    return DualConsensusADMM(level="record", step=8.0 / problem.row_bound**2), rounds
