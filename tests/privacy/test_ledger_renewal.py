"""A budget that renews: each month has its own, and what all months cost is said."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from tests.privacy.registry_rules import broken_rules

from consenso.errors import BudgetError, InputError
from consenso.privacy.accountants import epsilon
from consenso.privacy.events import Gaussian, repeat
from consenso.privacy.ledger import Budget, Ledger, Scope, follow_spending
from consenso.privacy.ledger.costs import GAUSSIAN_SHARE
from consenso.privacy.ledger.deployment import spending_record, spending_yaml
from consenso.report.spending import draw_spending

DELTA, BIG = 1e-5, Gaussian(std=6.0, sensitivity=1.0)
PUBLIC = Scope(observer="public", unit="record", adjacency="replace-one")
WHOLE = {"observer": "public", "unit": "record", "adjacency": "replace-one", "delta": DELTA}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    def turn(text: str) -> None:
        monkeypatch.setattr("consenso.privacy.ledger.book._now", lambda: f"{text}T00:00:00+00:00")

    turn("2030-01-10")
    return turn


@pytest.fixture
def ledger(tmp_path: Path, clock) -> Ledger:
    budget = Budget(**WHOLE, epsilon=epsilon(BIG, DELTA) * 1.2, renews="month")
    return Ledger.create(tmp_path / "a.ledger", dataset="d", budgets=[budget])


def fits(ledger: Ledger, name: str) -> bool:
    try:
        ledger.reserve(name, {PUBLIC: BIG}, what="w")
    except BudgetError:
        return False
    return True


def test_every_month_has_its_own_budget_and_the_whole_is_shown(ledger: Ledger, clock) -> None:
    assert fits(ledger, "a")
    assert not fits(ledger, "b")
    clock("2030-02-01")
    (balance,) = ledger.balances()
    assert (balance.spent, balance.period) == (0.0, "2030-02")
    assert fits(ledger, "b")
    (balance,) = ledger.balances()
    assert balance.spent == epsilon(BIG, DELTA)
    assert balance.overall == epsilon(repeat(BIG, 2), GAUSSIAN_SHARE * DELTA) > balance.budget.epsilon
    assert Ledger.open(ledger.path).budgets == ledger.budgets
    assert ledger.verify().sound


def test_a_clock_that_is_set_back_opens_no_month_again(ledger: Ledger, clock) -> None:
    assert fits(ledger, "a")
    clock("2030-03-01")
    assert fits(ledger, "b")
    for text in ("2030-02-01", "2029-12-31", "2030-03-31"):
        clock(text)
        assert not fits(ledger, "c")
    clock("2030-04-01")
    assert fits(ledger, "c")


def test_a_run_belongs_to_the_month_in_which_it_was_reserved(ledger: Ledger, clock) -> None:
    assert fits(ledger, "a")
    clock("2030-02-01")
    assert fits(ledger, "a")  # resumed, charged once
    ledger.commit("a")
    assert fits(ledger, "b")


def test_a_rule_that_is_none_is_refused_and_no_rule_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="every month, or never"):
        Budget(**WHOLE, epsilon=1.0, renews="day")
    plain = Ledger.create(tmp_path / "plain", dataset="d", budgets=[Budget(**WHOLE, epsilon=1.0)])
    assert "renews" not in plain.export()["rows"][0]["content"]["budgets"][0]


def test_spending_over_time_and_its_picture(ledger: Ledger, clock, tmp_path: Path) -> None:
    assert fits(ledger, "a")
    clock("2030-02-01")
    assert fits(ledger, "b")
    ledger.release("b", nothing_was_released=True, reason="r")
    (line,) = follow_spending(ledger)
    assert line.spent == (0.0, epsilon(BIG, DELTA), epsilon(BIG, DELTA), 0.0)
    for name in ("a.svg", "a.png"):
        draw_spending(ledger, tmp_path / name)
    assert "Privacy budget of d" in (tmp_path / "a.svg").read_text() or (tmp_path / "a.svg").stat().st_size > 5_000
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"\.svg or \.png"):
        draw_spending(ledger, tmp_path / "a.gif")
    with pytest.raises(InputError, match="cannot be written"):
        draw_spending(ledger, tmp_path / "none" / "a.svg")


def test_what_was_spent_is_a_record_of_the_registry(ledger: Ledger, clock) -> None:
    with pytest.raises(InputError, match="nothing was spent"):
        spending_record(ledger)
    assert fits(ledger, "a")
    clock("2030-02-01")
    assert fits(ledger, "b")
    text = spending_yaml(ledger, published=datetime.date(2030, 3, 1))
    assert broken_rules(text) == []
    loss = spending_record(ledger)["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["epsilon"] >= epsilon(repeat(BIG, 2), DELTA)
    assert "each month, with no limit on all of them" in loss["privacy_parameters_details"]
