"""`consenso ledger`, run as a program."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest
from tests import forks

from consenso.privacy.accountants import epsilon
from consenso.privacy.events import Gaussian, repeat
from consenso.privacy.ledger import Ledger, Scope
from consenso.privacy.ledger.costs import GAUSSIAN_SHARE
from consenso.privacy.rounding import round_down, round_up

GUIDE = Path(__file__).parents[2] / "docs" / "ledger.md"
PUBLIC = Scope(observer="public", unit="record", adjacency="replace-one")


def consenso(*arguments: str | Path, at: Path) -> subprocess.CompletedProcess[str]:
    return forks.run(*arguments, cwd=at, env={"COLUMNS": "200"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = consenso("ledger", "create", "l", "--dataset", "adult", "--epsilon", "1", "--delta", "1e-5", at=tmp_path)
    assert made.returncode == 0, made.stderr
    return tmp_path / "l"


def test_show_tells_what_is_spent_and_left(path: Path) -> None:
    ledger, event = Ledger.open(path), Gaussian(40.0, 1.0)
    ledger.reserve("first [bold]", {PUBLIC: repeat(event, 9)}, what="a fit")
    ledger.commit("first [bold]")
    ledger.reserve("second", {PUBLIC: event}, what="still running")
    shown = consenso("ledger", "show", path, "--json", at=path.parent)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    (budget,) = told["budgets"]
    assert budget["spent"] == epsilon(repeat(event, 10), GAUSSIAN_SHARE * 1e-5)
    assert budget["left"] == 1.0 - budget["spent"]
    assert [(run["run"], run["state"]) for run in told["runs"]] == [
        ("first [bold]", "committed"),
        ("second", "reserved"),
    ]
    table = consenso("ledger", "show", path, at=path.parent).stdout
    for text in (
        "Budgets of adult",
        round_up(budget["spent"], 6),
        round_down(budget["left"], 6),
        "first [bold]",
        "still running",
    ):
        assert text in table


def test_showing_a_ledger_writes_no_row(path: Path) -> None:
    before = path.read_bytes()
    for command in ("show", "verify", "head", "export"):
        assert consenso("ledger", command, path, at=path.parent).returncode == 0
    assert path.read_bytes() == before


def test_verify_names_the_first_bad_row_and_every_command_stops_there(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.reserve("run", {PUBLIC: Gaussian(40.0, 1.0)}, what="a fit")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER entries_keep")
        connection.execute("UPDATE entries SET content = replace(content, '40.0', '90.0') WHERE number = 1")
        connection.execute(
            "CREATE TRIGGER entries_keep BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
        )
    connection.close()
    found = consenso("ledger", "verify", path, at=path.parent)
    assert found.returncode == 1
    assert "NOT SOUND: row 1" in found.stderr
    for command in ("show", "head", "export"):
        stopped = consenso("ledger", command, path, at=path.parent)
        assert (stopped.returncode, stopped.stdout) == (1, "")
        assert "row 1" in stopped.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "none"),
        ("verify", "none"),
        ("create", "l", "--dataset", "adult", "--epsilon", "1", "--delta", "1e-5"),
        ("create", "m", "--dataset", "adult", "--epsilon", "-1", "--delta", "1e-5"),
        ("create", "m", "--dataset", "adult", "--epsilon", "1", "--delta", "1e-5", "--unit", "household"),
        ("create", "m", "--dataset", "adult", "--epsilon", "1", "--delta", "1e-5", "--observer", "nobody"),
        ("create", "m", "--dataset", "adult", "--epsilon", "much", "--delta", "1e-5"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_two(path: Path, arguments: tuple[str, ...]) -> None:
    ended = consenso("ledger", *arguments, at=path.parent)
    assert ended.returncode == 2
    assert ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (path.parent / "m").exists()


@pytest.mark.slow
def test_the_guide_runs_as_written(tmp_path: Path) -> None:
    """Every console line and every Python block of docs/ledger.md, in order; $HEAD is what `ledger head` printed."""
    head = ""
    kinds = []
    for kind, block in re.findall(r"```(console|python)\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL):
        if kind == "python":
            ran = forks.run(script=block, cwd=tmp_path)
            assert ran.returncode == 0, ran.stderr
            continue
        for line in block.splitlines():
            prompt, program, *words = line.replace("$HEAD", head).split()
            assert (prompt, program) == ("$", "consenso")
            ran = consenso(*words, at=tmp_path)
            assert ran.returncode == 0, ran.stderr
            kinds.append(words[1])
            if words[1] == "head":
                head = ran.stdout.strip()
    assert set(kinds) == {"create", "show", "head", "verify", "export", "lease", "plot"}
    assert (tmp_path / "adult-budget.svg").read_text().count("<path") > 5
    assert len(json.loads((tmp_path / "adult-ledger.json").read_text())["rows"]) == 3


def test_the_help_states_the_exit_codes(tmp_path: Path) -> None:
    shown = consenso("ledger", "--help", at=tmp_path).stdout
    assert "0 fine, 1 verification failed, 2 bad input" in shown
