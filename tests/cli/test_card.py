"""`consenso card` and `consenso verify`, run as programs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests import forks

from consenso.privacy.card import Card
from consenso.privacy.card.document import digest
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.samplers import Seeded
from consenso.privacy.theorems.sampling import FixedSizeWithoutMemory


def consenso(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return forks.run(*arguments, env={"COLUMNS": "200"})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    theorem = FixedSizeWithoutMemory(size=1, population=1, contribution=1.0, std=20.0, rounds=30)
    guarantee = Guarantee(
        event=theorem.event(),
        adjacency=theorem.adjacency,
        unit=theorem.unit,
        observer="server",
        theorem="FixedSizeWithoutMemory",
        assumptions=tuple(assumption.text for assumption in theorem.assumptions()),
        proof=theorem,
        refusals=("MeanOfNoisyStates: [not] here.",),
    )
    card = Card.build(
        algorithm="ConsensusADMM",
        parameters={"step": 0.5},
        data={"adjacency": "replace-one", "parties": 12},
        trust="local",
        sampler=Seeded(3),
        delta=1e-5,
        promises=[guarantee],
    )
    card.save(tmp_path)
    return tmp_path


def test_a_card_is_shown_with_its_warning(run: Path) -> None:
    shown = consenso("card", run)
    assert shown.returncode == 0, shown.stderr
    (entry,) = Card.load(run).entries
    for text in (
        "SIMULATION, NOT PRIVATE",
        "Privacy card of ConsensusADMM",
        "the server",
        Card.load(run).sentence().partition("again: ")[2],
    ):
        assert text in " ".join(shown.stdout.split())
    everything = consenso("card", run / "card.json", "--all").stdout
    assert everything == Card.load(run).text()
    assert "MeanOfNoisyStates: [not] here." in everything
    assert entry.sentence in " ".join(everything.split())
    assert consenso("card", run, "--sentence").stdout.strip() == Card.load(run).sentence()
    assert json.loads(consenso("card", run, "--json").stdout) == json.loads((run / "card.json").read_text())


def test_verify_accepts_what_was_written_and_names_what_was_changed(run: Path) -> None:
    fine = consenso("verify", run, "--numbers-only")
    assert fine.returncode == 0, fine.stderr
    assert "all of them follow from the parameters" in fine.stdout
    stored = json.loads((run / "card.json").read_text())
    stored["entries"][0]["epsilon"] *= 0.5
    stored.pop("digest")
    forged = run / "forged.json"
    forged.write_text(json.dumps({**stored, "digest": digest(stored)}))
    found = consenso("verify", forged)
    assert found.returncode == 1
    assert "DOES NOT FOLLOW: entries[0].epsilon" in found.stderr
    assert consenso("card", forged).returncode == 0
    forged.write_text(json.dumps({**stored, "digest": "0" * 64}))
    assert consenso("card", forged).returncode == 1


@pytest.mark.parametrize("command", ["card", "verify"])
def test_bad_input_is_one_message_and_exit_code_two(tmp_path: Path, command: str) -> None:
    (tmp_path / "text").write_text("not a card")
    for path in (tmp_path / "none", tmp_path, tmp_path / "text"):
        ended = consenso(command, path)
        assert ended.returncode == 2
        assert "Traceback" not in ended.stderr
        assert str(path) in ended.stderr
        assert "name a card or the folder of a run" in ended.stderr
        assert "(" not in ended.stderr.partition(":")[2].partition(": ")[0], "words of the command, not of Python"
    assert "Exit codes: 0 fine, 1" in " ".join(consenso(command, "--help").stdout.split())
