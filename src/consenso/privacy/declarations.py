"""What an algorithm declares to release: asked for once, and kept for every round that it does not tell apart.

A declaration is a function of public facts. It is handed facts that note how it looks at the number of the round: not
at all (`facts.round` is never read), only at whether the round comes before another (`facts.is_before`), or at the
number itself. Its answer then stands for all rounds in which it would have seen the same, so that a plan of ten
thousand equal rounds asks once.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from consenso.privacy.release import Release
from consenso.public_facts import PublicFacts

Declaration: TypeAlias = Callable[[PublicFacts], tuple[Release, ...]]

# Answers are forgotten when their cohorts have so many parties in all: those of sampled rounds do not come back.
MOST_PARTIES = 1 << 20


@dataclass(frozen=True, order=True)
class Declared:
    """What is released in the rounds from `first` up to `stop`."""

    first: int
    stop: int
    releases: tuple[Release, ...] = field(compare=False)


class Declarations:
    """A declaration that remembers its answers. It is itself a declaration."""

    def __init__(self, declaration: Declaration) -> None:
        self._declaration = declaration
        self._answers: dict[Any, list[Declared]] = {}
        self._parties = 0

    def __call__(self, facts: PublicFacts) -> tuple[Release, ...]:
        return self._find(facts).releases

    def over_rounds(self, facts: PublicFacts) -> Iterator[Declared]:
        """What a cohort releases over the whole run, rounds that the declaration does not tell apart together."""
        round_ = 0
        while round_ < facts.rounds:
            found = self._find(facts.at(round_))
            yield Declared(round_, min(found.stop, facts.rounds), found.releases)
            round_ = found.stop

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy asks again: what is kept knows problems by who they are."""
        return type(self), (self._declaration,)

    def _find(self, facts: PublicFacts) -> Declared:
        degrees = None if facts.degrees is None else facts.degrees.tobytes()
        key = facts.cohort.tobytes(), degrees, facts.rounds, facts.rate, _Same(facts.problem)
        answers, round_ = self._answers.get(key, []), facts.round
        index = bisect_right(answers, round_, key=_first) - 1
        if index >= 0 and round_ < answers[index].stop:
            return answers[index]
        watched = _WatchedFacts.of(facts)
        releases = self._declaration(watched)
        notes = watched.notes
        if notes.noise_was_read:
            return Declared(round_, round_ + 1, releases)  # while a plan is made its noise changes
        found = Declared(notes.first, notes.stop, releases)
        if key not in self._answers:
            self._parties += len(facts.cohort)
            if self._parties > MOST_PARTIES:
                self._answers, self._parties = {}, len(facts.cohort)
        insort(self._answers.setdefault(key, []), found)
        return found


def _first(declared: Declared) -> int:
    return declared.first


class _Same:
    """A key that only the same object has, and that keeps it alive."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


@dataclass
class _Notes:
    """Rounds in which a declaration would have seen the same."""

    first: int
    stop: int
    noise_was_read: bool = False


class _WatchedFacts(PublicFacts):
    """Facts that note how the number of the round is looked at."""

    notes: _Notes

    @classmethod
    def of(cls, facts: PublicFacts) -> _WatchedFacts:
        watched = object.__new__(cls)
        vars(watched).update(vars(facts), notes=_Notes(0, facts.rounds))
        if facts.round >= facts.rounds:
            watched.notes.stop = facts.round + 1
        return watched

    def __getattribute__(self, name: str) -> Any:
        own: Mapping[str, Any] = object.__getattribute__(self, "__dict__")
        # What a declaration derives from these facts (`at`, `only`, `replace`) reads them all here, and has no notes.
        if name == "round" and "notes" in own:
            own["notes"].first, own["notes"].stop = own["round"], own["round"] + 1
        if name == "noise" and "notes" in own:
            own["notes"].noise_was_read = True
        return object.__getattribute__(self, name)

    def is_before(self, round_: int) -> bool:
        own: Mapping[str, Any] = vars(self)
        if own["round"] < round_:
            if "notes" in own:
                own["notes"].stop = min(own["notes"].stop, round_)
            return True
        if "notes" in own:
            own["notes"].first = max(own["notes"].first, round_)
        return False
