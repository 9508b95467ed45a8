"""`consenso audit` as people run it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests import forks

STUDY = """
title = "a small study"

[data]
dataset = "breast_cancer"
rows = 60

[model]
loss = "logistic"
regularizer = {kind = "l2", strength = 0.5}

[privacy]
epsilon = 1.0
delta = 1e-5
seed = 4

[setting]
kind = "federated"
trust = "secure-sum"
algorithm = "DualConsensusADMM"
rounds = 3

[setting.split]
kind = "equal"
parties = 6
"""


def consenso(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forks.run("audit", *arguments)


@pytest.mark.slow
def test_an_algorithm_by_a_paper_s_name(tmp_path: Path) -> None:
    out = tmp_path / "audit"
    done = consenso("PVP", "--trials", "100", "--observer", "eavesdropper", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "PrimalPerturbation" in done.stdout
    assert "not refuted" in done.stdout
    assert sorted(path.suffix for path in out.iterdir()) == [".json", ".png"]
    (finding,) = json.loads((out / "findings.json").read_text())
    assert finding["trials"] == 100
    assert finding["lower"] <= finding["claimed"]


def test_a_study(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    done = consenso(str(path), "--trials", "100", "--slow-trials", "100", "--json")
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    assert [finding["observer"] for finding in findings] == ["eavesdropper", "server", "peer:0", "public"]
    assert all(finding["lower"] <= finding["claimed"] for finding in findings)
    assert min(finding["claimed"] for finding in findings) == pytest.approx(1.0, rel=1e-3)


def test_one_run_with_canaries(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    done = consenso(str(path), "--canaries", "30", "--json")
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    assert [finding["view"] for finding in findings] == ["rounds", "model"]
    assert all(finding["lower"] <= finding["claimed"] for finding in findings)
    plain = consenso(str(path), "--canaries", "30")
    assert plain.stdout.count("not refuted") == 2


def test_planted_faults_are_caught_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from consenso.cli import build
    from consenso.testing import planted
    from consenso.testing.planted.suite import BEGIN, END

    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    chosen = [fault for fault in planted.FAULTS if fault.catcher == "the client of the secure sum"]
    monkeypatch.setattr(planted, "FAULTS", chosen)
    done = CliRunner().invoke(build(), ["audit", "--self-test", "--quick", "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "3 of 3 faults caught" in done.output
    assert "| a sum of too few | the client of the secure sum | refusal |" in page.read_text()
    missed = replace(planted.FAULTS[-1], plant=lambda folder: None)
    monkeypatch.setattr(planted, "FAULTS", (missed,))
    done = CliRunner().invoke(build(), ["audit", "--self-test"])
    assert done.exit_code == 1
    assert "NOT CAUGHT (nothing was raised)" in done.output
    assert consenso("--quick").returncode == 2


WRONG = """
from dataclasses import dataclass, replace
from consenso.algorithms.primal_perturbation import PrimalPerturbation
from consenso.privacy.noise import GaussianNoise
import consenso.algorithms as algorithms
from consenso.cli import main


@dataclass(frozen=True, kw_only=True)
class Whisper(GaussianNoise):
    def sample(self, values, sensitivity, round, key, sampler):
        return sampler.gaussian(values, self.scale(sensitivity, round) / 10, key, sensitivity=sensitivity)


class Wrong(PrimalPerturbation):
    @classmethod
    def example(cls):
        return replace(super().example(), noise=Whisper(multiplier=3.0))


found = algorithms.discover()
found.clear()
found["Wrong"] = Wrong
main()
"""


@pytest.mark.parametrize("target", ["Wrong", pytest.param("--all", marks=pytest.mark.slow)])
def test_a_refuted_claim_is_exit_code_1(target) -> None:
    """A definition whose noise is a tenth of what it states, found by the command."""
    done = forks.run("audit", target, "--trials", "200", "--observer", "eavesdropper", script=WRONG)
    assert done.returncode == 1
    assert "REFUTED" in done.stderr
    assert "then again with new noise to at least" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "name a study file"),
        (("nosuch",), "there is no such definition"),
        (("DPSGD", "--observer", "somebody"), "an observer is"),
        (("DPSGD", "--unit", "house"), "record or party"),
        (("DPSGD", "--delta", "2"), "(0, 1)"),
        (("DPSGD", "--confidence", "2"), "--confidence 2.0"),
        (("DPSGD", "--adjacency", "x"), "--adjacency x"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, named: str) -> None:
    done = consenso(*arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
