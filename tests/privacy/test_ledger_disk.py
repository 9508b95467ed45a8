"""A ledger on a full disk, or under a second name: one clear error, and nothing is spent twice or lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from tests import forks

from consenso.errors import BudgetError, InputError
from consenso.privacy.events import Pure
from consenso.privacy.ledger import Budget, Ledger, Scope, store

SCOPE = Scope(observer="public", unit="record", adjacency="replace-one")
BUDGET = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)

RESERVE = """
import sys
from consenso.errors import ConsensoError
from consenso.privacy.events import Pure
from consenso.privacy.ledger import Budget, Ledger, Scope
try:
    if sys.argv[1] == "create":
        Ledger.create(sys.argv[2], dataset="x", budgets=[Budget(observer="public", unit="record",
                      adjacency="replace-one", epsilon=1.0, delta=1e-5)])
    else:
        scope = Scope(observer="public", unit="record", adjacency="replace-one")
        Ledger.open(sys.argv[2]).reserve("run", {scope: Pure(0.5)}, what="w")
except ConsensoError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", dataset="x", budgets=[BUDGET])


def test_on_a_full_disk_nothing_is_charged_and_later_it_is(ledger: Ledger) -> None:
    done = forks.run("reserve", ledger.path, script=RESERVE, largest_file=1000)
    assert done.returncode == 1
    assert "BudgetError" in done.stderr
    assert "it cannot be written" in done.stderr
    assert (len(ledger.rows()), ledger.balances()[0].spent, ledger.verify().fault) == (1, 0.0, None)
    assert forks.run("reserve", ledger.path, script=RESERVE).returncode == 0
    assert (len(ledger.rows()), ledger.verify().fault) == (2, None)


def test_on_a_full_disk_no_half_of_a_ledger_is_made(tmp_path: Path) -> None:
    done = forks.run("create", tmp_path / "b.ledger", script=RESERVE, largest_file=1000)
    assert "InputError" in done.stderr
    assert "it cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_entry_whose_anchor_does_not_fit_counts_and_is_charged_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(store, "write_anchor", fail)
        with pytest.raises(BudgetError, match="stored and counts"):
            ledger.reserve("run", {SCOPE: Pure(0.4)}, what="w")
    assert ledger.reserve("run", {SCOPE: Pure(0.4)}, what="w").row == 1
    ledger.reserve("another", {SCOPE: Pure(0.4)}, what="w")
    assert [run.run_id for run in ledger.runs()] == ["run", "another"]
    assert ledger.verify().sound


def test_a_second_name_of_the_file_is_refused_under_both(ledger: Ledger, tmp_path: Path) -> None:
    second = tmp_path / "b.ledger"
    os.link(ledger.path, second)
    for path in (second, ledger.path):
        with pytest.raises(InputError, match="hard link"):
            Ledger.open(path)
    second.unlink()
    ledger.reserve("run", {SCOPE: Pure(0.5)}, what="w")


def test_a_draft_that_a_killed_process_left_is_no_second_name(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / f"{store.DRAFTS}left").mkdir()
    os.link(ledger.path, tmp_path / f"{store.DRAFTS}left" / "draft")
    Ledger.open(ledger.path).reserve("run", {SCOPE: Pure(0.5)}, what="w")
