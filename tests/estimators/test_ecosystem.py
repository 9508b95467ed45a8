"""Frames, compressed rows, pipelines and searches."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import consenso
from consenso.errors import InputError
from consenso.estimators import SpendingWarning
from consenso.privacy.ledger import Budget, Ledger

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) / 2
Y = np.where(X[:, 0] - X[:, 1] > 0, "yes", "no")
NAMES = ["age", "height", "weight"]


def classifier(**rest):
    known = {"epsilon": 2.0, "row_bound": 2.0, "classes": ["no", "yes"], "random_state": 0}
    return consenso.PrivateLogisticRegression(**{**known, **rest})


def test_pandas_and_polars_frames() -> None:
    plain = classifier().fit(X, Y)
    frame = classifier().fit(pd.DataFrame(X, columns=NAMES), pd.Series(Y))
    other = classifier().fit(pl.DataFrame(X, schema=NAMES), pl.Series(Y))
    for model in (frame, other):
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        np.testing.assert_array_equal(model.feature_names_in_, NAMES)
        assert model.n_features_in_ == 3
    np.testing.assert_array_equal(other.predict(pl.DataFrame(X, schema=NAMES)), plain.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        frame.predict(pd.DataFrame(X, columns=["a", "b", "c"]))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_frame_whose_targets_and_ids_are_columns(make) -> None:
    ids, real = np.arange(300) // 2, X[:, 0] - X[:, 1]
    frame = make({"name": Y, **dict(zip(NAMES, X.T, strict=True)), "person": ids, "real": real})
    own = [*NAMES, "name"]
    named, plain = classifier().fit(frame[own], "name"), classifier().fit(frame[NAMES], Y)
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    np.testing.assert_array_equal(named.feature_names_in_, NAMES)
    people = classifier().fit(frame[[*own, "person"]], "name", users="person", rows_per_person=2)
    same = classifier().fit(frame[NAMES], Y, users=ids, rows_per_person=2)
    np.testing.assert_array_equal(people.coef_, same.coef_)
    later = classifier().partial_fit(frame[own], "name").partial_fit(frame[own], "name")
    assert later.n_features_in_ == 3
    ridge = consenso.PrivateRidge(epsilon=2.0, row_bound=2.0, target_bound=2.0, random_state=0)
    numbers = ridge.fit(frame[[*NAMES, "real"]], "real").coef_
    np.testing.assert_array_equal(numbers, ridge.fit(frame[NAMES], real).coef_)
    for given in ({"y": "nobody"}, {"y": Y, "users": "nobody"}):
        with pytest.raises(InputError, match=r"'nobody'.*: a text names a column of a frame, and columns are age"):
            classifier().fit(frame[NAMES], **given)
    with pytest.raises(InputError, match="two columns"):
        classifier().fit(frame[own], "name", users="name")
    with pytest.raises(InputError, match="X is none"):
        classifier().fit(X, "name")


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_compressed_rows(kind) -> None:
    # Of sizes of columns nothing is asked where rows are compressed.
    dense, compressed = (classifier(bounds="public").fit(rows, Y) for rows in (X, kind(X)))
    np.testing.assert_allclose(compressed.coef_, dense.coef_, rtol=1e-9)
    np.testing.assert_array_equal(compressed.predict(kind(X)), dense.predict(X))


def test_a_pipeline_with_the_scaler() -> None:
    rows = np.random.default_rng(1).normal(size=(5000, 3)) * [1.0, 1000.0, 0.01]
    labels = np.where(rows @ [1.0, -0.001, 0.0] > 0, "yes", "no")
    pipeline = make_pipeline(
        consenso.PrivateScaler(epsilon=1.0, random_state=0), classifier(epsilon=3.0, row_bound=1.0)
    ).fit(rows, labels)
    assert pipeline.score(rows, labels) > 0.95
    scaler, model = pipeline[0], pipeline[1]
    whole = scaler.guarantee_.compose(model.guarantee_)
    assert model.guarantee_.epsilon(1e-5) < whole.epsilon(1e-5) < 4.0


def test_scaled_targets() -> None:
    from sklearn.preprocessing import FunctionTransformer

    model = TransformedTargetRegressor(
        consenso.PrivateRidge(epsilon=math.inf, row_bound=2.0, target_bound=1.0),
        transformer=FunctionTransformer(lambda y: y / 1000, lambda y: y * 1000),
    ).fit(X, 1000 * X[:, 0])
    assert model.score(X, 1000 * X[:, 0]) > 0.99


def test_a_search_warns_that_each_fit_spends() -> None:
    search = GridSearchCV(classifier(), {"alpha": [1e-3, 1e-1]}, cv=2)
    with pytest.warns(SpendingWarning, match=r"every fit spends its own epsilon=2") as caught:
        search.fit(X, Y)
    assert len([one for one in caught if one.category is SpendingWarning]) == 5, "four folds and the last fit"
    pipeline = make_pipeline(classifier())
    with pytest.warns(SpendingWarning):
        GridSearchCV(pipeline, {"privatelogisticregression__alpha": [1e-3]}, cv=2).fit(X, Y)


def test_a_fit_and_a_search_without_privacy_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier().set_params(alpha=0.1).fit(X, Y)
        cross_val_score(classifier(), X, Y, cv=2)
        GridSearchCV(classifier(epsilon=math.inf), {"alpha": [1e-3, 1e-1]}, cv=2).fit(X, Y)


def test_a_search_is_charged_for_every_fit(tmp_path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=5.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])
    model = classifier(epsilon=0.5, delta=1e-5, random_state=None, ledger=ledger)
    with pytest.warns(SpendingWarning):
        GridSearchCV(model, {"alpha": [1e-3, 1e-1]}, cv=2).fit(X, Y)
    assert len(ledger.runs()) == 5
    (balance,) = ledger.balances()
    assert 0.5 < balance.spent < 2.5, "five times the cost, composed"


def test_names_are_offered_and_loaded_when_asked_for() -> None:
    public = {name for name in dir(consenso) if name.startswith(("Private", "private"))}
    assert public == {
        "PrivateBounds",
        "PrivateElasticNet",
        "PrivateHuberRegressor",
        "PrivateLADRegressor",
        "PrivateLasso",
        "PrivateLinearSVC",
        "PrivateLogisticRegression",
        "PrivateRidge",
        "PrivateScaler",
        "PrivateSearchCV",
        "private_bounds",
        "private_categories",
    }
    for name in public:
        assert getattr(consenso, name).__module__.startswith("consenso.estimators")
