"""Help that reads well and comes at once, with examples, exit codes, JSON and completion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

COMMANDS = [
    ("study", "new"),
    ("study", "check"),
    ("plan",),
    ("train",),
    ("predict",),
    ("card",),
    ("verify",),
    ("compare",),
    ("data", "list"),
    ("data", "describe"),
    ("data", "draft-schema"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_exit_codes_and_json(command: tuple[str, ...], answers: Any) -> None:
    code, out, _ = answers(*command, "--help")
    shown = " ".join(out.split())
    assert code == 0
    assert f"Example: consenso {' '.join(command)}" in shown
    assert "Exit codes: 0 fine" in shown
    assert "--json" in shown


def test_help_names_what_there_is(program: Any) -> None:
    shown = program("--help")
    for text in ("study new", "plan", "train", "verify", "Exit codes", "--install-completion"):
        assert text in shown.stdout


def test_plan_shows_what_is_known(patients: Path, program: Any) -> None:
    shown = " ".join(program("plan", "study.toml", at=patients).stdout.split())
    for text in (
        "Who learns what",
        "public",
        "eavesdropper",
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
