"""What `tests.deployment.kills` counts: charges that are missing or made twice, and what several commands have seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.deployment.conftest import Federation
from tests.deployment.kills import (
    BUDGET,
    CHARGED,
    ENGINES,
    Report,
    add_reports,
    count_charges,
    keep_reports,
    main,
    read_reports,
)

from consenso.engine.ledger_charge import LedgerCharge
from consenso.federation.budget_guard import LedgerGuard
from consenso.privacy.ledger import Ledger
from consenso.study import Study


def charge(made: Federation, *runs: str, close: bool = True) -> Report:
    ledger = Ledger.create(made.folder / "ash.ledger", dataset="ash", budgets=[BUDGET])
    for run in runs:
        guard = LedgerGuard(Study.load(made.folder / "study.toml").plan(), LedgerCharge(ledger=ledger, run_id=run))
        guard.open()
        if close:
            guard.close()
    report = Report("e")
    count_charges(report, made, "ash")
    return report


@pytest.mark.parametrize(
    ("runs", "close", "wrong"),
    [
        (("a",), True, (0, 0)),
        (("a", "a"), True, (0, 0)),  # a run that goes on
        (("a", "b"), True, (0, 1)),
        (("a",), False, (1, 0)),  # never committed
        ((), True, (1, 0)),
    ],
)
def test_charges_that_are_missing_or_made_twice_are_counted(federation, runs, close, wrong) -> None:
    report = charge(federation(privacy=CHARGED), *runs, close=close)
    assert (report.lost_charges, report.repeated_charges) == wrong
    assert report.is_clean == (wrong == (0, 0))


def test_what_several_commands_have_seen_is_added_up(tmp_path: Path, capsys) -> None:
    name = next(iter(ENGINES))
    for place in range(2):
        seen = read_reports(None)
        seen[name].runs, seen[name].moments, seen[name].lost_steps = 3, [0.5], place
        seen[name].kills["party"] = 500
        keep_reports(tmp_path / f"{place}.json", seen)
    total = read_reports(tmp_path / "0.json")
    add_reports(total, tmp_path / "1.json")
    assert (total[name].runs, total[name].kills["party"], total[name].moments) == (6, 1000, [0.5, 0.5])
    assert main(["--keep", str(tmp_path / "0.json"), "--add", str(tmp_path / "1.json")]) == 1  # a step was lost
    assert "1,000 kills of 1,000" in capsys.readouterr().out
    assert json.loads((tmp_path / "0.json").read_text())[0]["runs"] == 3
