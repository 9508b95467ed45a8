"""epsilon=inf is scikit-learn's fit: the same objective to 1e-5, and mostly the same coefficients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import ElasticNet, HuberRegressor, Lasso, LogisticRegression, QuantileRegressor, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from consenso import (
    PrivateElasticNet,
    PrivateHuberRegressor,
    PrivateLADRegressor,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateRidge,
)

INF = math.inf


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X, y


def agree(ours: float, theirs: float) -> None:
    """Ours is no worse than 1e-5, nor lower than a solver that has converged allows."""
    assert ours == pytest.approx(theirs, rel=1e-5)


def penalty(coef, alpha, l1_ratio) -> float:
    return alpha * float(l1_ratio * np.abs(coef).sum() + (1 - l1_ratio) / 2 * np.square(coef).sum())


def log_loss(model, X, y) -> float:
    codes = np.searchsorted(model.classes_, y)
    return -float(np.mean(model.predict_log_proba(X)[np.arange(len(y)), codes]))


@pytest.mark.sweep
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0, 0.4])
def test_logistic_regression(cancer, fit_intercept, l1_ratio) -> None:
    X, y = (each[::3] for each in cancer)  # saga takes seconds on all of them
    alpha = 0.02
    kind = {"solver": "saga" if l1_ratio else "lbfgs", "max_iter": 50_000, "tol": 1e-9}
    theirs = LogisticRegression(C=1 / (alpha * len(y)), l1_ratio=l1_ratio, fit_intercept=fit_intercept, **kind).fit(
        X, y
    )
    ours = PrivateLogisticRegression(epsilon=INF, alpha=alpha, l1_ratio=l1_ratio, fit_intercept=fit_intercept).fit(X, y)
    value = [log_loss(model, X, y) + penalty(model.coef_, alpha, l1_ratio) for model in (ours, theirs)]
    agree(*value)
    assert value[0] <= value[1] + 1e-9
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)


def test_logistic_regression_by_default() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    theirs = LogisticRegression(max_iter=10_000, tol=1e-10).fit(X, names)
    ours = PrivateLogisticRegression(epsilon=INF).fit(X, names)
    agree(*[log_loss(model, X, names) + penalty(model.coef_, 1 / len(y), 0.0) for model in (ours, theirs)])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.coef_.shape == (3, 4)
    assert ours.decision_function(X).shape == (150, 3)


@pytest.mark.parametrize("scaling", [None, 3.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_svc_with_its_penalized_intercept(cancer, fit_intercept, scaling) -> None:
    X, y = cancer
    alpha, column = 1e-2, scaling or 1.0
    theirs = LinearSVC(
        loss="hinge",
        C=1 / (alpha * len(y)),
        fit_intercept=fit_intercept,
        intercept_scaling=column,
        tol=1e-9,
        max_iter=10_000_000,
    ).fit(X, y)
    ours = PrivateLinearSVC(epsilon=INF, alpha=alpha, fit_intercept=fit_intercept, intercept_scaling=scaling).fit(X, y)

    def objective(model) -> float:
        hinge = np.maximum(0.0, 1 - (2 * y - 1) * model.decision_function(X))
        shift = float(np.ravel(model.intercept_)[0]) / column
        return float(hinge.mean()) + penalty(np.append(model.coef_, shift), alpha, 0.0)

    agree(objective(ours), objective(theirs))
    assert objective(ours) <= objective(theirs) + 1e-9
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [None, 1e-3])
def test_ridge(diabetes, fit_intercept, alpha) -> None:
    X, y = diabetes
    theirs = Ridge(alpha=1.0 if alpha is None else alpha * len(y), fit_intercept=fit_intercept).fit(X, y)
    ours = PrivateRidge(epsilon=INF, alpha=alpha, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-9, abs=1e-9)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs", "l1_ratio"),
    [
        (PrivateLasso(epsilon=INF, alpha=0.2), Lasso(alpha=0.2, tol=1e-12, max_iter=100_000), 1.0),
        (PrivateLasso(epsilon=INF), Lasso(), 1.0),
        (
            PrivateElasticNet(epsilon=INF, alpha=0.1, l1_ratio=0.7),
            ElasticNet(alpha=0.1, l1_ratio=0.7, tol=1e-12, max_iter=100_000),
            0.7,
        ),
        (PrivateElasticNet(epsilon=INF), ElasticNet(), 0.5),
    ],
    ids=["lasso", "lasso by default", "elastic net", "elastic net by default"],
)
def test_lasso_and_elastic_net(diabetes, ours, theirs, l1_ratio, fit_intercept) -> None:
    X, y = diabetes
    ours.set_params(fit_intercept=fit_intercept).fit(X, y)
    theirs.set_params(fit_intercept=fit_intercept).fit(X, y)
    alpha = theirs.alpha

    def objective(model) -> float:
        return float(np.mean(np.square(y - model.predict(X))) / 2) + penalty(model.coef_, alpha, l1_ratio)

    agree(objective(ours), objective(theirs))
    assert objective(ours) <= objective(theirs) * (1 + 1e-9)
    np.testing.assert_array_equal(ours.coef_ == 0, theirs.coef_ == 0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [None, 1e-3])
def test_huber_regression_with_its_scale(diabetes, fit_intercept, alpha) -> None:
    X, y = diabetes
    y = np.where(np.arange(len(y)) % 17 == 0, y + 400, y)
    strength = 1e-4 if alpha is None else alpha * len(y)
    theirs = HuberRegressor(alpha=strength, fit_intercept=fit_intercept, max_iter=100_000, tol=1e-9).fit(X, y)
    ours = PrivateHuberRegressor(epsilon=INF, alpha=alpha, fit_intercept=fit_intercept).fit(X, y)

    def objective(model) -> float:  # as scikit-learn states it
        z = np.abs(y - model.predict(X)) / model.scale_
        inner = np.where(z < 1.35, z**2, 2 * 1.35 * z - 1.35**2)
        return float(np.sum(model.scale_ * (1 + inner)) + strength * np.square(model.coef_).sum())

    assert objective(ours) <= objective(theirs) * (1 + 1e-9)
    # HuberRegressor stops early on unpenalized fits; it comes down to ours with the tolerance.
    agree(objective(ours), objective(theirs))
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-2)


def test_huber_regression_with_a_stated_scale_is_the_same_minimiser(diabetes) -> None:
    X, y = diabetes
    free = PrivateHuberRegressor(epsilon=INF, alpha=1e-3).fit(X, y)
    fixed = PrivateHuberRegressor(epsilon=INF, alpha=1e-3, scale=free.scale_).fit(X, y)
    np.testing.assert_allclose(fixed.coef_, free.coef_, rtol=1e-6)
    assert fixed.scale_ == free.scale_


def test_huber_regression_of_a_perfect_fit() -> None:
    X = np.arange(12.0).reshape(6, 2) ** 1.5
    model = PrivateHuberRegressor(epsilon=INF, alpha=0.0).fit(X, X @ [1.0, 2.0] + 3.0)
    np.testing.assert_allclose(model.coef_, [1.0, 2.0], rtol=1e-4)
    assert model.scale_ < 1e-6


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.02, None])
def test_least_absolute_deviations(diabetes, fit_intercept, alpha) -> None:
    X, y = diabetes
    half = 1.0 if alpha is None else alpha / 2
    theirs = QuantileRegressor(quantile=0.5, alpha=half, fit_intercept=fit_intercept).fit(X, y)
    ours = PrivateLADRegressor(epsilon=INF, alpha=alpha, fit_intercept=fit_intercept).fit(X, y)

    def objective(model) -> float:
        return float(np.mean(np.abs(y - model.predict(X)))) + penalty(model.coef_, 2 * half, 1.0)

    agree(objective(ours), objective(theirs))
    assert objective(ours) <= objective(theirs) * (1 + 1e-9)


def test_bounds_are_not_applied_without_privacy(diabetes) -> None:
    X, y = diabetes
    free = PrivateRidge(epsilon=INF).fit(X, y)
    bounded = PrivateRidge(epsilon=INF, row_bound=1e-3, target_bound=1.0, records=3).fit(X, y)
    np.testing.assert_array_equal(free.coef_, bounded.coef_)


def test_compressed_rows_and_single_precision(cancer) -> None:
    X, y = cancer
    dense = PrivateLogisticRegression(epsilon=INF).fit(X, y)
    compressed = PrivateLogisticRegression(epsilon=INF).fit(sparse.csc_matrix(X), y)
    single = PrivateLogisticRegression(epsilon=INF).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(compressed.coef_, dense.coef_, rtol=1e-8)
    np.testing.assert_allclose(single.coef_, dense.coef_, rtol=1e-3)
    np.testing.assert_allclose(compressed.decision_function(sparse.csr_array(X)), dense.decision_function(X))


def test_what_an_exact_fit_promises_is_nothing(cancer) -> None:
    model = PrivateLogisticRegression(epsilon=INF).fit(*cancer)
    assert model.solver_ == "exact"
    assert model.guarantee_.epsilon(1e-5) == INF
    assert model.card_.simulation
    assert "without a bound" in model.guarantee_.sentence()
    assert {entry.epsilon for entry in model.card_.entries} == {INF}
    assert model.n_iter_ >= 1


def test_the_card_of_an_exact_fit_says_that_there_is_no_noise_and_speaks_of_no_seed() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    card = str(PrivateRidge(epsilon=float("inf")).fit(X, X[:, 0]).card_)
    assert "NOT PRIVATE: this model was fitted without noise" in card
    assert "seed" not in card
