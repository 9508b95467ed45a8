"""A private search: its cost against the exact one, what it keeps secret, and what it is charged."""

from __future__ import annotations

import json
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import consenso
from consenso.errors import BudgetError, InputError
from consenso.estimators import ChoiceWarning
from consenso.estimators.search import SCORE_MOVES, PrivateSearchCV, SearchPlan, _draw_count, differences
from consenso.privacy.accountants import epsilon, rdp
from consenso.privacy.events import BestOf, Gaussian
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.rounding import round_up
from consenso.privacy.samplers import Seeded
from consenso.privacy.verify import first_failure, verify

RNG = np.random.default_rng(5)
X = RNG.normal(size=(600, 3))
LABELS = (X @ [1.0, -1.0, 0.5] > 0).astype(int)
GRID = {"alpha": [1e-3, 100.0]}


def search(grid=GRID, model=None, **rest):
    model = model or consenso.PrivateLogisticRegression(classes=[0, 1], row_bound=3.0)
    return PrivateSearchCV(model, grid, **({"delta": 1e-5, "draws": 3.0, "random_state": 0} | rest))


@pytest.mark.parametrize("gamma", [0.9, 0.3, 0.03])
@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_the_curve_is_above_the_exact_divergence_of_the_best_gaussian(mu, gamma) -> None:
    """The best of K releases N(0, 1) against N(mu, 1): its density is the derivative of K's generating function."""
    x = np.linspace(-40, 40, 40_001)
    step = x[1] - x[0]

    def density(shift):
        below = norm.cdf(x - shift)
        # f(t) = log(1 - (1 - gamma) t) / log(gamma), at the distribution function of one release
        slope = -(1 - gamma) / (1 - (1 - gamma) * below) / math.log(gamma)
        return np.log(slope) + norm.logpdf(x - shift)

    one, other = density(0.0), density(mu)
    assert np.exp(one).sum() * step == pytest.approx(1.0, abs=1e-6)
    for order in (1.5, 2.0, 4.0, 10.0):
        stated = rdp(BestOf(mu**2 / 2, gamma), order)
        for p, q in ((one, other), (other, one)):
            exact = (logsumexp(order * p + (1 - order) * q) + math.log(step)) / (order - 1)
            assert exact <= stated + 1e-9


def test_many_draws_cost_little_more_than_a_few_and_all_cost_more_than_one_fit() -> None:
    plans = [SearchPlan.calibrate(1.0, 1e-5, draws, simulation=False) for draws in (1.5, 10.0, 100.0)]
    one = 1 / 3.7306  # of a single fit at epsilon 1 and delta 1e-5
    assert one > plans[0].mu > plans[1].mu > plans[2].mu > one / 3
    for plan in plans:
        assert 0.999 < epsilon(plan.event, 1e-5) <= 1.0
    assert epsilon(Gaussian(1 / one, 1.0), 1e-5) == pytest.approx(1.0, rel=1e-3)


def test_the_number_of_draws_has_its_law() -> None:
    gamma = 0.2
    drawn = np.array([_draw_count(gamma, Seeded(seed)) for seed in range(2000)])
    for many in (1, 2, 3):
        expected = (1 - gamma) ** many / many / -math.log(gamma)
        # Five standard deviations: a false alarm in a million.
        assert abs(np.mean(drawn == many) - expected) < 5 * math.sqrt(expected / len(drawn))


def test_the_better_candidate_is_chosen_and_the_card_follows() -> None:
    found = search(epsilon=8.0, draws=12.0).fit(X, LABELS)
    assert found.best_params_ == {"alpha": 1e-3}
    assert found.score(X, LABELS) > 0.9
    assert 0.999 * 8 < found.guarantee_.epsilon(1e-5) <= 8.0
    assert found.guarantee_.observer == "public"
    card = found.card_
    assert first_failure(verify(json.loads(json.dumps(card.to_json())))) is None
    assert differences(card) == []
    told = {name for name in vars(found) if name.endswith("_")}
    assert told == {"best_score_", "best_params_", "best_estimator_", "guarantee_", "notes_", "n_features_in_"}


def test_the_model_that_won_claims_no_less_than_the_search(tmp_path) -> None:
    found = search(epsilon=2.0).fit(X, LABELS)
    model = found.best_estimator_
    assert model.guarantee_ == found.guarantee_
    assert model.card_.to_json() == found.card_.to_json()
    assert "whole search" in model.notes_[0]
    assert "epsilon 2 " in model.card_.sentence()
    again = pickle.loads(pickle.dumps(model))
    assert again.card_.to_json() == found.card_.to_json()
    later = again.partial_fit(X, LABELS)
    assert later.guarantee_.epsilon(1e-5) > 2.0


def test_a_record_is_in_one_part_only(monkeypatch) -> None:
    seen = []
    fit = consenso.PrivateLogisticRegression.fit

    def spy(self, rows, labels, **rest):
        seen.append(rows.copy())
        return fit(self, rows, labels, **rest)

    monkeypatch.setattr(consenso.PrivateLogisticRegression, "fit", spy)
    model = search().fit(X, LABELS)
    train = {tuple(row) for row in seen[0]}
    assert all({tuple(row) for row in rows} == train for rows in seen)
    held = np.array([tuple(row) not in train for row in X])
    assert held.sum() == 120
    count = model._count_right(model.best_estimator_, X[held], LABELS[held])
    flipped = LABELS[held].copy()
    flipped[0] = 1 - flipped[0]
    assert abs(model._count_right(model.best_estimator_, X[held], flipped) - count) == SCORE_MOVES
    # Of one run, with a Gaussian of standard deviation 1/mu: its divergence of order 2 is mu^2.
    plan = SearchPlan.calibrate(1.0, 1e-5, 5.0, simulation=True)
    assert 2 * plan.event.rho == pytest.approx(plan.mu**2)


def test_a_search_is_charged_once(tmp_path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])
    tried = search(epsilon=0.8, draws=1.5, ledger=ledger, random_state=None)
    tried.fit(X[:200], LABELS[:200])
    assert ledger.balances()[0].spent == pytest.approx(0.8, rel=1e-3)
    assert len(ledger.runs()) == 1
    with pytest.raises(BudgetError):
        tried.fit(X[:200], LABELS[:200])


def test_regressions_need_a_bound_and_are_scored_within_it() -> None:
    target = X @ [1.0, -1.0, 0.5]
    with pytest.raises(InputError, match="target_bound"):
        search(model=consenso.PrivateRidge()).fit(X, target)
    model = consenso.PrivateRidge(row_bound=3.0, target_bound=4.0)
    assert search(model=model, epsilon=8.0, draws=8.0).fit(X, target).score(X, target) > 0.5


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"draws": 0.5}, r"mean number of fits"),
        ({"draws": 1e6}, r"mean number of fits"),
        ({"validation": 1.0}, "share of the records"),
        ({"validation": 1e-6}, "none would be left"),
        ({"epsilon": math.inf}, "use GridSearchCV"),
        ({"grid": {}}, "a dictionary"),
        ({"grid": {"alpha": []}}, "a dictionary"),
        ({"grid": {"epsilon": [1, 2]}}, "belong to the search"),
        ({"grid": {"penalty": ["l1"]}}, "'penalty' is not a parameter"),
        ({"model": consenso.PrivateScaler()}, "private linear model"),
        ({"model": consenso.PrivateRidge(adjacency="add-remove")}, "under replace-one"),
        ({"model": consenso.PrivateLogisticRegression(classes="public")}, "declare classes"),
        ({"grid": {"classes": [[0, 1], None]}}, "'classes' is not a parameter"),
    ],
    ids=str,
)
def test_searches_that_cannot_be(bad, message) -> None:
    with pytest.raises(InputError, match=message):
        search(**bad).fit(X, LABELS)


def test_a_summary_says_that_the_choice_is_not_covered_and_what_the_search_has_cost() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(8000, 3))
    labels = (rng.random(8000) < 1 / (1 + np.exp(-2 * rows @ [1.0, -1.0, 0.5]))).astype(int)
    found = search({"alpha": [1e-4, 1e-3]}, epsilon=4.0).fit(rows, labels).best_estimator_
    shown = " ".join(str(found.summary()).split())
    assert "PrivateSearchCV chose this fit among others" in shown
    assert "guarantee: epsilon 4 for the whole search, record" in shown
    # Numbers without words beside them come with a warning, which depends on nothing but that there was a search.
    for ask in (found.confidence_intervals, lambda: found.predict_interval(rows[:2]), lambda: found.standard_errors_):
        with pytest.warns(ChoiceWarning, match="That choice is not covered"):
            ask()
    # Fitted again it is a fit of its own.
    again = " ".join(str(found.fit(rows, labels).summary()).split())
    assert "PrivateSearchCV" not in again
    assert f"guarantee: epsilon {round_up(found.epsilon, 3)}, record" in again
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.confidence_intervals()


def test_a_search_predicts_as_its_fit_does_and_says_what_the_data_set_has_cost(tmp_path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=3.0, delta=1e-5)
    Ledger.create(tmp_path / "ledger", dataset="stays", budgets=[budget])
    found = search(epsilon=2.0, random_state=None, ledger=tmp_path / "ledger", delta=1e-5).fit(X, LABELS)
    best = found.best_estimator_
    assert (found.classes_ == best.classes_).all()
    assert (found.predict_proba(X[:5]) == best.predict_proba(X[:5])).all()
    assert (found.decision_function(X[:5]) == best.decision_function(X[:5])).all()
    assert found.notes_[-1].startswith("The data set 'stays' has cost epsilon 2 of 3 so far")
    numbers = PrivateSearchCV(consenso.PrivateRidge(target_bound=1.0), GRID)
    assert not hasattr(numbers, "predict_proba")
    assert not hasattr(numbers, "classes_")
