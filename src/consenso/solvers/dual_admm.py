"""Rules of DualConsensusADMM."""

from __future__ import annotations

import math
from typing import Any

from consenso.solvers import forecast
from consenso.solvers.request import Request

NAME = "dual-admm"
PLACE = 3


def refusal(request: Request) -> str | None:
    problem = request.problem
    if math.isinf(problem.loss.slope_bound):
        return f"the slope of the {problem.loss.name} loss is unbounded"
    if not request.takes_everyone:
        return "its records need every party in every round"
    return None


def excess(request: Request) -> float:
    """That of plain steps where slopes jump; elsewhere its proxes are no better and cost more."""
    kinks = math.isinf(request.problem.loss.curvature_bound)
    return (1.0 if kinks else 1.5) * forecast.plain_excess(request)


def recipe(request: Request) -> tuple[Any, int]:
    """Records as units of consensus."""
    from consenso.algorithms.dual_consensus import DualConsensusADMM  # only the chosen solver's is needed

    problem = request.problem
    rounds = int(min(max(request.mu * problem.records / math.sqrt(problem.dim), 5), 100))
    return DualConsensusADMM(level="record", step=8.0 / problem.row_bound**2), rounds
