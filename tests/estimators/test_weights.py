"""Weights of classes: as in scikit-learn without privacy, bounded by the largest weight with it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC

import consenso
from consenso.errors import InputError
from consenso.estimators.stages import Stages
from consenso.estimators.weights import ClassWeights
from consenso.losses import Logistic
from consenso.planning.replan import differences
from consenso.privacy.calibrate import Mu
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.verify import first_failure, verify
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.shards.stored import RowBatch
from consenso.solvers import prepare
from consenso.testing.sensitivity import compare_neighbours
from consenso.testing.worlds import Pair

RNG = np.random.default_rng(2)
X = RNG.normal(size=(6000, 3))
LABELS = (RNG.random(6000) < 1 / (1 + np.exp(-(X @ [1.5, -1.0, 0.5] - 3.8)))).astype(int)
WEIGHTS = [{0: 1.0, 1: 15.0}, {1: 20}, "balanced"]


def made(**rest):
    known = {"epsilon": 1.0, "delta": 1e-5, "row_bound": 3.0, "classes": [0, 1], "random_state": 0}
    return consenso.PrivateLogisticRegression(**(known | rest))


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_without_privacy_they_are_those_of_scikit_learn(weights) -> None:
    rows, labels = X[:800], LABELS[:800]
    ours = consenso.PrivateLogisticRegression(epsilon=math.inf, class_weight=weights).fit(rows, labels)
    theirs = LogisticRegression(class_weight=weights, tol=1e-9, max_iter=1000).fit(rows, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
    ours = consenso.PrivateLinearSVC(epsilon=math.inf, class_weight=weights, alpha=0.02).fit(rows, labels)
    svc = LinearSVC(loss="hinge", class_weight=weights, C=1 / (0.02 * 800), tol=1e-9, max_iter=10**6).fit(rows, labels)
    np.testing.assert_allclose(ours.coef_, svc.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_a_rare_class_is_found_with_them(weights) -> None:
    plain = balanced_accuracy_score(LABELS, made().fit(X, LABELS).predict(X))
    model = made(class_weight=weights).fit(X, LABELS)
    assert balanced_accuracy_score(LABELS, model.predict(X)) > max(0.7, plain + 0.1)
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
    card = model.card_
    assert card.data["weight_bound"] > 5
    counted = {"numbers of records of each class"} if weights == "balanced" else set()
    assert counted <= {each["name"] for each in card.parameters["earlier"]}
    assert first_failure(verify(json.loads(json.dumps(card.to_json())))) is None
    assert differences(card) == []
    assert "one record may count" in model.notes_[-1]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("solver", ["preconditioned", "dp-sgd"])
def test_one_record_with_the_largest_weight_moves_no_release_by_more_than_declared(solver, adjacency) -> None:
    bound, size = 8.0, 10
    problem = Problem(
        loss=Logistic(),
        regularizer=L2(strength=0.1),
        features=3,
        sizes=np.array([size]),
        row_bound=1.0,
        adjacency=adjacency,
        weight_bound=bound,
    )
    planned = prepare(problem, Mu(mu=2.0), solver=solver)
    rows, weights = RNG.normal(size=(size, 3)) * 5, np.where(np.arange(size) == size - 1, bound, 0.5)
    one = Shards.build(problem, rows, np.ones(size), [0, size], weights=weights)
    if adjacency == "replace-one":
        signs = np.where(np.arange(size) == size - 1, -1.0, 1.0)
        other = Shards.build(problem, rows, signs, [0, size], weights=weights)
    else:
        other = Shards.build(problem, rows[:-1], np.ones(size - 1), [0, size - 1], weights=weights[:-1])
    compare_neighbours(planned, [Pair(one=one, other=other, party=0, what="a heavy record")], "record", adjacency)


def test_class_counts_move_by_what_was_declared() -> None:
    seen: list[tuple[object, np.ndarray]] = []

    class Spy(Stages):
        def release(self, planned, time, exact):
            seen.append((planned, exact.copy()))
            return super().release(planned, time, exact)

    terms = consenso.estimators.privacy_params.terms_of(made(), "Test", 50)
    codes = np.array([0] * 30 + [1] * 20)
    other = np.append(codes[:-1], 0)
    for one in (codes, other, codes[:-1]):
        ClassWeights(weights=None).find(Spy(terms=terms), RowBatch(None, 2.0 * one - 1), 2)
    (planned, here), (_, replaced), (_, removed) = seen
    assert np.linalg.norm(here - replaced) == pytest.approx(planned.replace_one)
    assert np.linalg.norm(here - removed) == planned.add_remove


def test_a_class_that_cannot_be_told_from_none_has_a_finite_weight() -> None:
    model = made(class_weight="balanced").fit(X[:400], np.zeros(400, dtype=int))
    assert np.isfinite(model.coef_).all()


def test_counts_are_charged_with_the_fit(tmp_path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])
    made(epsilon=0.7, class_weight="balanced", random_state=None, ledger=ledger).fit(X[:300], LABELS[:300])
    assert ledger.balances()[0].spent == pytest.approx(0.7, rel=1e-3)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("even", "'balanced'"),
        ([1, 2], "a dictionary"),
        ({0: 1, 2: 5}, "2 is not among classes"),
        ({0: -1.0}, "a positive finite number"),
        ({1: math.inf}, "a positive finite number"),
        ({1: "5"}, "a positive finite number"),
    ],
    ids=str,
)
def test_weights_that_cannot_be(weights, message) -> None:
    with pytest.raises(InputError, match=message):
        made(class_weight=weights).fit(X[:100], LABELS[:100])
