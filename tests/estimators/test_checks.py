"""scikit-learn's own checks, with and without privacy; what contradicts privacy is listed in one place."""

from __future__ import annotations

import math

import pytest
from sklearn.utils.estimator_checks import check_estimator

import consenso
from consenso.estimators.checks import expected_failed_checks

CLASSIFIERS = ("PrivateLogisticRegression", "PrivateLinearSVC")
REGRESSORS = (
    "PrivateRidge",
    "PrivateLasso",
    "PrivateElasticNet",
    "PrivateHuberRegressor",
    "PrivateLADRegressor",
)
# A check that needs an environment variable of SciPy, set before it is imported.
SKIPPED = {"check_array_api_input"}
# Weights up to 4, without a bound that would allow them.
WEIGHTS = {
    "check_sample_weights_list",
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def outcomes(estimator) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    results = check_estimator(
        estimator, on_fail=None, on_skip=None, expected_failed_checks=expected_failed_checks(estimator)
    )
    for result in results:
        name = result["check_name"]
        if result["status"] == "failed":
            name = f"{name}: {result['exception']!r}"
        found.setdefault(result["status"], set()).add(name)
    return found


def exact(name):
    # scikit-learn's default L1 penalties leave nothing of the data of the checks, which want a good score.
    sparse = name in ("PrivateLasso", "PrivateElasticNet", "PrivateLADRegressor")
    return getattr(consenso, name)(epsilon=math.inf, **({"alpha": 0.01} if sparse else {}))


def private(name, **rest):
    bounds = {"classes": "public"} if name in CLASSIFIERS else {"target_bound": 5.0}
    return getattr(consenso, name)(**{"row_bound": 5.0, "random_state": 0, **bounds, **rest})


def is_of(name, made) -> dict[str, object]:
    return {"classifier": name in CLASSIFIERS, "made": made}


# Of the checks one sets weights of classes on clones, as a search does.
@pytest.mark.filterwarnings("ignore::consenso.estimators.SpendingWarning")
@pytest.mark.sweep(by=is_of)
@pytest.mark.parametrize("made", [exact, private], ids=["without privacy", "with privacy"])
@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_every_check_passes(name, made) -> None:
    estimator = made(name)
    expected = WEIGHTS if made is private else set(expected_failed_checks(estimator))
    found = outcomes(estimator)
    assert found.pop("passed")
    assert found.pop("skipped", SKIPPED) == SKIPPED
    assert found.pop("xfail", set()) == expected
    assert made is private or len(expected) == (2 if name == "PrivateHuberRegressor" else 0)
    assert found == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consenso.estimators.SpendingWarning")
@pytest.mark.parametrize("name", ["PrivateLinearSVC", "PrivateRidge"])
def test_every_check_passes_with_bounds_that_are_found(name) -> None:
    found = outcomes(private(name, row_bound=None, **({} if name in CLASSIFIERS else {"target_bound": None})))
    assert found.pop("skipped", SKIPPED) == SKIPPED
    assert found.pop("xfail") == WEIGHTS
    assert set(found) == {"passed"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consenso.estimators.SpendingWarning")
def test_every_check_passes_under_add_remove() -> None:
    found = outcomes(private("PrivateLogisticRegression", epsilon=0.1, adjacency="add-remove", records=1000))
    assert found.pop("skipped", SKIPPED) == SKIPPED
    assert found.pop("xfail") == WEIGHTS
    assert set(found) == {"passed"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consenso.estimators.SpendingWarning")
def test_with_declared_labels_exactly_the_listed_checks_fail() -> None:
    failed = set()
    for epsilon in (0.1, 1.0):  # whether a check of predictions fails depends on the noise
        estimator = private("PrivateLogisticRegression", classes=[0, 1, 2], epsilon=epsilon)
        found = outcomes(estimator)
        assert found.pop("skipped", SKIPPED) == SKIPPED
        failed |= found.pop("xfail")
        assert set(found) == {"passed"}
    assert failed == set(expected_failed_checks(estimator))


@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
def test_the_scaler_passes_every_check(epsilon) -> None:
    found = outcomes(consenso.PrivateScaler(epsilon=epsilon, random_state=0))
    assert found.pop("skipped", SKIPPED) == SKIPPED
    assert set(found) == {"passed"}
