"""Weights of records within a public bound: those of scikit-learn without privacy, bounded with it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

import consenso
from consenso.errors import InputError
from consenso.planning.replan import differences
from consenso.privacy.verify import first_failure, verify

RNG = np.random.default_rng(4)
X = RNG.normal(size=(3000, 3))
LABELS = (X @ [1.0, -1.0, 0.5] > 0).astype(int)
TARGETS = X @ [1.0, -1.0, 0.5]
WEIGHTS = RNG.uniform(0, 3, 3000)


def made(name="PrivateLogisticRegression", **rest):
    kind = getattr(consenso, name)
    known = {"classes": [0, 1]} if "classes" in kind().get_params() else {"target_bound": 4.0}
    return kind(**{"epsilon": 1.0, "delta": 1e-5, "row_bound": 3.0, "random_state": 0, **known, **rest})


def test_without_privacy_they_are_those_of_scikit_learn() -> None:
    rows, weights = X[:500], WEIGHTS[:500]
    labels = (RNG.random(500) < 1 / (1 + np.exp(-TARGETS[:500]))).astype(int)
    ours = made(epsilon=math.inf).fit(rows, labels, sample_weight=weights)
    theirs = LogisticRegression(tol=1e-9, max_iter=1000).fit(rows, labels, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    noisy = TARGETS[:500] + RNG.normal(size=500)
    for name, theirs in (("PrivateRidge", Ridge()), ("PrivateLasso", Lasso(alpha=0.1, tol=1e-10))):
        alpha = {"alpha": 0.1} if name == "PrivateLasso" else {}
        ours = made(name, epsilon=math.inf, **alpha).fit(rows, noisy, weights)
        np.testing.assert_allclose(ours.coef_, theirs.fit(rows, noisy, weights).coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateLinearSVC", "PrivateRidge"])
def test_what_weighs_nothing_is_not_learnt(name) -> None:
    wrong = np.arange(3000) % 3 == 0
    real = name == "PrivateRidge"
    y = np.where(wrong, -TARGETS, TARGETS) if real else np.where(wrong, 1 - LABELS, LABELS)
    model = made(name).fit(X, y, sample_weight=np.where(wrong, 0.0, 1.0))
    plain = made(name).fit(X, y)
    truth = TARGETS if real else LABELS
    assert model.score(X, truth) > max(0.9, plain.score(X, truth) - 0.01)
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
    card = model.card_
    assert card.data["weight_bound"] == pytest.approx(1.0)
    assert first_failure(verify(json.loads(json.dumps(card.to_json())))) is None
    assert differences(card) == []


def test_the_bound_is_on_the_card_with_people_and_classes_too() -> None:
    model = made(class_weight={0: 1.0, 1: 3.0}).fit(
        X, LABELS, sample_weight=WEIGHTS, users=np.repeat(np.arange(1500), 2), weight_bound=3.0
    )
    assert model.card_.data["weight_bound"] == pytest.approx(3.0 * 3.0 / 1.5)
    assert model.guarantee_.unit == "person"
    assert model.score(X, LABELS) > 0.85


@pytest.mark.parametrize(
    ("weights", "bound", "message"),
    [
        (WEIGHTS, 1.0, r"row \d+ .rows count from 0. .and \d+ more. has a weight above weight_bound=1;"),
        (
            np.where(np.arange(3000) == 7, -1.0, 1.0),
            1.0,
            "row 7 .rows count from 0. has no weight that is finite and at",
        ),
        (np.where(np.arange(3000) == 7, np.nan, 1.0), 1.0, "row 7 .rows count from 0. has no weight that is finite"),
        (WEIGHTS[:-1], 3.0, "one weight for each of the 3000 rows"),
        (np.zeros(3000), 1.0, "every weight is zero"),
        (np.full(3000, "x"), 1.0, "weights are numbers"),
        (np.full(3000, 1 + 0.5j), 1.0, "weights are numbers"),
        (WEIGHTS, math.inf, "a positive finite number"),
        (WEIGHTS, None, "a positive finite number"),
    ],
    ids=["above", "negative", "NaN", "short", "zero", "texts", "complex", "no bound", "None"],
)
def test_weights_that_cannot_be(weights, bound, message) -> None:
    with pytest.raises(InputError, match=message) as caught:
        made().fit(X, LABELS, sample_weight=weights, weight_bound=bound)
    assert f"{WEIGHTS.max():.3f}" not in str(caught.value)


def test_weights_of_classes_and_records_whose_bounds_make_one() -> None:
    # Of weights 1 and 3 the larger is twice their mean.
    model = made(class_weight={0: 1, 1: 3}).fit(X, LABELS, sample_weight=np.minimum(WEIGHTS, 0.5), weight_bound=0.5)
    assert model.card_.data["weight_bound"] == pytest.approx(1.0)
    assert differences(model.card_) == []
