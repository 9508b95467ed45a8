"""Rules of DualAveraging: tables with more columns than a second moment can be taken of."""

from __future__ import annotations

import math
from typing import Any

from consenso.algorithms.preconditioning import target_counts
from consenso.solvers import forecast, preconditioned
from consenso.solvers.request import Request

NAME = "wide"
# Gaussian releases that share one mu: there is noise for any.
MEETS_ANY_MU = True
PLACE = 1
# Steps that let a coefficient grow to REACH whatever the noise is, since rates follow it.
STEPS = 100
# Directions that are looked for in which columns move together: more cost time, and none of them budget.
DIRECTIONS = 8
# Beyond so many columns the vectors of all directions are longer than most tables.
MOST_COLUMNS = 100_000
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
    from consenso.algorithms.dual_averaging import DualAveraging  # only the chosen solver's is needed

    problem = request.problem
    smoothing = 0.0
    if math.isinf(problem.loss.curvature_bound):
        smoothing = HINGE_WIDTH if problem.target_bound is None else problem.target_bound
    share, bins = target_counts.SHARE, 0
    if problem.loss.targets == "real":
        share = forecast.numbers_share(request, share)
        bins = target_counts.choose_bins(math.sqrt(share) / forecast.gradient_noise(request))
    made = DualAveraging(
        smoothing=smoothing,
        directions=_directions(request),
        target_bins=bins,
        counts_share=share,
        constant=request.constant or 0.0,
        lengths=problem.loss.is_likelihood,
    )
    return made, made.other_rounds(problem) + STEPS


def _directions(request: Request) -> int:
    """How many directions are looked for: public facts say whether noise leaves any to be found that are worth it.

    Whether rows have one is told by a sketch of them, once it is asked for.
    """
    from consenso.algorithms.averaging.directions import LENGTHS_SHARE, PASSES, RANGE_SHARE, find_least, least_worth
    from consenso.algorithms.averaging.sketch import SKETCH_SHARE

    problem = request.problem
    worth = least_worth(RANGE_SHARE + SKETCH_SHARE + 2 * LENGTHS_SHARE)
    noise = forecast.gradient_noise(request) * math.sqrt(PASSES / RANGE_SHARE)
    part = find_least(noise, problem.features, DIRECTIONS)
    return DIRECTIONS if problem.features <= MOST_COLUMNS and part <= worth else 0
