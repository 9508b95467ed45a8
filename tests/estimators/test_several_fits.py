"""More than one fit: each call is charged, what was released is used again for nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

import consenso
from consenso.errors import BudgetError, InputError
from consenso.planning.replan import differences
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.ledger.costs import GAUSSIAN_SHARE
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.rounding import round_up

RNG = np.random.default_rng(9)
X = RNG.normal(size=(8000, 4)) * [1.0, 50.0, 0.1, 1.0] + [3.0, 0.0, 0.0, 0.0]
SCORES = (X - [3.0, 0, 0, 0]) @ [1.5, 0.02, -10.0, 0.0]
LABELS = RNG.random(8000) < 1 / (1 + np.exp(-SCORES))
TARGETS = 40.0 + SCORES + 0.5 * RNG.normal(size=8000)
PARTS = np.array_split(np.arange(8000), 4)


def made(name="PrivateLogisticRegression", **rest):
    return getattr(consenso, name)(**({"epsilon": 1.0, "delta": 1e-5, "random_state": 0} | rest))


def risk(model):
    if hasattr(model, "classes_"):
        return -np.mean(model.predict_log_proba(X)[np.arange(8000), LABELS.astype(int)])
    return np.mean((model.predict(X) - TARGETS) ** 2)


@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateRidge", "PrivateHuberRegressor"])
def test_parts_of_a_table_are_learnt_one_after_the_other(name) -> None:
    y = LABELS if name == "PrivateLogisticRegression" else TARGETS
    first, *others = [made(name, random_state=number).fit(X[part], y[part]) for number, part in enumerate(PARTS)]
    model = made(name)
    for number, part in enumerate(PARTS):
        model.set_params(random_state=number).partial_fit(X[part], y[part])
        if number:
            assert model.card_.parameters.get("earlier") is None, "bounds are those of the first call"
    # Four calls: a record that is in each of them has lost four times as much of the square.
    one = first.guarantee_
    assert f"All calls together have epsilon {round_up(model.guarantee_.epsilon(1e-5))}" in model.card_.data["calls"]
    assert differences(model.card_) == []
    assert model.guarantee_.epsilon(1e-5) == pytest.approx(one.compose(one, one, one).epsilon(1e-5), rel=1e-3)
    exact = risk(made(name, epsilon=math.inf).fit(X, y))
    alone = [risk(each) - exact for each in (first, *others)]
    # Better than a fit of one part is on average; than the first one where its bounds, which are kept, are worse.
    assert risk(model) - exact < max(alone[0], np.mean(alone))
    np.testing.assert_array_equal(model.row_map_.columns.scale, first.row_map_.columns.scale)


def test_exact_parts_are_averaged() -> None:
    model = made("PrivateRidge", epsilon=math.inf)
    parts = [made("PrivateRidge", epsilon=math.inf).fit(X[part], TARGETS[part]) for part in PARTS]
    for part in PARTS:
        model.partial_fit(X[part], TARGETS[part])
    np.testing.assert_allclose(model.coef_, np.mean([part.coef_ for part in parts], axis=0), rtol=1e-10)


def test_every_call_is_charged_and_says_what_the_data_set_has_cost(tmp_path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="stays", budgets=[budget])
    model = made(epsilon=0.6, random_state=None, ledger=ledger, row_bound=4.0)
    model.partial_fit(X[:300], LABELS[:300])
    assert "'stays' has cost epsilon 0.6 of 1 so far" in model.notes_[-1]
    model.partial_fit(X[300:600], LABELS[300:600])
    spent = ledger.balances()[0].spent
    # Of the delta of a budget, several runs have what is not kept for names, samplers and other kinds of runs.
    assert spent == pytest.approx(model.guarantee_.epsilon(GAUSSIAN_SHARE * 1e-5), rel=1e-3)
    assert f"has cost epsilon {round_up(spent, 3)} of 1 so far" in model.notes_[-1]
    kept = model.coef_.copy()
    with pytest.raises(BudgetError):
        model.partial_fit(X[600:900], LABELS[600:900])
    np.testing.assert_array_equal(model.coef_, kept)


@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateRidge"])
def test_a_fit_starts_from_a_released_model(name) -> None:
    y = LABELS if name == "PrivateLogisticRegression" else TARGETS
    released = made(name).fit(X[:6000], y[:6000])
    few = slice(6000, 6400)
    cold, warm = made(name, random_state=1).fit(X[few], y[few]), made(name, random_state=1)
    warm.fit(X[few], y[few], start=released)
    assert risk(warm) < risk(cold)
    assert 0.999 < warm.guarantee_.epsilon(1e-5) <= 1.0
    assert "start.guarantee_.compose(guarantee_)" in warm.card_.data["calls"]
    assert warm.card_.data["calls"] in warm.notes_
    assert differences(warm.card_) == []
    exact = made(name, epsilon=math.inf).fit(X[few], y[few], start=released)
    np.testing.assert_allclose(exact.coef_, made(name, epsilon=math.inf).fit(X[few], y[few]).coef_)


def test_starts_that_cannot_be() -> None:
    released = made(row_bound=4.0).fit(X[:300], LABELS[:300])
    with pytest.raises(InputError, match="a fitted PrivateRidge is needed"):
        made("PrivateRidge").fit(X, TARGETS, start=released)
    with pytest.raises(InputError, match="has 4 columns, and X has 3"):
        made().fit(X[:, :3], LABELS, start=released)
    with pytest.raises(InputError, match="starts from zero; use solver='preconditioned'"):
        made(solver="dp-sgd").fit(X[:300], LABELS[:300], start=released)
    with pytest.raises(InputError, match="was fitted without privacy"):
        made(row_bound=4.0).fit(X, LABELS, start=made(epsilon=math.inf).fit(X, LABELS))
    with pytest.raises(ValueError, match="features"):
        released.partial_fit(X[:, :3], LABELS)


def test_a_label_that_was_not_told_counts_as_the_most_frequent_one_later_too() -> None:
    """Refusing the record would tell that it is there."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 2))
    y = np.where(rows[:, 0] + rng.normal(size=600) > -1, "often", "seldom")
    rare = y.copy()
    rare[7] = "alone"

    def fit(labels, **options):
        return made(epsilon=3.0, row_bound=2.0).fit(rows, labels, **options)

    first = fit(y)
    assert first.classes_.tolist() == ["often", "seldom"]
    for go_on in (lambda labels: fit(labels, start=first), lambda labels: fit(y).partial_fit(rows, labels)):
        other, known = (go_on(np.where(np.arange(600) == 7, label, y)) for label in ("alone", "often"))
        assert (other.coef_ == known.coef_).all()
    declared = made(row_bound=2.0, classes=["often", "seldom"])
    with pytest.raises(InputError, match="not among classes"):
        declared.fit(rows, y).partial_fit(rows, rare)


PEOPLE = np.arange(300) // 3
# What a call and the next one are, and why the next one is refused.
UNLIKE = {
    "people, then records": ({}, {"users": PEOPLE}, {}, {}, "for records under replace-one"),
    "records, then people": ({}, {}, {}, {"users": PEOPLE}, "for persons under replace-one"),
    "another adjacency": ({}, {}, {"adjacency": "add-remove"}, {}, "under add-remove"),
    "no privacy, then some": ({"epsilon": math.inf}, {}, {"epsilon": 1.0}, {}, "without privacy"),
}


@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateRidge"])
@pytest.mark.parametrize("unlike", UNLIKE)
def test_a_call_whose_cost_cannot_be_added_is_refused_before_anything_is_released(name, unlike, monkeypatch) -> None:
    own, first, change, second, why = UNLIKE[unlike]
    y = LABELS if name == "PrivateLogisticRegression" else TARGETS
    model = made(name, row_bound=4.0, **own).partial_fit(X[:300], y[:300], **first)
    kept, promised = model.coef_.copy(), model.guarantee_
    drawn = []
    sample = GaussianNoise.sample
    monkeypatch.setattr(GaussianNoise, "sample", lambda *given: drawn.append(given) or sample(*given))
    with pytest.raises(InputError, match=why):
        model.set_params(**change).partial_fit(X[:300], y[:300], **second)
    assert not drawn
    np.testing.assert_array_equal(model.coef_, kept)
    assert model.guarantee_ is promised


def test_a_card_says_that_a_start_has_a_cost_of_its_own_however_often_it_is_gone_on_from() -> None:
    model = made(row_bound=4.0).fit(X[:300], LABELS[:300], start=made(row_bound=4.0).fit(X[300:600], LABELS[300:600]))
    for _ in range(2):
        model.partial_fit(X[:300], LABELS[:300])
        said = model.card_.data["calls"]
        assert "All calls together" in said
        assert "started from a released model" in said
        assert said in model.notes_
    assert "calls" not in model.fit(X[:300], LABELS[:300]).card_.data


@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateRidge"])
def test_compressed_rows_go_on_from_columns_that_were_moved(name) -> None:
    y = LABELS if name == "PrivateLogisticRegression" else TARGETS
    start = made(name).fit(X, y)
    assert start.row_map_.columns is not None
    dense, compressed = (made(name).fit(rows, y[:300], start=start) for rows in (X[:300], sparse.csr_array(X[:300])))
    np.testing.assert_array_equal(dense.coef_, compressed.coef_)
    start.partial_fit(sparse.csr_array(X[:300]), y[:300])
