"""Nothing is tuned: the figures that `solver="auto"` promises, on Adult and over budgets, sizes and conditions."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.utility import ours
from benchmarks.utility.tasks import Task, adult, housing, synthetic

DELTA = 1e-5


@cache
def adult_with_exact() -> tuple[Task, float]:
    task = adult()
    return task, task.risk(ours.exact(task))


def two(solver: str, epsilon: float) -> tuple[float, float]:
    """Mean accuracy on the standard test part, and mean excess risk, over two seeds; `make bench` has more."""
    task, best = adult_with_exact()
    models = [ours.fit(task, solver, epsilon, DELTA, seed) for seed in range(2)]
    return float(np.mean([task.score(m) for m in models])), float(np.mean([task.risk(m) - best for m in models]))


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "least"), [(0.1, 81.9), (0.5, 83.5), (1.0, 83.9), (3.0, 84.1)])
def test_adult_is_learnt_with_half_the_excess_risk_of_objective_perturbation(data_dir, epsilon, least) -> None:
    accuracy, excess = two("auto", epsilon)
    assert accuracy >= least
    if epsilon > 0.1:
        assert excess <= two("objective-perturbation", epsilon)[1] / 2


def mean_risk(task: Task, epsilon: float) -> float:
    return float(np.mean([task.risk(ours.fit(task, "auto", epsilon, DELTA, seed)) for seed in range(3)]))


def risk_without_a_model(task: Task) -> float:
    return task.risk(np.zeros_like(ours.exact(task)))


@pytest.mark.sweep
@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize(
    "task",
    [
        synthetic(records=1000, features=10, condition=1.0),
        synthetic(records=2000, features=30, condition=5.0),
        synthetic(records=1000, features=20, condition=3.0, sparse=20, kind="regression"),
        synthetic(records=5000, features=60, condition=1.0, sparse=5, kind="regression"),
        synthetic(records=20_000, features=50, condition=30.0, sparse=10, kind="regression"),
    ],
    ids=lambda task: f"{task.kind} {task.name}",
)
def test_a_model_is_never_worse_than_none(task: Task, epsilon: float) -> None:
    assert mean_risk(task, epsilon) <= risk_without_a_model(task)


@pytest.mark.parametrize(
    "epsilons", [(0.05, 0.5, 10.0), pytest.param((0.05, 0.2, 0.5, 1.0, 3.0, 10.0), marks=pytest.mark.slow)]
)
def test_more_budget_is_not_wasted(epsilons) -> None:
    task = synthetic(records=20_000, features=50, condition=100.0)
    risks = [mean_risk(task, epsilon) for epsilon in epsilons]
    assert risks[0] <= risk_without_a_model(task)
    assert all(later < earlier for earlier, later in pairwise(risks))
    assert risks[-1] < task.risk(ours.exact(task)) + 1e-3


def test_a_lasso_finds_the_columns_that_matter() -> None:
    task = synthetic(records=20_000, features=100, condition=1.0, sparse=8, kind="regression")
    exact = ours.exact(task)[:, 0]
    largest = set(np.argsort(-np.abs(exact))[:6])
    for epsilon, most in ((0.5, 50), (1.0, 15), (3.0, 15)):
        model = ours.fit(task, "auto", epsilon, DELTA, 0)[:, 0]
        used = set(np.flatnonzero(model))
        assert largest <= used
        assert len(used) <= most
        assert task.score(model[:, None]) < 1.1 * task.score(exact[:, None])


def test_regression_on_california_housing_needs_little_budget(data_dir) -> None:
    task = housing()
    exact, zero = ours.exact(task), np.zeros((task.X.shape[1], 1))
    for epsilon, worst in ((0.1, 1.05), (1.0, 1.02)):
        model = ours.fit(task, "auto", epsilon, DELTA, 0)
        assert task.score(model) < worst * task.score(exact) < 0.7 * task.score(zero)
