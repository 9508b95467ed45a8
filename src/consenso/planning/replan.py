"""A plan made anew from what its card says, to see that the card's theorems follow from its parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from consenso import registry
from consenso.errors import ConsensoError, TamperError
from consenso.planning.plan import Plan, plan
from consenso.privacy.card import Card
from consenso.privacy.card.depths import REMARKS
from consenso.privacy.samplers import Safe, Seeded
from consenso.privacy.verify import compare_leaves
from consenso.problem import Problem
from consenso.topology import Topology


def replan(card: Card) -> Plan:
    """The plan of a card; TamperError where its parameters are not those of a plan."""
    try:
        data = {name: _rebuild(value) for name, value in card.data.items() if name not in REMARKS}
        told = {name: _rebuild(value) for name, value in card.parameters.items()}
        problem = Problem(**{**data, "sizes": np.array(data["sizes"], dtype=np.int64)})
        edges = told.pop("edges")
        if "masks" in told:
            told["masks"] = Topology.from_edges(problem.parties, told["masks"])
        return plan(
            problem,
            told.pop("algorithm"),
            trust=card.trust,
            topology=None if edges is None else Topology.from_edges(problem.parties, edges),
            sampler=Seeded(0) if card.simulation else Safe(),
            **told,
        )
    except (ConsensoError, KeyError, TypeError, ValueError) as error:
        raise TamperError(f"The parameters of the card are not those of a plan: {error}") from error


def differences(card: Card) -> list[str]:
    """Entries of a card that its own parameters do not give; empty when all follow."""
    made = replan(card)
    if type(made.algorithm).__name__ != card.algorithm:
        return [f"algorithm: {card.algorithm!r} is not the {type(made.algorithm).__name__} of the parameters"]
    fresh = made.card(card.delta)
    if fresh.trust != card.trust:
        return [f"trust: the parameters are those of {fresh.trust!r} trust, and the card says {card.trust!r}"]
    return compare(card, fresh)


def compare(card: Card, fresh_card: Card) -> list[str]:
    """Entries of a card that are not those of a card that was made anew; empty when all are."""
    again = {_scope(entry): entry for entry in fresh_card.entries}
    found = []
    for entry in card.entries:
        fresh = again.pop(_scope(entry), None)
        if fresh is None:
            found.append(f"{' / '.join(_scope(entry))}: the plan promises nothing to this observer")
            continue
        found += [
            f"{' / '.join(_scope(entry))}: {each.name} is not what the parameters give"
            for each in dataclasses.fields(entry)
            if getattr(entry, each.name) != getattr(fresh, each.name)
        ]
    return found + [f"{' / '.join(scope)}: the card leaves this promise out" for scope in again]


def compare_all(card: Card, fresh_card: Card) -> list[str]:
    """The same, with everything else that a card states and a card that was made anew from a few numbers does, too."""
    checks = [
        check
        for name in ("algorithm", "trust", "parameters", "data")
        for check in compare_leaves(name, getattr(card, name), getattr(fresh_card, name))
    ]
    return [*(str(check) for check in checks if not check.holds), *compare(card, fresh_card)]


def _scope(entry: Any) -> tuple[str, str, str]:
    return entry.observer, entry.unit, entry.adjacency


def _rebuild(value: Any) -> Any:
    """A value of a card as the object that it spells out."""
    if isinstance(value, Mapping):
        if "kind" not in value:
            return {name: _rebuild(item) for name, item in value.items()}
        kind = registry.find(str(value["kind"]), registry.PLANNED)
        asked = {each.name for each in dataclasses.fields(kind) if each.init}
        return kind(**{name: _rebuild(item) for name, item in value.items() if name in asked})
    if isinstance(value, list):
        return tuple(_rebuild(item) for item in value)
    return float(value) if value in ("inf", "-inf") else value
