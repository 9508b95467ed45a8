"""Attacks: what each looks at, in words, and the score that it gives to every run.

An attack is one class with `sentence` and `watch`; `audit(plan, kind=...)` takes an object of it, or one of the names
below. The likelihood ratio of everything that is seen ("ratio") follows the attacked party step by step, which
`simulate` does once for all who look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from consenso.arrays import Array
from consenso.audit.followers import Filter, TokenPrediction
from consenso.audit.neighbours import Neighbours
from consenso.audit.token import TokenScore
from consenso.audit.trials import Scene, Trials
from consenso.audit.watchers import FilteredRatio
from consenso.errors import InputError
from consenso.privacy.run_spec import PrivacyQuery

RATIO = "ratio"


class Score(Protocol):
    """What is made of some runs of a plan that are taken together."""

    def see(self, scene: Scene) -> None:
        """One round of all runs."""

    def finish(self, models: Array) -> Array:
        """After the last round: a number for each run, or (runs, numbers) that a distinguisher learns from."""


class Attack(Protocol):
    """How one observer's view is scored."""

    @property
    def sentence(self) -> str:
        """What is looked at."""

    def watch(self, run: Trials, pair: Neighbours, query: PrivacyQuery, *, deviations: bool) -> Score:
        """The score of runs of either world. deviations: whether the parties' deviations from mean noise are told."""


Kind = str | Attack


@dataclass(frozen=True)
class _Filtered:
    sentence: str = "likelihood ratio of sums, their noise spread evenly over the parties"

    def watch(self, run: Trials, pair: Neighbours, query: PrivacyQuery, *, deviations: bool) -> Score:
        insiders = query.observer.insiders
        zero, one = (Filter(run, world, insiders, deviations=deviations) for world in (pair.zero, pair.one))
        return FilteredRatio(run, zero, one)


@dataclass(frozen=True)
class _Token:
    sentence: str = "token at the observer's own visits, the path known"

    def watch(self, run: Trials, pair: Neighbours, query: PrivacyQuery, *, deviations: bool) -> Score:
        return TokenScore(run, pair, query, query.observer.insiders)


class _WalkScore:
    """How much nearer the token is to where world one would have it."""

    def __init__(self, zero: TokenPrediction, one: TokenPrediction) -> None:
        self._worlds = (zero, one)

    def see(self, scene: Scene) -> None:
        for prediction in self._worlds:
            prediction.before(scene)
            prediction.step(scene)

    def finish(self, models: Array) -> Array:
        for prediction in self._worlds:
            prediction.finish(models)
        zero, one = self._worlds
        return zero.distance - one.distance


@dataclass(frozen=True)
class _Walk:
    sentence: str = "token where it is seen, the path known"

    def watch(self, run: Trials, pair: Neighbours, query: PrivacyQuery, *, deviations: bool) -> Score:
        looks = query.observer.insiders
        return _WalkScore(TokenPrediction(run, pair.zero, looks), TokenPrediction(run, pair.one, looks))


class _FinalModels:
    def see(self, scene: Scene) -> None:
        """Nothing is seen before the end."""

    def finish(self, models: Array) -> Array:
        return np.asarray(models)


@dataclass(frozen=True)
class _Model:
    sentence: str = "learned from final models"

    def watch(self, run: Trials, pair: Neighbours, query: PrivacyQuery, *, deviations: bool) -> Score:
        return _FinalModels()


ATTACKS: dict[str, Attack] = {"filter": _Filtered(), "walk": _Walk(), "token": _Token(), "model": _Model()}


def find_attack(kind: Kind) -> Attack:
    """An attack by its name, or as it is."""
    if not isinstance(kind, str):
        return kind
    if kind not in ATTACKS:
        raise InputError(f"audit(kind={kind!r}): the attacks are {', '.join([RATIO, *ATTACKS])}; name one of these.")
    return ATTACKS[kind]


def describe_attack(kind: Kind) -> str:
    """What an attack looks at."""
    return "likelihood ratio of everything that is seen" if kind == RATIO else find_attack(kind).sentence
