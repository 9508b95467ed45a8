"""What is fuzzed: files and messages that others hand in, each with good examples and the way in which it is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.engine.codec import MessageEnvelope, RecordSchema, decode, encode, pack, unpack
from consenso.losses import Logistic
from consenso.models.file import _digest, load_model, save_model
from consenso.models.model import Model
from consenso.privacy.card import Card
from consenso.privacy.card.document import digest
from consenso.privacy.ledger import Ledger, verify_file
from consenso.schema import Schema
from consenso.study import Study
from consenso.tables import read_table

OLD = Path(__file__).parents[1] / "compatibility" / "v0_1_0" / "good"
RUN = "ab" * 32
SCHEMA = b"""intercept = true
row_bound = 1
strict = true
missing_values = ["?"]

[columns.age]
kind = "numeric"
low = 17
high = 90
missing = "middle"

[columns.job]
kind = "category"
categories = ["cook", "nurse"]

[columns.sex]
kind = "binary"
categories = ["F", "M"]

[columns."income class"]
kind = "label"
classes = [0, 1]

[columns.person]
kind = "user"
"""
STUDY = b"""title = "a study"

[data]
dataset = "diabetes"
rows = 300
target_bound = 3.0

[model]
loss = {kind = "huber", threshold = 1.0}
regularizer = {kind = "l2", strength = 0.01}

[privacy]
epsilon = 2.0
delta = 1e-05

[setting]
kind = "central"
"""


@dataclass(frozen=True)
class Message:
    """A message with a field of every kind."""

    z: Array
    counts: Array
    clip: float
    steps: int
    late: bool


GOOD = Message(z=np.linspace(-1, 1, 3), counts=np.arange(4).reshape(2, 2), clip=0.5, steps=7, late=True)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Something that reads what others wrote. `sign` renews a digest, so that what it guards is reached."""

    name: str
    file: str
    seeds: tuple[bytes, ...]
    read: Callable[[Path], Any]
    sign: Callable[[dict[str, Any]], dict[str, Any]] | None = None


def _read_record(path: Path) -> None:
    decode(Message, path.read_bytes(), RecordSchema.of(GOOD))


def _read_own_record(path: Path) -> None:
    decode(Message, path.read_bytes())


def _read_envelope(path: Path) -> None:
    unpack(path.read_bytes(), run=RUN, recipient="server", sender="ash", limit=500)


def _read_card(path: Path) -> None:
    card = Card.load(path)
    card.sentence(), card.summary(), card.text()


def _read_ledger(path: Path) -> None:
    shutil.copy(OLD / "data.ledger.head", path.with_name(path.name + ".head"))
    verify_file(path)
    ledger = Ledger.open(path)
    ledger.balances(), ledger.export()


def _sign_card(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "digest": digest({name: value for name, value in content.items() if name != "digest"})}


def _sign_model(content: dict[str, Any]) -> dict[str, Any]:
    if isinstance(content.get("card"), dict):
        content = {**content, "card": _sign_card(content["card"])}
    return {**content, "digest": _digest({name: value for name, value in content.items() if name != "digest"})}


def _model(folder: Path) -> bytes:
    made = Model(
        loss=Logistic(),
        coefficients=np.array([[0.5], [-1.0]]),
        intercept=np.array([0.1]),
        features=("a", "b"),
        classes=("no", "yes"),
        row_bound=1.0,
    )
    return save_model(made, folder / "model.json").read_bytes()


def targets(folder: Path) -> tuple[Target, ...]:
    """Everything that is fuzzed; `folder` is for making examples."""
    envelope = MessageEnvelope(
        kind="answer", run=RUN, sender="ash", recipient="server", round=3, stage="step", body=b"content"
    )
    cards = tuple((OLD / name).read_bytes() for name in ("secure-sum.json", "add-remove-fit.json"))
    return (
        Target(name="codec", file="record", seeds=(encode(GOOD),), read=_read_record),
        Target(name="own records", file="record", seeds=(encode(GOOD),), read=_read_own_record),
        Target(name="envelopes", file="envelope", seeds=(pack(envelope),), read=_read_envelope),
        Target(name="studies", file="study.toml", seeds=(STUDY,), read=Study.load),
        Target(name="schemas", file="schema.toml", seeds=(SCHEMA,), read=Schema.load),
        Target(name="tables", file="table.csv", seeds=(b"age,job\n1,cook\n2,nurse\n3,\n",), read=read_table),
        Target(name="sparse tables", file="t.libsvm", seeds=(b"1 1:0.5 3:2\n-1 2:1\n",), read=read_table),
        Target(name="cards", file="card.json", seeds=cards, read=_read_card, sign=_sign_card),
        Target(name="ledgers", file="a.ledger", seeds=((OLD / "data.ledger").read_bytes(),), read=_read_ledger),
        Target(name="models", file="model.json", seeds=(_model(folder),), read=load_model, sign=_sign_model),
    )


def parse_json(blob: bytes) -> Any:
    """JSON, or None where it is none."""
    try:
        return json.loads(blob)
    except ValueError:
        return None
