"""What a report draws beside a limit is what the ledger holds against it."""

from __future__ import annotations

from pathlib import Path

import pytest

from consenso.privacy.events import Gaussian
from consenso.privacy.ledger import Budget, Ledger, Scope
from consenso.report.promised import _add_up_costs


@pytest.mark.parametrize("renews", [None, "month"])
def test_the_last_point_is_what_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renews: str | None) -> None:
    scope = Scope(observer="public", unit="record", adjacency="replace-one")
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=2.0, delta=1e-5, renews=renews)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="d", budgets=[budget])
    for place, month in enumerate(("01", "01", "02")):
        now = f"2030-{month}-15T00:00:00+00:00"
        monkeypatch.setattr("consenso.privacy.ledger.book._now", lambda now=now: now)
        ledger.reserve(f"run {place}", {scope: Gaussian(std=8.0, sensitivity=1.0)}, what="w")
        (balance,) = ledger.balances()
        drawn = _add_up_costs(balance, ledger.runs())
        assert drawn[0] == 0.0
        assert drawn[-1] == balance.spent
    assert (drawn[-1] < drawn[-2]) == (renews == "month")
