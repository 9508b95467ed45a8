"""`consenso train`, `plan`, `predict`, `compare`, `card` and `verify` on one study, run as programs."""

from __future__ import annotations

import csv
import json
import signal
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import forks

from consenso.models import load_model
from consenso.privacy.ledger import Ledger
from consenso.study import Study


def test_a_study_is_planned_trained_shown_verified_and_used(patients: Path, program: Any) -> None:
    planned = program("plan", "study.toml", "--json", at=patients)
    assert planned.returncode == 0, planned.stderr
    told = json.loads(planned.stdout)
    assert told["epsilon"] == pytest.approx(2.0, rel=1e-4)
    assert {entry["observer"] for entry in told["guarantees"]} == {"eavesdropper", "public"}
    trained = program("train", "study.toml", "--out", "run", "--json", at=patients)
    assert trained.returncode == 0, trained.stderr
    answer = json.loads(trained.stdout)
    assert answer["study"] == told["study"] == Study.load(patients / "study.toml").digest
    assert answer["metrics"]["accuracy"] > answer["metrics"]["majority"] + 0.05
    run = patients / "run"
    found = {path.name for path in run.iterdir()}
    outcome = {"card.json", "model.json", "trace.json", "status.json", "metrics.json", "report.html"}
    assert found == {"study.toml", "schema.toml", *outcome}
    assert Study.load(run / "study.toml").digest == answer["study"]
    (spent,) = Ledger.open(patients / "budget.ledger").runs()
    assert spent.state == "committed"
    assert program("verify", "run", at=patients).returncode == 0
    shown = program("card", "run", "--all", at=patients)
    assert shown.returncode == 0
    assert "whoever sees only the final model" in shown.stdout
    predicted = program("predict", "run", "test.csv", "--out", "said.csv", "--probabilities", at=patients)
    assert predicted.returncode == 0, predicted.stderr
    assert stat.S_IMODE((patients / "said.csv").stat().st_mode) == 0o600
    with (patients / "said.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    with (patients / "test.csv").open() as lines:
        truth = [row["ill"] for row in csv.DictReader(lines)]
    right = np.mean([row["prediction"] == ill for row, ill in zip(rows, truth, strict=True)])
    assert right == pytest.approx(answer["metrics"]["accuracy"])
    assert all(abs(float(row["no"]) + float(row["yes"]) - 1) < 1e-12 for row in rows)


def test_a_run_that_is_stopped_and_resumed_gives_the_same_model(patients: Path, program: Any) -> None:
    _slow(patients, "seed = 7", rounds=40)
    whole = program("train", "slow.toml", "--out", "whole", at=patients)
    assert whole.returncode == 0, whole.stderr
    _stop_after_a_checkpoint(patients, "parts")
    checkpoint = patients / "parts" / "checkpoint"
    assert stat.S_IMODE(checkpoint.stat().st_mode) == 0o700
    assert stat.S_IMODE((checkpoint / "checkpoint.npz").stat().st_mode) == 0o600
    assert not (patients / "parts" / "model.json").exists()
    resumed = program("train", "slow.toml", "--out", "parts", "--resume", "--json", at=patients)
    assert resumed.returncode == 0, resumed.stderr
    assert not checkpoint.exists()
    first, second = load_model(patients / "whole"), load_model(patients / "parts")
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    np.testing.assert_array_equal(first.intercept, second.intercept)
    again = program("train", "slow.toml", "--out", "parts", "--resume", at=patients)
    assert again.returncode == 2
    assert "complete" in again.stderr


def test_a_run_that_is_stopped_and_resumed_is_charged_once(patients: Path, program: Any) -> None:
    _slow(patients, 'ledger = "budget.ledger"', rounds=40)
    ledger = Ledger.open(patients / "budget.ledger")
    _stop_after_a_checkpoint(patients, "parts")
    (run,) = ledger.runs()
    assert run.state == "reserved"
    (before,) = ledger.balances()
    assert before.spent == pytest.approx(2.0, rel=1e-3)
    resumed = program("train", "slow.toml", "--out", "parts", "--resume", at=patients)
    assert resumed.returncode == 0, resumed.stderr
    (same,) = ledger.runs()
    assert (same.run_id, same.state) == (run.run_id, "committed")
    assert ledger.balances()[0].spent == before.spent
    assert program("verify", "parts", at=patients).returncode == 0


def _slow(folder: Path, source: str, *, rounds: int) -> None:
    text = (folder / "study.toml").read_text().replace('ledger = "budget.ledger"', source)
    text += f'algorithm = "DP-SGD"\nrounds = {rounds}\n[output]\ncheckpoint = 5\n'
    (folder / "slow.toml").write_text(text)


# The program, in which somebody presses Ctrl-C once the first checkpoint is there.
STOPPED = """
import os, signal
from consenso.cli import main
from consenso.engine.checkpoint import Checkpoint

save = Checkpoint.save

def save_and_press(self, *given):
    save(self, *given)
    Checkpoint.save = save
    os.kill(os.getpid(), signal.SIGINT)

Checkpoint.save = save_and_press
main()
"""


def _stop_after_a_checkpoint(folder: Path, out: str) -> None:
    done = forks.run("train", "slow.toml", "--out", out, "--json", cwd=folder, script=STOPPED)
    assert done.returncode == 130, done.stderr
    assert json.loads(done.stdout) == {"folder": out, "stopped": True, "resumable": True}
    assert "--resume" in done.stderr
    assert "Traceback" not in done.stderr


def test_resume_needs_a_run_of_the_same_study(patients: Path, answers: Any) -> None:
    code, _, told = answers("train", patients / "study.toml", "--out", patients / "none", "--resume")
    assert (code, "no run was stopped" in told) == (2, True)
    (patients / "full").mkdir()
    (patients / "full" / "note.txt").write_text("mine")
    code, _, told = answers("train", patients / "study.toml", "--out", patients / "full")
    assert (code, "not an empty folder" in told) == (2, True)
    assert [path.name for path in (patients / "full").iterdir()] == ["note.txt"]
    assert len(Ledger.open(patients / "budget.ledger").runs()) == 0


def test_a_budget_that_does_not_allow_the_run_stops_it_before_it_starts(patients: Path, answers: Any) -> None:
    text = (patients / "study.toml").read_text()
    (patients / "dear.toml").write_text(text.replace("epsilon = 2.0", "epsilon = 6.0"))
    before = (patients / "budget.ledger").read_bytes()
    code, _, told = answers("train", patients / "dear.toml", "--out", patients / "dear")
    assert code == 2
    assert "budget" in told.lower()
    assert (patients / "budget.ledger").read_bytes() == before
    assert not (patients / "dear").exists()


def test_compare_puts_budgets_and_runs_side_by_side(patients: Path, answers: Any, program: Any) -> None:
    text = (patients / "study.toml").read_text().replace('ledger = "budget.ledger"', "seed = 1")
    (patients / "study.toml").write_text(text)
    code, out, _ = answers("compare", patients / "study.toml", "--epsilon", "0.5,1,3", "--json")
    assert code == 0
    rows = json.loads(out)
    found = [row["epsilon"]["public"] for row in rows]
    assert found == pytest.approx([0.5, 1, 3], rel=1e-4)
    noise = [sum(row["noise"].values()) for row in rows]
    assert noise == sorted(noise, reverse=True)
    trained = program("compare", "study.toml", "--epsilon", "1,8", "--train", "--out", "both", "--json", at=patients)
    assert trained.returncode == 0, trained.stderr
    assert [row["metrics"]["records"] for row in json.loads(trained.stdout)] == [60, 60]
    shown = program("compare", "both/epsilon-1", "both/epsilon-8", at=patients)
    assert shown.returncode == 0, shown.stderr
    assert "accuracy" in shown.stdout
    code, _, told = answers("compare", patients / "study.toml", "--epsilon", "1,x")
    assert (code, "write 0.5,1,3" in told) == (2, True)


def test_the_second_ctrl_c_stops_at_once(answers: Any) -> None:
    answers("--help")  # loads the program as the others do
    from consenso.cli.train import _interruptible

    before = signal.getsignal(signal.SIGINT)
    with _interruptible(quiet=True) as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_verify_sees_what_does_not_belong_together(patients: Path, answers: Any) -> None:
    text = (patients / "study.toml").read_text().replace('ledger = "budget.ledger"', "seed = 1")
    (patients / "study.toml").write_text(text)
    run = patients / "run"
    assert answers("train", patients / "study.toml", "--out", run)[0] == 0
    assert answers("verify", run, "--json")[0] == 0
    kept = (run / "study.toml").read_text()
    (run / "study.toml").write_text(kept.replace("epsilon = 2.0", "epsilon = 1.0"))
    code, out, told = answers("verify", run, "--json")
    assert code == 1
    assert "study.toml" in told
    assert "study.toml" in json.loads(out)["failure"]
    (run / "study.toml").write_text(kept)
    model = json.loads((run / "model.json").read_text())
    model["coefficients"][0][0] += 1
    (run / "model.json").write_text(json.dumps(model))
    assert answers("verify", run)[0] == 1
    assert answers("predict", run, patients / "test.csv")[0] == 1
