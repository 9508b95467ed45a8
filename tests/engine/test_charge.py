from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.engine.ledger_charge import LedgerCharge
from consenso.engine.run import run
from consenso.errors import BudgetError, PrivacyError
from consenso.planning.plan import plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.samplers import Safe, Seeded
from consenso.shards import Shards
from consenso.testing.worlds import draw


def setting(tmp_path: Path, epsilon: float = 2.0, sampler=None):
    example = DualConsensusADMM.example()
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=epsilon, delta=1e-5)
    ledger = Ledger.create(tmp_path / "ledger.db", dataset="made up", budgets=[budget])
    target = EpsilonDelta(epsilon=1.0, delta=1e-5)
    made = plan(
        example.problem, DualConsensusADMM(), rounds=4, target=target, trust="curator", sampler=sampler or Safe()
    )
    shards = Shards.from_parties(example.problem, draw(example.problem, np.random.default_rng(0)))
    return made, shards, ledger


def spent(ledger: Ledger) -> float:
    (balance,) = ledger.balances()
    return balance.spent


def test_runs_are_charged_by_their_curves_until_the_budget_is_spent(tmp_path: Path) -> None:
    made, shards, ledger = setting(tmp_path)
    for number in range(3):
        run(made, shards, charge=LedgerCharge(ledger=ledger, run_id=f"run {number}"))
    assert 1.7 < spent(ledger) < 2.0  # three runs of epsilon 1: less than their sum
    head = ledger.head()
    with pytest.raises(BudgetError, match="public"):
        run(made, shards, charge=LedgerCharge(ledger=ledger, run_id="one more"))
    assert ledger.head() == head
    assert ledger.verify().sound


def test_a_crash_after_a_release_stays_charged_and_a_resume_is_charged_once(tmp_path: Path) -> None:
    made, shards, ledger = setting(tmp_path)

    def fail(done: int, planned: int) -> None:
        raise KeyboardInterrupt

    charge = LedgerCharge(ledger=ledger, run_id="once")
    with pytest.raises(KeyboardInterrupt):
        run(made, shards, charge=charge, checkpoint=tmp_path / "run", progress=fail)
    assert spent(ledger) == pytest.approx(1.0, rel=1e-3)
    run(made, shards, charge=charge, checkpoint=tmp_path / "run")
    assert spent(ledger) == pytest.approx(1.0, rel=1e-3)


def test_a_failure_before_any_release_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, shards, ledger = setting(tmp_path)

    def broken(*arguments: object) -> None:
        raise RuntimeError("no step was taken")

    monkeypatch.setattr(DualConsensusADMM, "local", broken)
    with pytest.raises(RuntimeError):
        run(made, shards, charge=LedgerCharge(ledger=ledger, run_id="broken"))
    assert spent(ledger) == 0


def test_seeded_noise_is_not_charged_but_refused(tmp_path: Path) -> None:
    made, shards, ledger = setting(tmp_path, sampler=Seeded(0))
    with pytest.raises(PrivacyError, match="protects nobody"):
        run(made, shards, charge=LedgerCharge(ledger=ledger, run_id="simulated"))
    assert spent(ledger) == 0
