"""Checking a card: every number on it is computed again from the parameters that it states.

The digest finds any change, but whoever changes a card can compute a new digest. So the digest comes last, and what
must follow from the parameters is checked without it. What cannot follow from anything (the algorithm's name, its
parameters and data facts beside the theorems, refusals, versions) is protected by the digest alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

from consenso.errors import ConsensoError, InputError
from consenso.privacy.card.document import FORMATS, SIMULATION, Card, digest, is_simulation, read
from consenso.privacy.card.entry import Entry, read_entry
from consenso.privacy.card.plain import plain
from consenso.privacy.card.renamed import rename_card
from consenso.privacy.card.shape import json_kinds, optional_fields
from consenso.privacy.card.withdrawn import withdrawn
from consenso.privacy.relations import check_claim
from consenso.problem import Adjacency
from consenso.trust import modes

TOLERANCE = 1e-9
_COSTS = frozenset({"epsilon", "rho", "mu", "excess", "least", "median", "most"})
_MALFORMED = (ConsensoError, KeyError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One field of a card, and whether it follows."""

    field: str
    holds: bool
    reason: str = ""

    def __str__(self) -> str:
        return self.field if self.holds else f"{self.field}: {self.reason}"


def verify(card: Mapping[str, Any]) -> list[Check]:
    """Check every field of a card, given as its JSON; the first check that does not hold names what was changed."""
    checks: list[Check] = []
    try:
        checks.extend(_checks(card))
    except _MALFORMED as error:  # a value of a type that no check expects
        checks.append(Check(field="card", holds=False, reason=f"it cannot be read ({error})"))
    return checks


def verify_file(path: str | Path) -> list[Check]:
    """The same for a file, or for the `card.json` of a run's folder."""
    return verify(read(path))


def first_failure(checks: list[Check]) -> Check | None:
    """The first check that does not hold."""
    return next((check for check in checks if not check.holds), None)


def _checks(card: Mapping[str, Any]) -> Iterator[Check]:
    shape = list(_shape(card))
    yield from shape
    if not all(check.holds for check in shape):
        return
    card, stored_card = rename_card(card), card
    wrong = withdrawn(card)
    if wrong is not None:
        yield Check(field="entries", holds=False, reason=wrong)
    delta = card["delta"]
    simulation = is_simulation(card["sampler"])
    yield _check(
        "simulation",
        card["simulation"] is simulation,
        f"it must be {simulation}: the sampler's name {'says' if simulation else 'does not say'} {SIMULATION!r}",
    )
    for place, stored in enumerate(card["entries"]):
        yield from _entry_checks(f"entries[{place}]", stored, delta, card["data"]["adjacency"], simulation=simulation)
    scopes = [(entry["observer"], entry["unit"], entry["adjacency"]) for entry in card["entries"]]
    yield _check("entries", len(set(scopes)) == len(scopes), "an observer, unit and adjacency is stated twice")
    content = {name: value for name, value in stored_card.items() if name != "digest"}
    yield _check("digest", card["digest"] == digest(content), "it is not the digest of this card, which was changed")


def _shape(card: Mapping[str, Any]) -> Iterator[Check]:
    wanted = {"format", "digest", *(field.name for field in fields(Card))}
    needed = wanted - optional_fields(Card)
    for name in sorted(wanted | card.keys()):
        if name in needed and name not in card:
            yield Check(field=name, holds=False, reason="it is missing")
        elif name not in wanted:
            yield Check(field=name, holds=False, reason="it is not a field of a card")
    if not needed <= card.keys():
        return
    yield _check("format", card["format"] in FORMATS, f"this version checks the formats {', '.join(map(str, FORMATS))}")
    yield _check("trust", card["trust"] in modes(), f"trust is one of {', '.join(modes())}")
    words = {str: "a text", dict: "an object"}
    for name, kind in json_kinds(Card).items():
        if kind in words and name in card:
            yield _check(name, isinstance(card[name], kind), f"it is not {words[kind]}")
    if isinstance(card["data"], dict):
        run = card["data"].get("adjacency")
        yield _check("data.adjacency", run in get_args(Adjacency), "it does not say which adjacency the run was for")
    yield _check("delta", _is_number(card["delta"]) and 0 <= card["delta"] < 1, "a delta lies in [0, 1)")
    entries = card["entries"]
    yield _check("entries", isinstance(entries, list) and len(entries) > 0, "a card states at least one guarantee")


def _entry_checks(where: str, stored: Any, delta: float, run: Adjacency, *, simulation: bool) -> Iterator[Check]:
    try:
        entry = read_entry(stored)
        theorems = entry.kinds()
    except _MALFORMED as error:
        yield Check(field=f"{where}.theorem", holds=False, reason=f"it cannot be built from its parameters ({error})")
        return
    try:
        follows = Entry.derive(entry.observer, theorems, delta, entry.refusals, run=run, simulation=simulation)
    except _MALFORMED as error:
        yield Check(field=where, holds=False, reason=f"its costs cannot be computed ({error})")
        return
    yield from compare_leaves(where, stored, plain(follows, where))
    try:
        check_claim(run, follows.unit, follows.adjacency)  # type: ignore[arg-type]
    except InputError as error:
        yield Check(field=f"{where}.adjacency", holds=False, reason=str(error))


def compare_leaves(where: str, stored: Any, follows: Any) -> Iterator[Check]:
    """Leaf by leaf: what is stated against what follows."""
    if isinstance(follows, dict) and isinstance(stored, dict) and follows.keys() == stored.keys():
        for name in follows:
            yield from compare_leaves(f"{where}.{name}", stored[name], follows[name])
    elif isinstance(follows, list) and isinstance(stored, list) and len(follows) == len(stored):
        for place, (one, other) in enumerate(zip(stored, follows, strict=True)):
            yield from compare_leaves(f"{where}[{place}]", one, other)
    else:
        same = _same_cost(stored, follows) if where.rpartition(".")[2] in _COSTS else stored == follows
        same = same and isinstance(stored, bool) == isinstance(follows, bool)
        yield _check(where, same, f"it says {_short(stored)} and {_short(follows)} follows from the parameters")


def _same_cost(stored: Any, follows: Any) -> bool:
    if _is_number(stored) and _is_number(follows):
        return math.isclose(stored, follows, rel_tol=TOLERANCE, abs_tol=0.0)
    return bool(stored == follows)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check(field: str, holds: bool, reason: str) -> Check:
    return Check(field=field, holds=holds, reason="" if holds else reason)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
