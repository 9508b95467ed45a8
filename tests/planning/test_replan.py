"""A card's theorems follow from its parameters: whoever edits one must edit the other, and is found."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from consenso.algorithms import discover
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.errors import TamperError
from consenso.planning.replan import differences
from consenso.privacy.accountants import best, gdp, zcdp
from consenso.privacy.card import Card
from consenso.privacy.card.document import digest
from consenso.privacy.serial import from_json, to_json
from consenso.testing import laws


def card_of(example) -> Card:
    return Card.from_json(json.loads(json.dumps(laws.plan_example(example).card(1e-6).to_json())))


@pytest.mark.parametrize("name", discover())
def test_every_algorithms_card_follows_from_its_parameters(name: str) -> None:
    assert differences(card_of(discover()[name].example())) == []


def resealed(stored: dict[str, Any]) -> Card:
    content = {name: value for name, value in stored.items() if name != "digest"}
    return Card.from_json({**content, "digest": digest(content)})


EDITS = [
    ("less noise", lambda c: c["parameters"]["noise"]["dual"].update(multiplier=0.5)),
    ("a smaller step", lambda c: c["parameters"]["algorithm"].update(step=0.1)),
    ("fewer rounds", lambda c: c["parameters"].update(rounds=2)),
    ("longer rows", lambda c: c["data"].update(row_bound=2.0)),
    ("larger parties", lambda c: c["data"].update(sizes=[9] * 6)),
    ("another trust", lambda c: c.update(trust="local")),
    ("another algorithm", lambda c: c.update(algorithm="ConsensusADMM")),
    ("an entry less", lambda c: c["entries"].pop()),
]


@pytest.mark.parametrize(("what", "edit"), EDITS, ids=[what for what, _ in EDITS])
def test_edited_parameters_no_longer_give_the_entries(what: str, edit) -> None:
    stored = copy.deepcopy(card_of(DualConsensusADMM.example()).to_json())
    edit(stored)
    assert differences(resealed(stored))


def test_a_theorem_forged_with_all_its_numbers_is_found() -> None:
    """The forger halves the sensitivity and computes every figure of the entry anew: only the parameters tell."""
    stored = copy.deepcopy(card_of(DualConsensusADMM.example()).to_json())
    entry = next(e for e in stored["entries"] if e["event"].get("event", {}).get("kind") == "events.Gaussian")
    for event in (entry["event"], entry["theorem"]["released"]):
        event["event"]["sensitivity"] /= 2
    forged = from_json(entry["event"])
    cost = best(forged, 1e-6)
    entry.update(epsilon=cost.epsilon, rho=zcdp(forged), mu=gdp(forged))
    assert to_json(forged) == entry["event"]
    assert any("theorem" in difference for difference in differences(resealed(stored)))


def test_parameters_of_no_plan_are_an_error() -> None:
    stored = copy.deepcopy(card_of(DualConsensusADMM.example()).to_json())
    stored["parameters"]["algorithm"]["kind"] = "Unheard"
    with pytest.raises(TamperError, match="not those of a plan"):
        differences(resealed(stored))
