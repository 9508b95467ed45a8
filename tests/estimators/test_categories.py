"""Categories that are told by their noisy numbers of records: frequent ones are, one of a single record is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from consenso.errors import BudgetError, InputError
from consenso.estimators.categories import private_categories
from consenso.privacy.ledger import Budget, Ledger

WARDS = ["north"] * 600 + ["south"] * 400 + ["secret"] + [""] * 99


def test_frequent_categories_are_told_and_a_single_one_is_not() -> None:
    found = private_categories({"ward": WARDS}, epsilon=1.0, random_state=0)
    assert found.categories == {"ward": ("north", "south")}
    assert found.guarantee.epsilon(1e-5) <= 1.0 + 1e-9
    assert found.guarantee.simulation
    # Six standard deviations of 600 and 400 above the level would fail one time in 10^9.
    assert found.level + 6 * found.count_noise < 400


def test_a_category_of_one_record_passes_the_level_as_seldom_as_is_charged() -> None:
    """The attack that asks for the name of a single record, on 8,000 of them, with a delta that can be seen.

    Each is told with half of 1 % of delta: 20 are expected. Fewer than 4 or more than 45 come one time in 10^5.
    """
    names = [f"person {place}" for place in range(8000)]
    found = private_categories({"name": names}, epsilon=1.0, delta=0.5, random_state=0)
    assert 4 <= len(found.categories["name"]) <= 45


def test_several_columns_share_the_budget() -> None:
    one = private_categories({"a": WARDS}, epsilon=1.0, random_state=0)
    two = private_categories({"a": WARDS, "b": WARDS[::-1]}, epsilon=1.0, random_state=0)
    assert two.count_noise == pytest.approx(np.sqrt(2) * one.count_noise, rel=1e-3)
    assert two.level > one.level
    assert two.guarantee.epsilon(1e-5) <= 1.0 + 1e-9


def test_a_ledger_is_charged(tmp_path: Path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "patients.ledger", dataset="patients", budgets=[budget])
    private_categories({"ward": WARDS}, epsilon=0.9, delta=1e-5, ledger=ledger)
    with pytest.raises(BudgetError):
        private_categories({"ward": WARDS}, epsilon=0.9, delta=1e-5, ledger=ledger)


def test_refusals() -> None:
    with pytest.raises(InputError, match="different texts") as caught:
        private_categories({"name": [f"person {place}" for place in range(10_001)]}, epsilon=1.0, random_state=0)
    assert "person" not in str(caught.value)
    with pytest.raises(InputError, match="one cell for each record"):
        private_categories({"a": WARDS, "b": WARDS[1:]}, epsilon=1.0, random_state=0)
    with pytest.raises(InputError, match="epsilon=inf"):
        private_categories({"a": WARDS}, epsilon=float("inf"))
