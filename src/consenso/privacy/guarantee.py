"""What one observer can learn of one unit of one data set, as a value that can be asked for its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from consenso.arrays import Array
from consenso.conventions import LARGEST_DELTA, Unit
from consenso.errors import InputError
from consenso.privacy import accountants, events
from consenso.privacy.events import Event
from consenso.privacy.observers import Observer, parse
from consenso.privacy.relations import Relation, bounds_of
from consenso.privacy.rounding import round_up

if TYPE_CHECKING:
    from consenso.privacy.theorems import Theorem

UNITS_IN_WORDS = {"record": "one record", "person": "all records of one person", "party": "all data of one party"}
SIMULATED = "Simulation, not private (the noise has a seed); with noise that nobody can draw again:"
# An epsilon above this bounds a factor of exp(1000): it is told in words, because a number would look like a promise.
LARGEST_USEFUL = 1000.0
# Of two runs that are each within a budget with those before, none may be where results choose between them.
CHOSEN_BEFORE = (
    "How many runs there are, and what each of them costs, was not chosen by what the others released; the budget of a "
    "ledger holds without that (docs/privacy.md#runs-that-are-chosen-by-results)."
)


def is_useful(epsilon: float) -> bool:
    """Whether an epsilon promises anything that a person could use."""
    return epsilon <= LARGEST_USEFUL


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A proved bound for one observer, one unit and one relation between data sets.

    observer: stable key, such as "public", "server", "eavesdropper" or "peer:3".
    adjacency: which data sets the claim compares; "blanked" is what a replace-one run may claim besides.
    theorem: the name of what was proved; `proof` is the theorem itself, where it is known.
    assumptions: what must hold besides what was checked, each with its anchor in docs/privacy.md.
    simulation: whether any of the noise was drawn from a seed, so that the bound is that of a run that was not made.
    party: a party of the kind that it is about. refusals: why nothing stronger is claimed for it.
    """

    event: Event
    adjacency: Relation
    unit: Unit
    observer: str
    theorem: Any
    assumptions: tuple[str, ...] = ()
    simulation: bool = False
    proof: Theorem | None = field(default=None, compare=False, repr=False)
    party: int = field(default=0, compare=False, repr=False)
    refusals: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, theorem: Theorem, observer: Observer, adjacency: Relation, **told: Any) -> Guarantee:
        """What a theorem promises against an observer, in a relation whose bounds are those of the theorem."""
        return cls(
            event=theorem.event(),
            adjacency=adjacency,
            unit=theorem.unit,
            observer=observer.key,
            theorem=type(theorem).__name__,
            assumptions=tuple(assumption.text for assumption in theorem.assumptions()),
            proof=theorem,
            **told,
        )

    def __post_init__(self) -> None:
        for name, choices in (("adjacency", get_args(Relation)), ("unit", get_args(Unit))):
            if getattr(self, name) not in choices:
                raise InputError(f"Guarantee({name}={getattr(self, name)!r}): use {' or '.join(map(repr, choices))}.")
        parse(self.observer)
        for foreign in _foreign(self.event, self.adjacency):
            raise InputError(
                f"Guarantee(adjacency={self.adjacency!r}): the event contains {foreign}, which holds for the other "
                "adjacency only; build the event for the adjacency of the guarantee."
            )
        object.__setattr__(self, "assumptions", tuple(_word(each) for each in self.assumptions))

    def epsilon(self, delta: float) -> float:
        """The smallest known epsilon at a delta in [0, 1)."""
        return accountants.epsilon(self.event, delta)

    def delta(self, epsilon: float) -> float:
        """The smallest known delta at an epsilon above 0."""
        return accountants.delta(self.event, epsilon)

    def method(self, delta: float) -> str:
        """Which curve gives epsilon at this delta."""
        return accountants.best(self.event, delta).method

    def zcdp(self) -> float | None:
        """A rho for which the event is rho-zCDP, if there is one; samplers that miss their law have none."""
        return accountants.zcdp(self.event) if self._is_ideal() else None

    def gdp(self) -> float | None:
        """The mu for which the event is exactly mu-GDP, if there is one."""
        return accountants.gdp(self.event) if self._is_ideal() else None

    def tradeoff(self, fpr: Array) -> Array:
        """Lower bound on the false negative rate of every attack at these false positive rates."""
        return accountants.tradeoff(self.event, fpr)

    def compose(self, *others: Guarantee) -> Guarantee:
        """What the same observer learns from all of these together, if no result has chosen which there are."""
        for other in others:
            for name in ("adjacency", "unit", "observer"):
                if getattr(other, name) != getattr(self, name):
                    raise InputError(
                        f"Guarantee.compose({name}={getattr(other, name)!r}): guarantees compose for one {name} only, "
                        f"here {getattr(self, name)!r}; state both for the same {name}."
                    )
        if not others:
            return self
        all_of_them = (self, *others)
        assumed = [text for each in all_of_them for text in each.assumptions]
        return Guarantee(
            event=events.compose(*(each.event for each in all_of_them)),
            adjacency=self.adjacency,
            unit=self.unit,
            observer=self.observer,
            theorem=f"adaptive composition of {len(all_of_them)} guarantees",
            assumptions=tuple(dict.fromkeys([*assumed, CHOSEN_BEFORE])),
            simulation=any(each.simulation for each in all_of_them),
        )

    def assume(self, text: str) -> Guarantee:
        """The same with something else that must hold."""
        return replace(self, assumptions=(*self.assumptions, text))

    def sentence(self, delta: float | None = None) -> str:
        """The guarantee in plain words: at a delta, or by the numbers that need none. Numbers are rounded up.

        That of a simulation says first that it protects nobody.
        """
        stated = self._bound(delta)
        return f"{SIMULATED} {stated}" if self.simulation and not accountants.is_unbounded(self.event) else stated

    def __str__(self) -> str:
        return self.sentence(LARGEST_DELTA)

    def _repr_html_(self) -> str:
        from consenso.privacy.card.html import guarantee_html

        return guarantee_html(self)

    def _bound(self, delta: float | None) -> str:
        what = UNITS_IN_WORDS[self.unit]
        change = {
            "add-remove": f"adding or removing {what}",
            "replace-one": f"replacing {what}",
            "blanked": f"blanking {what} (one record blanked, n public: its row adds zero to every sum)",
        }[self.adjacency]
        opening = f"For {parse(self.observer).sentence}, {change}"
        if accountants.is_unbounded(self.event):
            return f"{opening} can change everything: a value leaves without a bound."
        if delta is None:
            return f"{opening} has an effect that is bounded by {self._numbers()}."
        cost = accountants.best(self.event, delta)
        stated = f"(epsilon {round_up(cost.epsilon)} at delta {delta:g}, by {cost.method})"
        if math.isinf(cost.epsilon):
            return f"{opening} has an effect that no epsilon bounds at delta {delta:g}; allow a larger delta."
        if not is_useful(cost.epsilon):
            return f"{opening} has no useful guarantee: epsilon is above {LARGEST_USEFUL:,.0f} at delta {delta:g}."
        if cost.epsilon == 0:
            return f"{opening} changes no probability{f' by more than {delta:g}' if delta else ''} {stated}."
        but = f", but for a probability of {delta:g}," if delta else ""
        return (
            f"{opening} changes the probability of whatever they could conclude{but} by a factor of at most "
            f"exp({round_up(cost.epsilon)}) {stated}."
        )

    def _is_ideal(self) -> bool:
        """Whether samplers have their laws, and nothing may be told by name: otherwise there is a delta."""
        return accountants.excess(self.event) == accountants.find_told(self.event) == 0

    def _numbers(self) -> str:
        pure = accountants.pure(self.event) if self._is_ideal() else None
        costs = ((self.gdp(), "GDP"), (self.zcdp(), "zCDP"), (pure, "differential privacy"))
        known = [f"{round_up(cost)}-{name}" for cost, name in costs if cost is not None]
        return " and ".join(known) or "an epsilon that depends on the delta; name one"


def _foreign(event: Event, relation: Relation) -> list[str]:
    """Parts of an event that were built for another adjacency."""
    adjacency = bounds_of(relation)
    found: list[str] = []
    stack: list[Event] = [event]
    while stack:
        current = stack.pop()
        stack.extend(current.inner)
        if current.only_under not in (None, adjacency):
            found.append(type(current).__name__)
    return found


def _word(assumption: object) -> str:
    """Theorems list assumptions with a text and an anchor; here they become one line."""
    text, anchor = getattr(assumption, "text", None), getattr(assumption, "anchor", None)
    return str(assumption) if text is None else f"{text} (docs/privacy.md#{anchor})"
