"""Budgets, and which stated cost may be charged to which of them.

A cost is stated for one observer, one unit and one adjacency (its scope). It may be charged to the budget of the same
scope, of an observer who sees less, or of the record when the unit of the cost is a whole person or party. Adjacencies
never stand in for each other: replace-one is not add-remove twice over once sampling or a pathwise bound is involved,
and a replace-one run states no add-remove cost at all (docs/privacy.md#blanked).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from consenso import registry
from consenso.conventions import ADJACENCIES, PROTECTED, Adjacency, Unit
from consenso.errors import InputError
from consenso.privacy.events import Event
from consenso.privacy.ledger.chain import canonical
from consenso.privacy.observers import parse, sees_at_least
from consenso.privacy.rounding import round_up


@dataclass(frozen=True, kw_only=True)
class Scope:
    """For whom a cost holds: the observer's key, the unit that is protected, the adjacency."""

    observer: str
    unit: Unit
    adjacency: Adjacency

    def __post_init__(self) -> None:
        """Refuse what no guarantee could be stated for."""
        parse(self.observer)
        if self.unit not in PROTECTED:
            raise InputError(f"Scope(unit={self.unit!r}): a unit is one of {', '.join(PROTECTED)}; name one of them.")
        if self.adjacency not in ADJACENCIES:
            raise InputError(
                f"Scope(adjacency={self.adjacency!r}): an adjacency is one of {', '.join(ADJACENCIES)}; name one."
            )

    def __str__(self) -> str:
        return f"{self.observer}, {self.unit}, {self.adjacency}"

    def covers(self, other: Scope) -> bool:
        """Whether a cost of this scope is also a valid cost of the other."""
        seen_by, owed_to = parse(self.observer), parse(other.observer)
        # A guarantee against a party says nothing of that party's own data, which a guarantee against an outsider
        # protects too: what a party learns stands in for no observer who is not that party.
        if not (sees_at_least(seen_by, owed_to) and seen_by.insiders <= owed_to.insiders):
            return False
        if self.adjacency != other.adjacency:
            return False
        # Replacing one record replaces its party's data; removing one record does not remove its party.
        # A person may have records with several parties: what is stated of a party is not stated of a person.
        return self.unit == other.unit or (other.unit == "record" and self.adjacency == "replace-one")


Renewal = Literal["month"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """At most `epsilon` at `delta`, over all runs together, for one scope.

    With `renews="month"` it holds for the runs that were reserved in one calendar month (UTC), and every month has its
    own: what all months together cost is not bounded by it, and only shown.
    """

    observer: str
    unit: Unit
    adjacency: Adjacency
    epsilon: float
    delta: float
    renews: Renewal | None = None

    def __post_init__(self) -> None:
        """Refuse a budget that would not bound anything."""
        Scope(observer=self.observer, unit=self.unit, adjacency=self.adjacency)
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise InputError(f"Budget(epsilon={self.epsilon}): a budget is positive and finite; give such an epsilon.")
        if not 0 <= self.delta < 1:
            raise InputError(f"Budget(delta={self.delta}): a delta lies in [0, 1); take one far below 1 / records.")
        if self.renews not in (None, "month"):
            raise InputError(
                f"Budget(renews={self.renews!r}): a budget renews every month, or never; give one of both."
            )

    @property
    def scope(self) -> Scope:
        """For whom the budget holds."""
        return Scope(observer=self.observer, unit=self.unit, adjacency=self.adjacency)

    def __str__(self) -> str:
        every = "" if self.renews is None else f" a {self.renews}"
        return f"epsilon {self.epsilon:.6g}{every} at delta {round_up(self.delta, 3)} ({self.scope})"


Charges = Mapping[Scope, Event]


def find_covering(charges: Charges, budget: Budget) -> list[Event]:
    """The stated costs of a run that may be charged to a budget: that of the same scope, else all that cover it."""
    if budget.scope in charges:
        return [charges[budget.scope]]
    return [event for scope, event in charges.items() if scope.covers(budget.scope)]


def explain_uncovered(charges: Charges, budget: Budget) -> str:
    """Why no cost of a run covers a budget, and what would."""
    near = [
        scope
        for scope in charges
        if Scope(observer=scope.observer, unit=scope.unit, adjacency=budget.adjacency).covers(budget.scope)
    ]
    if near:
        return (
            f"it states a cost under {near[0].adjacency} only, which cannot be charged to a {budget.adjacency} budget; "
            f"plan the run for adjacency={budget.adjacency!r}"
        )
    stated = "; ".join(sorted(str(scope) for scope in charges)) or "none"
    return f"none of its costs ({stated}) covers that scope; state one for that observer or for one who sees more"


def charges_json(charges: Charges) -> list[dict[str, Any]]:
    """Costs as they are stored, in one order."""
    from consenso.privacy.serial import to_json

    stored = [
        {"observer": scope.observer, "unit": scope.unit, "adjacency": scope.adjacency, "event": to_json(event)}
        for scope, event in charges.items()
    ]
    return sorted(stored, key=canonical)


def charges_from_json(stored: list[dict[str, Any]]) -> dict[Scope, Event]:
    """Costs as they were stored."""
    from consenso.privacy.serial import from_json

    found: dict[Scope, Event] = {}
    for entry in stored:
        unit: Any = registry.rename("units", entry["unit"])
        scope = Scope(observer=entry["observer"], unit=unit, adjacency=entry["adjacency"])
        if scope in found:
            raise InputError(f"charges: the scope ({scope}) is stated twice; state one cost for it.")
        found[scope] = from_json(entry["event"])
    return found
