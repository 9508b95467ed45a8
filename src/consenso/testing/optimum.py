"""The optimum of a problem from an independent solver, to compare with: cvxpy, which only tests need."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from consenso.engine.in_process import InProcessRun
from consenso.engine.run import objective
from consenso.errors import InputError
from consenso.losses import Absolute, EpsilonInsensitive, Hinge, Huber, Logistic, SmoothedHinge, Softmax, Squared
from consenso.planning.plan import Plan
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, Box, ElasticNet, GroupL1, NoPenalty, Simplex, Sum, Unpenalized
from consenso.shards import Shards


def optimum(problem: Problem, shards: Shards) -> float:
    """The least value of mean_i f_i + r on these shards."""
    try:
        import cvxpy as cp
    except ImportError as error:
        raise InputError("consenso.testing.optimum needs cvxpy; pip install cvxpy.") from error
    cohort = shards.cohort()
    x = cp.Variable(problem.dim)
    rows = cohort._rows.matrix  # a test may look at what nobody else may
    features = rows.toarray() if sparse.issparse(rows) else rows
    weights = np.repeat(problem.scales, np.diff(shards.offsets)) / problem.parties
    scores = features @ cp.reshape(x, (problem.features, problem.outputs), order="C")
    losses = _losses(cp, problem.loss, scores, np.asarray(cohort._targets))
    penalty, constraints = _regularizer(cp, problem.regularizer, x)
    solved = cp.Problem(cp.Minimize(weights @ losses + penalty), constraints)
    for tolerance in (1e-9, 1e-8, 1e-7):
        with warnings.catch_warnings():
            # Whether the tightest tolerance can be reached depends on the last bits of the rows: then the next one is.
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            value = solved.solve(solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
        if solved.status == cp.OPTIMAL:
            return float(value)
    raise InputError("consenso.testing.optimum: cvxpy does not solve this problem to 1e-7; scale its rows.")


def approach_optimum(made: Plan, shards: Shards, tolerance: float, **options: Any) -> tuple[float, float]:
    """Run a plan until its objective is within a tolerance of the optimum: the objective then, and the optimum.

    A tenth of the rounds later it must still be there: who is only passing by goes on. options: those of the run.
    """
    best = optimum(made.problem, shards)
    run, arrived = InProcessRun(made, shards, **options), False
    for round_ in run.rounds():
        if round_ % max(1, made.rounds // 10) == 0:
            before, arrived = arrived, objective(made, shards, run.model) - best <= tolerance * max(1e-3, abs(best))
            if before and arrived:
                break
    return objective(made, shards, run.model), best


def _losses(cp: Any, loss: Any, scores: Any, targets: Any) -> Any:
    if isinstance(loss, Softmax):
        chosen = np.eye(loss.classes)[targets]
        return cp.log_sum_exp(scores, axis=1) - cp.sum(cp.multiply(chosen, scores), axis=1)
    flat = scores[:, 0]
    if isinstance(loss, Logistic):
        return cp.logistic(-cp.multiply(targets, flat))
    if isinstance(loss, Squared):
        return 0.5 * cp.square(flat - targets)
    if isinstance(loss, Huber):
        return 0.5 * cp.huber(flat - targets, loss.threshold)
    if isinstance(loss, Absolute):
        return cp.abs(flat - targets)
    if isinstance(loss, EpsilonInsensitive):
        return cp.pos(cp.abs(flat - targets) - loss.width)
    short = 1 - cp.multiply(targets, flat)
    if isinstance(loss, Hinge):
        return cp.pos(short)
    assert isinstance(loss, SmoothedHinge)
    # The Moreau envelope of the hinge: the least of square + line over how the shortfall is split.
    square = cp.Variable(len(targets), nonneg=True)
    return cp.square(square) / (2 * loss.smoothing) + cp.pos(short - square)


def _regularizer(cp: Any, regularizer: Any, x: Any) -> tuple[Any, list[Any]]:
    if isinstance(regularizer, NoPenalty):
        return 0.0, []
    if isinstance(regularizer, L1):
        return regularizer.strength * cp.norm1(x), []
    if isinstance(regularizer, L2):
        return regularizer.strength / 2 * cp.sum_squares(x), []
    if isinstance(regularizer, ElasticNet):
        return regularizer.l1 * cp.norm1(x) + regularizer.l2 / 2 * cp.sum_squares(x), []
    if isinstance(regularizer, GroupL1):
        size = regularizer.groups
        assert isinstance(size, int)
        return regularizer.strength * cp.sum(cp.norm(cp.reshape(x, (-1, size), order="C"), 2, axis=1)), []
    if isinstance(regularizer, Box):
        return 0.0, [x >= regularizer.low, x <= regularizer.high]
    if isinstance(regularizer, Ball):
        return 0.0, [cp.norm(x, 2) <= regularizer.radius]
    if isinstance(regularizer, Simplex):
        return 0.0, [x >= 0, cp.sum(x) == regularizer.total]
    if isinstance(regularizer, Unpenalized):
        return _regularizer(cp, regularizer.inner, x[: -regularizer.last])
    assert isinstance(regularizer, Sum)
    parts = [_regularizer(cp, part, x) for part in regularizer.parts]
    return sum(part[0] for part in parts), [constraint for part in parts for constraint in part[1]]
