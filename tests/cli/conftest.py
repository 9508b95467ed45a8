"""A small table with its schema, a study of it, and the program itself."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import forks

SCHEMA = """
strict = true
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.smoker]
kind = "binary"
categories = ["no", "yes"]
[columns.job]
kind = "category"
categories = ["cook", "nurse"]
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""

STUDY = """
[data]
table = "table.csv"
schema = "schema.toml"
rows = 200
test = "test.csv"

[model]
loss = "logistic"
regularizer = {kind = "l2", strength = 0.01}
intercept = true

[privacy]
epsilon = 2.0
delta = 1e-4
ledger = "budget.ledger"

[setting]
kind = "central"
"""

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def program() -> Program:
    """The real program in a process of its own; keyword arguments: at, the folder, and typed, what is typed in."""

    def consenso(*arguments: str | Path, at: Path | None = None, typed: str = "") -> subprocess.CompletedProcess[str]:
        return forks.run(*arguments, cwd=at, typed=typed)

    return consenso


@pytest.fixture(scope="session")
def commands() -> Any:
    """All commands, built once: Typer reads the annotations of every option anew for every call otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Typer imports what Click is about to drop
        from typer.main import get_command

        from consenso.cli import build

    return get_command(build())


@pytest.fixture
def answers(
    commands: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """The same entry point in this process: exit code, standard output, standard error."""
    from consenso.cli import main

    monkeypatch.setattr("consenso.cli.build", lambda: commands)

    def consenso(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["consenso", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return consenso


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    """A folder with study.toml, schema.toml, table.csv (200 records) and test.csv (60), and an unused ledger."""
    from consenso.privacy.ledger import Budget, Ledger

    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "study.toml").write_text(STUDY)
    rng = np.random.default_rng(0)
    for name, rows in (("table.csv", 200), ("test.csv", 60)):
        lines = ["age,smoker,job,ill"]
        for _ in range(rows):
            age, smoker, job = rng.uniform(0, 100), rng.random() < 0.5, rng.choice(["cook", "nurse"])
            ill = age / 100 + smoker + 0.3 * rng.normal() > 1
            lines.append(f"{age:.1f},{'yes' if smoker else 'no'},{job},{'yes' if ill else 'no'}")
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=5.0, delta=1e-4)
    Ledger.create(tmp_path / "budget.ledger", dataset="patients", budgets=[budget])
    return tmp_path
