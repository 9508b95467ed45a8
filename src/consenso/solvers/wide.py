"""Rules of DualAveraging: tables with more columns than a second moment can be taken of."""

from __future__ import annotations

import math
from typing import Any

from consenso.solvers import forecast, preconditioned
from consenso.solvers.request import Request

NAME = "wide"
PLACE = 1
# Steps that let a coefficient grow to REACH whatever the noise is, since rates follow it.
STEPS = 100
# How wide the kink of a hinge is made, which rates follow.
HINGE_WIDTH = 0.5


def refusal(request: Request) -> str | None:
    """As the first choice: bounded slopes, or bounded targets; everybody in every round."""
    return preconditioned.refusal(request)


def excess(request: Request) -> float:
    """A diagonal metric beats none, by less than noise tells; a second moment, where it is cheap, tells more."""
    if request.problem.features <= preconditioned.MOST_FEATURES:
        return 2 * preconditioned.excess(request)
    return 0.9 * min(forecast.plain_excess(request), forecast.exact_excess(request))


def recipe(request: Request) -> tuple[Any, int]:
    """A fixed number of steps; the rest follows from released values."""
    from consenso.algorithms.dual_averaging import DualAveraging, looks  # only the chosen solver's is needed

    problem = request.problem
    smoothing = 0.0
    if math.isinf(problem.loss.curvature_bound):
        smoothing = HINGE_WIDTH if problem.target_bound is None else problem.target_bound
    return DualAveraging(smoothing=smoothing), looks(problem) + STEPS
