"""Laws of every estimator with nothing set: a budget that grows reaches the exact fit, and units do not matter."""

from __future__ import annotations

import inspect
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from tests.estimators.discovery import NAMES

import consenso
from consenso.arrays import Array

LINEAR = [name for name in NAMES if "alpha" in inspect.signature(getattr(consenso, name)).parameters]
CASES = [(name, classes) for name in LINEAR for classes in ((2, 3) if "Logistic" in name else (2,))]
RECORDS = 5000
RNG = np.random.default_rng(7)
# Columns that go together, and one that is small.
X = RNG.normal(size=(RECORDS, 4)) @ np.array([[1, 0.6, 0, 0], [0, 1, 0.3, 0], [0, 0, 1, 0], [0, 0, 0, 0.3]])
MARGIN = X @ [1.0, -1.0, 0.5, 1.0]
TARGETS = MARGIN + 0.4 * RNG.normal(size=RECORDS) + 2.0
LABELS = {
    2: (MARGIN + 0.5 * RNG.logistic(size=RECORDS) > 0).astype(int),
    3: np.digitize(MARGIN + 0.5 * RNG.logistic(size=RECORDS), [-1.0, 1.0]),
}
LONGEST, LARGEST = float(np.linalg.norm(X, axis=1).max()), float(np.abs(TARGETS).max())


@cache
def fit(name: str, classes: int, epsilon: float, *, unit: float = 1.0, rows: float = 1.0, targets: float = 1.0) -> Any:
    """A fit to the table times `unit` with bounds that are `rows` and `targets` times too wide."""
    kind = getattr(consenso, name)
    own: dict[str, Any] = {"classes": list(range(classes))}
    if not is_classifier(kind()):
        own = {"target_bound": targets * unit * LARGEST}
    model = kind(
        epsilon=epsilon,
        delta=1e-5,
        row_bound=rows * unit * LONGEST * 1.0001,
        adjacency="add-remove",
        records=RECORDS,
        random_state=0,
        **own,
    )
    return model.fit(unit * X, LABELS[classes] if is_classifier(model) else unit * TARGETS)


def scores(model: Any, unit: float = 1.0) -> Array:
    return model.decision_function(unit * X) if is_classifier(model) else model.predict(unit * X) / unit


def loss(name: str, classes: int, found: Array) -> float:
    """The mean loss that an estimator is about, at scores."""
    if name == "PrivateLogisticRegression":
        table = np.stack([-found / 2, found / 2], axis=1) if classes == 2 else found
        return float(np.mean(np.log(np.exp(table).sum(axis=1)) - table[np.arange(RECORDS), LABELS[classes]]))
    if name == "PrivateLinearSVC":
        return float(np.maximum(0, 1 - (2 * LABELS[2] - 1) * found).mean())
    residuals = found - TARGETS
    return float(np.abs(residuals).mean() if "LAD" in name else np.square(residuals).mean() / 2)


@cache
def ends(name: str, classes: int) -> tuple[float, float]:
    """The least loss, and that of the best constant model."""
    same = "PrivateRidge" if name == "PrivateHuberRegressor" else name  # its noise is Gaussian
    model = getattr(consenso, same)(epsilon=float("inf"), alpha=1e-9)
    exact = scores(model.fit(X, LABELS[classes] if is_classifier(model) else TARGETS))
    if name == "PrivateLogisticRegression":
        logs = np.log(np.bincount(LABELS[classes]) / RECORDS)
        constant = np.tile(logs, (RECORDS, 1)) if classes > 2 else np.full(RECORDS, logs[1] - logs[0])
    else:
        middle = {"PrivateLinearSVC": 0.0, "PrivateLADRegressor": float(np.median(TARGETS))}
        constant = np.full(RECORDS, middle.get(name, float(TARGETS.mean())))
    return loss(name, classes, exact), loss(name, classes, constant)


def share_lost(name: str, classes: int, epsilon: float, **bounds: float) -> float:
    """The excess over that of the constant model."""
    least, most = ends(name, classes)
    return (loss(name, classes, scores(fit(name, classes, epsilon, **bounds))) - least) / (most - least)


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_a_budget_that_grows_reaches_the_exact_fit(name: str, classes: int) -> None:
    lost = [share_lost(name, classes, epsilon) for epsilon in (3.0, 8.0, 30.0, 100.0)]
    assert lost[0] < 0.02
    # One seed: noise may be kinder at the smaller of two budgets, where hardly any is left.
    assert all(later <= max(earlier, 1e-3) for earlier, later in pairwise(lost))
    assert lost[-1] < 1e-3


@pytest.mark.parametrize("epsilon", [3.0, 30.0, 300.0])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_all_of_a_budget_is_spent_where_releases_share_it(adjacency: str, epsilon: float) -> None:
    # Under replace-one shortened rows are counted, under add-remove the records: both share one mu with the fit.
    model = consenso.PrivateRidge(
        epsilon=epsilon, delta=1e-5, row_bound=9.0, target_bound=8.0, adjacency=adjacency, random_state=0
    )
    spent = model.fit(X[:200], TARGETS[:200]).guarantee_.epsilon(1e-5)
    assert 0.99 * epsilon < spent <= epsilon


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_bounds_that_are_too_wide_cost_noise_only(name: str, classes: int) -> None:
    assert share_lost(name, classes, 100.0, rows=10.0) < 1e-3
    if not is_classifier(getattr(consenso, name)()):
        assert share_lost(name, classes, 100.0, targets=10.0) < 1e-3


@pytest.mark.parametrize("name", [name for name in LINEAR if not is_classifier(getattr(consenso, name)())])
def test_generous_target_bounds_cost_little(name: str) -> None:
    # 1 % of what there is to learn, where bounds that fit lose 0.1 %.
    assert share_lost(name, 2, 3.0) < 2e-3
    assert share_lost(name, 2, 3.0, targets=10.0) < 1e-2


@pytest.mark.parametrize("name", ["PrivateLasso", "PrivateElasticNet", "PrivateLADRegressor"])
def test_sparse_answers_stay_sparse_and_find_what_matters(name: str) -> None:
    rows = RNG.normal(size=(4000, 30))
    model = np.zeros(30)
    model[:4] = 1.0, -1.0, 0.7, 0.5
    y = rows @ model + 0.5 * RNG.normal(size=4000)
    for epsilon in (1.0, 3.0):
        made = getattr(consenso, name)(
            epsilon=epsilon, row_bound=9.0, target_bound=8.0, adjacency="add-remove", records=4000, random_state=0
        )
        found = made.fit(rows, y).coef_
        assert np.all(found[:4])
        assert np.mean(found[4:] == 0) > 0.5
        assert np.square(found - model).sum() < 0.01 * np.square(model).sum()


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_units_do_not_matter(name: str, classes: int, unit: float) -> None:
    one, other = scores(fit(name, classes, 3.0)), scores(fit(name, classes, 3.0, unit=unit), unit)
    np.testing.assert_allclose(other, one, atol=1e-4)
