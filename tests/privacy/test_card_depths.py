"""A card in three depths and in the forms that others ask for; every figure is computed from the card's events."""

from __future__ import annotations

import datetime
import math
import re

import numpy as np
import pytest
import yaml
from scipy.stats import norm
from tests.privacy.registry_rules import broken_rules

from consenso import L2, EpsilonDelta, Logistic, Problem, Safe, Seeded
from consenso.algorithms.dp_sgd import DPSGD
from consenso.errors import InputError
from consenso.estimators import PrivateLogisticRegression
from consenso.planning.plan import Plan, plan
from consenso.privacy.card import Card
from consenso.privacy.card.deployment import registry_yaml
from consenso.privacy.card.depths import Overview
from consenso.privacy.card.evaluation import evaluation_text, questions
from consenso.privacy.card.odds import event_of, most_caught, most_right, right_of_hundred
from consenso.privacy.events import Gaussian, Pure, Unbounded

DELTA = 1e-5


def make_plan(trust: str = "secure-sum", epsilon: float = 2.0, seed: int | None = None) -> Plan:
    problem = Problem(loss=Logistic(), regularizer=L2(strength=0.01), features=5, sizes=np.full(20, 50), row_bound=1.0)
    return plan(
        problem,
        DPSGD(clip=1.0),
        rounds=10,
        target=EpsilonDelta(epsilon=epsilon, delta=DELTA),
        trust=trust,  # type: ignore[arg-type]
        sampler=Safe() if seed is None else Seeded(seed),
    )


@pytest.fixture(scope="module")
def card() -> Card:
    return make_plan().card(DELTA)


def test_odds_are_those_of_the_best_attack() -> None:
    for multiplier in (0.5, 1.0, 4.0):
        exact = norm.cdf(1 / (2 * multiplier))  # two Gaussians one apart, and the test in the middle
        assert exact <= most_right(Gaussian(multiplier, 1.0)) <= exact + 2e-3
    for epsilon in (0.1, 1.0, 3.0):
        exact = math.exp(epsilon) / (1 + math.exp(epsilon))  # randomized response
        assert exact <= most_right(Pure(epsilon)) + 1e-9 <= exact + 2e-3
        assert most_caught(Pure(epsilon), 0.05) == pytest.approx(
            min(0.05 * math.exp(epsilon), 1 - 0.95 * math.exp(-epsilon)), abs=1e-6
        )
    assert most_right(Unbounded("all")) == 1.0


def test_the_sentence_tells_odds_and_cost_of_the_weakest_promise(card: Card) -> None:
    own = [entry for entry in card.entries if (entry.unit, entry.adjacency) == ("record", "replace-one")]
    worst = max(own, key=lambda entry: entry.epsilon)
    sentence = card.sentence()
    assert f"at most {math.ceil(100 * most_right(event_of(worst)))} are right" in sentence
    assert "which of two records is yours" in sentence
    assert sentence.startswith("Against whoever looks")
    assert sentence.count(".") <= 4
    assert make_plan(seed=1).card(DELTA).sentence().startswith("Simulation, not private.")


def test_observers_with_equal_guarantees_share_a_row_and_useless_units_have_no_column(card: Card) -> None:
    shown = Overview(card=card)
    assert len({entry.observer for entry in card.entries}) == 4
    assert sorted(len(row.observers) for row in shown.rows) == [1, 3]
    assert len({(row.epsilons, row.odds) for row in shown.rows}) == len(shown.rows)
    assert {unit for unit, _ in shown.columns} == {"record"}
    assert any(note.startswith("not protected: all data of one party") for note in shown.notes)
    for row in shown.rows:
        for observer in row.observers:
            (entry,) = [e for e in card.entries if (e.observer, e.unit, e.adjacency) == (observer, *shown.own)]
            assert float(row.epsilons[0]) == pytest.approx(entry.epsilon, rel=1e-3)
            assert int(row.odds) == right_of_hundred(entry)
    strong = Overview(card=make_plan(epsilon=0.02).card(DELTA))
    assert {unit for unit, _ in strong.columns} == {"record", "party"}


def test_the_summary_fits_a_terminal(card: Card) -> None:
    for text in (card.summary(), card.text()):
        for line in text.splitlines():
            assert len(line) <= 80 or " " not in line.strip(), line
    assert len(card.summary().splitlines()) <= 16
    assert card.text().startswith(card.summary())


def test_an_unprotected_observer_is_named() -> None:
    exact = PrivateLogisticRegression(epsilon=float("inf")).fit([[0.0], [1.0]] * 4, [0, 1] * 4)
    assert "Nobody is protected" in exact.card_.sentence()
    assert "Nobody is protected" in exact._repr_html_()


def test_html_has_the_three_depths(card: Card) -> None:
    for shown in (card._repr_html_(), make_plan()._repr_html_()):
        assert shown.count("<details>") == 1
        assert "at most" in shown.partition("<details>")[0]
        assert "scope='row'" in shown
        assert "docs/privacy.md#" in shown.partition("<details>")[2]
    assert "right of 100" in str(make_plan())
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 2))
    model = PrivateLogisticRegression(epsilon=1.0, row_bound=2.0, classes=["a<b", "c"], random_state=0)
    before = model._repr_html_()
    model.fit(X, np.where(X[:, 0] > 0, "a<b", "c"))
    after = model._repr_mimebundle_()["text/html"]
    assert "Everything on this card" not in before
    assert "Everything on this card" in after
    assert "Simulation, not private" in after
    stated = model.guarantee_._repr_html_()
    for delta in (1e-5, 1e-6, 1e-8):
        assert f">{delta:g}<" in stated
    figures = [float(value) for value in re.findall(r"<td[^>]*>([\d.]+)<", stated)]
    assert figures == sorted(figures)
    assert figures[0] == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("trust", ["local", "secure-sum", "curator"])
def test_the_registry_takes_the_record(trust: str) -> None:
    card = make_plan(trust).card(DELTA)
    text = registry_yaml(card, name='Days "in" hospital: 2026 \\ x', published=datetime.date(2026, 3, 4))
    assert broken_rules(text) == []
    told = yaml.safe_load(text)["deployment"]
    entry = next(e for e in card.entries if (e.observer, e.unit, e.adjacency) == ("public", "record", "replace-one"))
    assert told["privacy_loss"]["privacy_parameters"]["epsilon"] == pytest.approx(entry.epsilon, rel=1e-3)
    assert told["privacy_loss"]["privacy_parameters"]["epsilon"] >= entry.epsilon
    assert told["privacy_loss"]["privacy_parameters"]["delta"] == DELTA
    assert told["deployment_model"]["model_name"] == {"local": "Local", "curator": "Central"}.get(trust, "Federated")


def test_the_rules_of_the_registry_find_what_is_wrong(card: Card) -> None:
    text = registry_yaml(card, published=datetime.date(2026, 3, 4))
    for right, wrong in (
        ("tier: 3", "tier: 4"),
        ('"Approximate DP"', '"Some DP"'),
        ('"2026-03-04"', '"4 March"'),
        ("delta: 1.0e-05", "delta: [1]"),
        ("    intended_use:", "    use:"),
        ("url_slug: a-", "url_slug: b-"),
        ('name: "A model', 'name: >\n      A model" #'),
    ):
        assert right in text
        assert broken_rules(text.replace(right, wrong, 1)), wrong


def test_no_record_is_made_of_what_protects_nobody() -> None:
    with pytest.raises(InputError, match="seeded"):
        registry_yaml(make_plan(seed=0).card(DELTA))
    exact = PrivateLogisticRegression(epsilon=float("inf")).fit([[0.0], [1.0]] * 4, [0, 1] * 4)
    with pytest.raises(InputError, match="nothing"):
        registry_yaml(exact.card_)


def test_the_questions_of_an_evaluation_are_answered_from_the_card(card: Card) -> None:
    told = dict(questions(card))
    assert len(told) == len(questions(card)) >= 18
    assert "epsilon 2 at delta 1e-05" in told["What are epsilon and delta, and how strong is that?"]
    assert "semi-honest" in told["Who is trusted (threat model)?"]
    assert "all data of one party" in told["Against whom does it not protect?"]
    assert all(answer.strip() and ".." not in answer for answer in told.values())
    assert "SIMULATION" in evaluation_text(make_plan(seed=0).card(DELTA))
    assert "SIMULATION" not in evaluation_text(card)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_card_for_people_has_every_form(adjacency: str) -> None:
    rng = np.random.default_rng(0)
    rows, people = rng.uniform(-1, 1, (60, 2)), np.repeat(np.arange(20), 3)
    model = PrivateLogisticRegression(epsilon=2, row_bound=2, classes=[0, 1], records=20, adjacency=adjacency)
    card = model.fit(rows, (rows[:, 0] > 0).astype(int), users=people).card_
    asked = {"replace-one": "which of two sets of records is yours", "add-remove": "whether you took part"}
    assert asked[adjacency] in card.sentence()
    assert asked[adjacency] in card._repr_html_()
    assert "all records of one person" in evaluation_text(card)
    assert not broken_rules(registry_yaml(card))
    # A person who is replaced may bring more or fewer records.
    for said in (evaluation_text(card), registry_yaml(card)):
        assert ("number of people is public" in said) == (adjacency == "replace-one")
        assert "number of records" not in said
