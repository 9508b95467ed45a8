"""Rules of DualAveraging: tables with more columns than a second moment can be taken of."""

from __future__ import annotations

import math
from typing import Any

from consenso.algorithms.dual_averaging import DualAveraging, looks
from consenso.solvers import preconditioned
from consenso.solvers.request import Request

NAME = "wide"
PLACE = 1
# Steps that let a coefficient grow to REACH whatever the noise is, since rates follow it.
STEPS = 100


def refusal(request: Request) -> str | None:
    """As the first choice: bounded slopes, or bounded targets; everybody in every round."""
    return preconditioned.refusal(request)


def weakness(request: Request) -> str | None:
    """Where a second moment is cheap, it tells more than its diagonal."""
    features = request.problem.features
    return None if features > preconditioned.MOST_FEATURES else f"{features} columns have a second moment"


def recipe(request: Request) -> tuple[Any, int]:
    """A fixed number of steps; the rest follows from released values."""
    problem = request.problem
    smoothing = 0.0
    if math.isinf(problem.loss.curvature_bound):
        smoothing = preconditioned.HINGE_WIDTH if problem.target_bound is None else problem.target_bound
    return DualAveraging(smoothing=smoothing), looks(problem) + STEPS
