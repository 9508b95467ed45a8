"""Rules of DP-SGD."""

from __future__ import annotations

import math
from typing import Any

from consenso.solvers import forecast
from consenso.solvers.request import Request

NAME = "dp-sgd"
PLACE = 9
TAKES_WEIGHTS = True


def refusal(request: Request) -> str | None:
    """It takes every problem."""
    return None


def excess(request: Request) -> float:
    """That of plain steps, twice that where slopes jump."""
    kinks = math.isinf(request.problem.loss.curvature_bound)
    return (2.0 if kinks else 1.0) * forecast.plain_excess(request)


def recipe(request: Request) -> tuple[Any, int]:
    """Full batches; squared losses are clipped at the largest gradient of the zero model."""
    from consenso.algorithms.dp_sgd import DPSGD  # only the chosen solver's is needed

    problem = request.problem
    clip = None
    if math.isinf(problem.loss.slope_bound):
        clip = problem.row_bound * (problem.target_bound or 1.0)
    rounds = int(min(max(request.mu * problem.records / math.sqrt(problem.dim), 5), 100))
    curvature = problem.loss.curvature_bound
    step = 1.0 / (problem.row_bound**2 * (curvature if math.isfinite(curvature) else 1.0))
    return DPSGD(step=4 * step, clip=clip, averaging=0.5), rounds
