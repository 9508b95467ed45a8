"""Which data sets a claim compares: what a run was not planned for, it does not claim."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.selection import IN_FULL, few_settings

import consenso
from consenso.algorithms import discover
from consenso.errors import BudgetError, ConsensoError, InputError
from consenso.privacy import accountants
from consenso.privacy.ledger import Budget, Ledger, charges_of
from consenso.privacy.observers import Public
from consenso.privacy.samplers import Safe
from consenso.privacy.verify import first_failure, verify
from consenso.testing.plans import plan_example, settings_of

EXAMPLES = {name: definition.example() for name, definition in discover().items()}
RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
LABELS = (X[:, 0] > 0).astype(int)
DELTA = 1e-5


def plans(name, adjacency, *, in_full):
    """The plans of an example for an adjacency, as far as it has bounds for it, in few or all settings."""
    problem = replace(EXAMPLES[name].problem, adjacency=adjacency)
    example = replace(EXAMPLES[name], problem=problem)
    try:
        return [made for each in ([example] if in_full else few_settings(example)) for made in settings_of(each)]
    except ConsensoError:
        return []


@IN_FULL
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_replace_one_run_claims_nothing_under_add_remove(name, in_full) -> None:
    for number, made in enumerate(plans(name, "replace-one", in_full=in_full)):
        card = made.card(DELTA)
        assert {entry.adjacency for entry in card.entries} == {"blanked", "replace-one"}
        for text in (card.text(), card.summary()):
            assert "add-remove" not in text
            assert "adding or removing" not in text
        assert "one record blanked, n public" in " ".join(card.text().split())
        if number == 0:  # tests/study verifies the cards of all settings
            promised = made.prove_all(DELTA)
            relations = {(each.unit, each.adjacency) for each in promised}
            assert relations == {("record", "blanked"), ("record", "replace-one"), ("party", "replace-one")}
            assert {scope.adjacency for scope in charges_of(promised)} == {"replace-one"}
            assert first_failure(verify(json.loads(json.dumps(card.to_json())))) is None
        for unit in ("record", "party"):
            with pytest.raises(InputError, match="number of records"):
                made.guarantee(Public(), DELTA, unit=unit, adjacency="add-remove")


@IN_FULL
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_add_remove_run_also_claims_replace_one_by_its_own_bounds(name, in_full) -> None:
    for made in plans(name, "add-remove", in_full=in_full):
        for observer in made.observers():
            added = made.guarantee(observer, DELTA, adjacency="add-remove")
            replaced = made.guarantee(observer, DELTA, adjacency="replace-one")
            one, two = accountants.gdp(added.event), accountants.gdp(replaced.event)
            if one is not None and two is not None:
                assert one * (1 - 1e-9) <= two <= 2 * one * (1 + 1e-9)
                if two > one * (1 + 1e-9):  # twice epsilon at the same delta is not enough
                    assert replaced.epsilon(DELTA) > added.epsilon(DELTA)
            with pytest.raises(InputError, match="says more"):
                made.guarantee(observer, DELTA, adjacency="blanked")


def test_a_blanked_record_is_no_farther_than_a_replaced_one_and_no_nearer_than_half_of_it() -> None:
    compared = 0
    for name in EXAMPLES:
        for made in plans(name, "replace-one", in_full=True):
            claims = (made.guarantee(Public(), DELTA, unit="record", adjacency=of) for of in ("blanked", "replace-one"))
            one, two = (accountants.gdp(each.event) for each in claims)
            if one is not None and two is not None:
                assert two / 2 * (1 - 1e-9) <= one
                compared += 1
    assert compared > len(EXAMPLES) / 2


FITS = {
    "model": lambda ledger, rows: consenso.PrivateLogisticRegression(
        epsilon=1.0, row_bound=2.0, classes=[0, 1], ledger=ledger
    ).fit(X[:rows], LABELS[:rows]),
    "scaler": lambda ledger, rows: consenso.PrivateScaler(epsilon=1.0, ledger=ledger).fit(X[:rows]),
    "bounds": lambda ledger, rows: consenso.private_bounds(X[:rows], epsilon=1.0, ledger=ledger),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_an_add_remove_budget_refuses_a_replace_one_fit_before_anything_is_drawn(fit, tmp_path, monkeypatch) -> None:
    drawn = []
    release = Safe._release
    monkeypatch.setattr(Safe, "_release", lambda self, *given: drawn.append(1) or release(self, *given))
    budgets = [Budget(observer="public", unit="record", adjacency=a, epsilon=5.0, delta=DELTA) for a in ADJACENCIES]
    ledger = Ledger.create(tmp_path / "both", dataset="d", budgets=budgets)
    with pytest.raises(BudgetError, match="adjacency='add-remove'"):
        fit(ledger, 60)
    assert not drawn
    assert not ledger.runs()
    one = Ledger.create(tmp_path / "one", dataset="d", budgets=budgets[1:])
    fit(one, 60)
    assert drawn
    assert {scope.adjacency for run in one.runs() for scope in run.charged} == {"replace-one"}


ADJACENCIES = ("add-remove", "replace-one")


def test_what_an_add_remove_fit_shows_does_not_depend_on_the_number_of_records() -> None:
    def card_of(rows: int) -> dict[str, object]:
        model = consenso.PrivateLogisticRegression(
            epsilon=1.0, row_bound=2.0, classes=[0, 1], adjacency="add-remove", records=70
        )
        return model.fit(X[:rows], LABELS[:rows]).card_.to_json()

    cards = [card_of(rows) for rows in (60, 59)]
    assert cards[0] == cards[1]
    assert cards[0]["data"]["sizes"] == [70]


def test_a_claim_that_a_run_cannot_make_is_found_on_its_card() -> None:
    stored = plan_example(EXAMPLES["ConsensusADMM"]).card(DELTA).to_json()
    for entry in stored["entries"]:
        if entry["adjacency"] == "blanked":
            entry["adjacency"] = "add-remove"
            wrong = first_failure(verify(stored))
            assert wrong is not None
            assert wrong.field.endswith("adjacency")
            return
    raise AssertionError("the card claims nothing of a blanked record")
