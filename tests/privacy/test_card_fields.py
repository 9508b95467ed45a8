"""A field of a card is one line of the card, and whoever states it: files and verification know it by that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from consenso.algorithms.dp_sgd import DPSGD
from consenso.errors import TamperError
from consenso.planning.plan import plan
from consenso.privacy import verify as verification
from consenso.privacy.card import Card
from consenso.privacy.card.document import digest
from consenso.privacy.verify import first_failure, verify


@dataclass(frozen=True, kw_only=True)
class SignedCard(Card):
    """A card with one more field, which cards of earlier versions do not have."""

    signed_by: str = ""


@pytest.fixture
def card() -> Card:
    example = DPSGD.example()
    return plan(example.problem, example.algorithm, rounds=2, noise=example.noise, trust="curator").card(1e-6)


def seal(stored: dict[str, Any]) -> dict[str, Any]:
    content = {name: value for name, value in stored.items() if name != "digest"}
    return {**content, "digest": digest(content)}


def test_a_new_field_is_kept_checked_and_verified(card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "Card", SignedCard)
    signed = replace(SignedCard(**vars(card)), signed_by="the board")
    assert SignedCard.load(signed.save(tmp_path)) == signed
    assert first_failure(verify(signed.to_json())) is None
    wrong = seal({**signed.to_json(), "signed_by": 7})
    with pytest.raises(TamperError, match="signed_by"):
        SignedCard.from_json(wrong)
    assert str(first_failure(verify(wrong))) == "signed_by: it is not a text"


def test_a_card_from_before_the_field_is_read_and_verified(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "Card", SignedCard)
    assert SignedCard.from_json(card.to_json()).signed_by == ""
    assert first_failure(verify(card.to_json())) is None


def test_a_field_that_nobody_states_is_refused(card: Card) -> None:
    stored = seal({**card.to_json(), "signed_by": "the board"})
    with pytest.raises(TamperError, match="signed_by"):
        Card.from_json(stored)
    assert str(first_failure(verify(stored))) == "signed_by: it is not a field of a card"
