"""`consenso lint` as people run it."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests import forks

from consenso.lint import RULES


def lint(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forks.run("lint", *arguments)


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(next(e.catches for e in RULES[0].examples if e.language == "toml"))
    return path


def test_a_finding_is_one_line_and_exit_code_1(study) -> None:
    done = lint(str(study))
    assert done.returncode == 1
    assert done.stdout.startswith(f"{study}:7: fixed-seed: ")
    assert done.stdout.endswith("1 finding\n")


def test_json(study) -> None:
    done = lint(str(study), "--json")
    assert done.returncode == 1
    (notice,) = json.loads(done.stdout)
    assert (notice["rule"], notice["line"]) == ("fixed-seed", 7)


def test_nothing_found_is_exit_code_0(tmp_path) -> None:
    (tmp_path / "fine.py").write_text("import consenso\n")
    done = lint(str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "0 findings\n")


@pytest.mark.parametrize("arguments", [(), ("nowhere.py",)])
def test_bad_input_is_one_line_and_exit_code_2(arguments) -> None:
    done = lint(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("consenso: ")
    assert done.stderr.count("\n") == 1
