"""A card in less than all its depth: one sentence for everybody, and one table.

Observers with equal guarantees share a row, and a unit has a column if it protects somebody at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from consenso.privacy.card.entry import Entry
from consenso.privacy.card.odds import COIN, odds_text, protects, right_of_hundred
from consenso.privacy.guarantee import LARGEST_USEFUL, is_useful
from consenso.privacy.observers import parse
from consenso.privacy.rounding import round_up

if TYPE_CHECKING:
    from consenso.privacy.card.document import Card

SIMULATED = "Simulation, not private. With noise that nobody can draw again: "
NOBODY = "Nobody is protected: no observer has a useful guarantee."
UNITS = {"record": "one record", "person": "one person", "party": "one party"}
# What the data of a card say in words, which follows from no plan: what other calls cost, whether the labels that occur
# were taken for public, where rows were, and which were canaries.
REMARKS = ("calls", "labels", "engine", "canaries")
CHANGES = {"replace-one": "replaced", "add-remove": "there or not", "blanked": "blanked, n public"}


def observer_name(key: str) -> str:
    """An observer in a few words."""
    return parse(key).name


def epsilon_text(epsilon: float) -> str:
    """An epsilon as people read it, never below its value; 'none' where it promises nothing."""
    return round_up(epsilon) if is_useful(epsilon) else "none"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What some observers learn, all of them the same: an epsilon for each column, and the odds."""

    observers: tuple[str, ...]
    epsilons: tuple[str, ...]
    odds: str

    @property
    def who(self) -> str:
        """The observers by name."""
        return ", ".join(map(observer_name, self.observers))


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The sentence and the table of a card."""

    card: Card

    @cached_property
    def own(self) -> tuple[str, str]:
        """The unit and relation that the run was planned for."""
        data = self.card.data
        planned = (str(data.get("unit", "record")), str(data.get("adjacency")))
        stated = [(entry.unit, entry.adjacency) for entry in self.card.entries]
        return planned if planned in stated else stated[0]

    @cached_property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Units and relations under which somebody is protected; that of the run always, and first."""
        kept = [scope for scope in self._scopes if scope != self.own and any(map(protects, self._useful(scope)))]
        return (self.own, *kept)

    @cached_property
    def heads(self) -> tuple[str, ...]:
        """What the columns are called."""
        named = tuple(f"{UNITS[unit]} {CHANGES[relation]}" for unit, relation in self.columns)
        return ("who looks", *named, f"right of 100 (a coin: {COIN})")

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """A row for all observers with the same figures, in the order of the card."""
        found: dict[tuple[tuple[str, ...], str], list[str]] = {}
        for observer in dict.fromkeys(entry.observer for entry in self.card.entries):
            entries = [self._entry(observer, scope) for scope in self.columns]
            epsilons = tuple("-" if entry is None else epsilon_text(entry.epsilon) for entry in entries)
            first = entries[0]
            odds = "-" if first is None else str(right_of_hundred(first)) if is_useful(first.epsilon) else "100"
            found.setdefault((epsilons, odds), []).append(observer)
        return tuple(Row(observers=tuple(who), epsilons=epsilons, odds=odds) for (epsilons, odds), who in found.items())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the table leaves out, and what it rests on besides the plan, in a sentence each."""
        found = []
        if any(relation == "blanked" for _, relation in self.columns):
            found.append("blanked: one record blanked, n public; its row adds zero to every sum")
        for unit in dict.fromkeys(unit for unit, _ in self._scopes):
            left = [scope for scope in self._scopes if scope[0] == unit]
            if not any(scope in self.columns for scope in left):
                least = min(entry.epsilon for entry in self.card.entries if entry.unit == unit)
                told = f"epsilon {round_up(least)} at least" if is_useful(least) else f"above {LARGEST_USEFUL:,.0f}"
                found.append(f"not protected: all data of {UNITS[unit]} ({told})")
        return (*found, *self.remarks)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the card says in words of its data, such as which labels were taken for public."""
        return tuple(str(self.card.data[name]) for name in REMARKS if name in self.card.data)

    @property
    def sentence(self) -> str:
        """What the run promises, in one sentence for everybody: the weakest of its useful promises."""
        promise = self.promise
        return f"{SIMULATED}{promise}" if self.card.simulation and promise != NOBODY else promise

    @property
    def promise(self) -> str:
        """The same as if the noise were secret."""
        unit, relation = self.own
        own = [entry for entry in self.card.entries if (entry.unit, entry.adjacency) == (unit, relation)]
        useful = [entry for entry in own if is_useful(entry.epsilon)]
        if not useful:
            return NOBODY
        worst = max(useful, key=lambda entry: entry.epsilon)
        who = "whoever looks" if len(useful) == len(own) else _join([observer_name(e.observer) for e in useful])
        cost = f"epsilon {epsilon_text(worst.epsilon)} at delta {self.card.delta:g}"
        bare = _join([observer_name(entry.observer) for entry in own if not is_useful(entry.epsilon)])
        but = f" Nothing is promised against {bare}." if bare else ""
        return f"Against {who}, {odds_text(worst)} ({cost}).{but}"

    @cached_property
    def _scopes(self) -> tuple[tuple[str, str], ...]:
        return tuple(dict.fromkeys((entry.unit, entry.adjacency) for entry in self.card.entries))

    def _useful(self, scope: tuple[str, str]) -> list[Entry]:
        return [e for e in self.card.entries if (e.unit, e.adjacency) == scope and is_useful(e.epsilon)]

    def _entry(self, observer: str, scope: tuple[str, str]) -> Entry | None:
        matching = (e for e in self.card.entries if (e.observer, e.unit, e.adjacency) == (observer, *scope))
        return next(matching, None)


def _join(words: list[str]) -> str:
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last
