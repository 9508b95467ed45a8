"""Help that reads well and comes at once, with examples, exit codes, JSON and completion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from consenso.cli import completing


def test_help_names_what_there_is(program: Any) -> None:
    shown = program("--help")
    for text in ("study new", "plan", "train", "verify", "Exit codes", "--install-completion"):
        assert text in shown.stdout


def test_plan_shows_what_is_known(patients: Path, program: Any) -> None:
    shown = " ".join(program("plan", "study.toml", at=patients).stdout.split())
    for text in (
        "Who learns what",
        "readers of the model",
        "who sees every message",
        "expected",
        "predicted loss",
        "Nothing was read or spent",
    ):
        assert text in shown
    told = json.loads(program("plan", "study.toml", "--json", at=patients).stdout)
    assert told["expected"]["seconds"] > 0
    assert told["noise"]


def test_shells_can_complete(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    script = program("--show-completion", "bash")
    assert script.returncode == 0, script.stderr
    assert "complete" in script.stdout
    monkeypatch.setenv("_CONSENSO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "consenso tr")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "train" in program().stdout.split()


def test_names_are_completed(patients: Path, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies and not schemas, folders of runs and not others, algorithms, data sets, ledgers."""
    (patients / "runs" / "first").mkdir(parents=True)
    (patients / "runs" / "first" / "card.json").write_text("{}")
    (patients / "runs" / "empty").mkdir()
    monkeypatch.chdir(patients)
    assert completing.complete_studies("s") == ["study.toml"], "and not schema.toml"
    assert completing.complete_studies("nothing") == []
    assert completing.complete_studies("nowhere/") == []
    assert completing.complete_runs("runs/") == ["runs/first"]
    assert completing.complete_studies_and_runs("") == ["study.toml", "runs/first"]
    assert completing.complete_targets("Consensus") == ["ConsensusADMM"]
    assert completing.complete_data_sets("bre") == ["breast_cancer"]
    assert completing.complete_ledgers("") == ["budget.ledger"]
    assert completing.complete_papers("00") == ["000", "001", "002", "003", "004"]
    monkeypatch.setenv("_CONSENSO_COMPLETE", "complete_bash")
    for line, offered in (("plan s", "study.toml"), ("report ", "runs/first"), ("audit DPS", "DPSGD")):
        monkeypatch.setenv("COMP_WORDS", f"consenso {line}")
        monkeypatch.setenv("COMP_CWORD", "2")
        assert program(at=patients).stdout.split() == [offered]
