"""What people read of the rounds of a run, of units, and of epsilons that say nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from consenso.privacy.card import Card
from consenso.privacy.card.text import cost_text, figures_text, spread_text
from consenso.privacy.guarantee import LARGEST_USEFUL
from consenso.report import write_report
from consenso.study import Study, status
from consenso.study.folder import RunFolder
from consenso.study.rounds import rounds_text
from consenso.study.training import train

STUDY = """
title = "rounds"
[data]
dataset = "breast_cancer"
[model]
loss = "logistic"
regularizer = {{ kind = "l2", strength = 0.1 }}
[privacy]
epsilon = 1.0
delta = 1e-5
seed = 1
[setting]
{spec}
"""
CENTRAL = 'kind = "central"'
STOPPED = """
kind = "federated"
trust = "curator"
algorithm = "GradientADMM"
schedule = "random-stopping"
rounds = 40
[setting.split]
kind = "equal"
parties = 8
"""


@pytest.fixture(scope="module")
def central(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("central") / "run"
    train(Study.parse(STUDY.format(spec=CENTRAL)), out)
    write_report(out)
    return out


def test_a_run_that_ended_early_says_what_is_paid_for_what_was_run_and_why(central: Path) -> None:
    trace = json.loads((central / "trace.json").read_text())
    planned, run = trace["rounds planned"], trace["rounds run"]
    assert run < planned
    page = (central / "report.html").read_text()
    assert f"at most {planned} rounds are paid for, {run} were run, because {trace['because']}" in page
    assert f"rounds paid for {planned}" in " ".join(Card.load(central).text().split())
    for text in (page, Card.load(central).text()):
        assert not re.search(rf"(?<!most ){planned} rounds", text)


def test_a_run_with_all_its_rounds_says_so() -> None:
    assert rounds_text({"rounds planned": 8, "rounds run": 8, "because": None}) == "8 rounds"


def test_the_only_table_is_no_unit_and_a_party_is_called_a_party(central: Path) -> None:
    card = Card.load(central)
    assert {entry.unit for entry in card.entries} == {"record"}
    page = (central / "report.html").read_text()
    federated = CENTRAL.replace("central", "federated") + '\ntrust = "secure-sum"\n[setting.split]\nkind = "equal"\n'
    other = Study.parse(STUDY.format(spec=federated + "parties = 6")).plan().card(1e-5)
    assert {entry.unit for entry in other.entries} == {"record", "party"}
    assert "all data of one party" in other.text()
    for text in (card.text(), page, other.text()):
        assert not re.search(r"\buser\b", text)


def test_an_epsilon_that_promises_nothing_is_told_in_words(central: Path) -> None:
    plan = Study.parse(STUDY.format(spec=CENTRAL)).plan()
    from dataclasses import replace

    from consenso.privacy.noise import GaussianNoise

    loud = dict.fromkeys(plan.noise, GaussianNoise(multiplier=1e-3))
    card = replace(plan, noise=loud).card(1e-5)
    assert all(entry.epsilon > LARGEST_USEFUL for entry in card.entries)
    assert "e+0" not in card.text()
    told = " ".join(card.text().split()).count("no useful guarantee")
    assert told == 2 * len(card.entries)  # its sentence, and its figures
    assert all(spread_text(entry) is None and "e+" not in figures_text(entry) for entry in card.entries)
    assert cost_text(7.3e4, 1e-5) == "no useful guarantee (epsilon above 1,000)"


def _refuse(done: int, planned: int) -> None:
    raise AssertionError("whoever is told the rounds one by one knows the last of them")


def test_a_number_of_rounds_that_a_proof_takes_for_a_secret_is_told_nowhere(tmp_path: Path, monkeypatch) -> None:
    """Random stopping hides who acted last by hiding when; the folder of a run is for everybody."""
    study = Study.parse(STUDY.format(spec=STOPPED.format()))
    told, written = [], []
    write = RunFolder.write_json
    monkeypatch.setattr(status, "SECONDS", 0.0)  # every round is worth a note
    monkeypatch.setattr(RunFolder, "write_json", lambda *given: written.append(given[1:]) or write(*given))
    for seed in (1, 2):
        out = tmp_path / str(seed)
        written.clear()
        found = train(study.change({"privacy.seed": seed}), out, progress=_refuse)
        assert [content["done"] for name, content in written if name == "status.json"] == [40]
        trace = json.loads((out / "trace.json").read_text())
        told.append(({name: trace[name] for name in trace if name != "noise"}, found.rounds))
        assert "status.json" not in {path.name for path in out.iterdir()} or (
            json.loads((out / "status.json").read_text())["done"] == 40
        )
    assert told[0] == told[1]
    assert told[0][0]["rounds run"] is None
    assert "is not told, because" in rounds_text(told[0][1])
