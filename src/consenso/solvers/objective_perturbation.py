"""Rules of ObjectivePerturbation."""

from __future__ import annotations

import math
from typing import Any

from consenso.errors import InputError
from consenso.privacy.calibrate import EpsilonDelta
from consenso.regularizers import L2, NoPenalty
from consenso.solvers import forecast
from consenso.solvers.preconditioned import MOST_FEATURES
from consenso.solvers.request import Request

NAME = "objective-perturbation"
PLACE = 2


def refusal(request: Request) -> str | None:
    """One curator, one record added or removed, a smooth loss of one margin."""
    problem = request.problem
    if not request.is_central:
        return f"one curator minimises over all data, and there are {problem.parties} parties"
    if problem.unit != "record" or problem.adjacency != "add-remove":
        return "its bound is proved for one record that is added or removed"
    if problem.outputs > 1:
        return f"its bound is proved for one score a record, and the {problem.loss.name} loss has {problem.outputs}"
    if math.isinf(problem.loss.slope_bound):
        return f"the slope of the {problem.loss.name} loss is unbounded"
    if math.isinf(problem.loss.curvature_bound):
        return f"the slope of the {problem.loss.name} loss jumps"
    if not isinstance(request.target, EpsilonDelta):
        return f"its rule needs an epsilon and a delta, and the target is {type(request.target).__name__}"
    if problem.features > MOST_FEATURES and not isinstance(problem.regularizer, L2 | NoPenalty):
        return (
            f"its bound needs an exact minimiser, which beyond {MOST_FEATURES} columns is found for a square on all "
            "coefficients only, without an intercept"
        )
    if not request.takes_everyone:
        return "it has one round, in which everybody takes part"
    return None


def excess(request: Request) -> float:
    """That of an exact solution, with noise in all columns."""
    return forecast.exact_excess(request)


def recipe(request: Request) -> tuple[Any, int]:
    from consenso.algorithms.objective_perturbation import ObjectivePerturbation  # only the chosen solver's is needed

    if not isinstance(request.target, EpsilonDelta):
        raise InputError("ObjectivePerturbation: its rule needs EpsilonDelta(epsilon=..., delta=...).")
    target = request.target
    algorithm = ObjectivePerturbation.rule(request.problem, epsilon=target.epsilon, delta=target.delta)
    return algorithm, 1
