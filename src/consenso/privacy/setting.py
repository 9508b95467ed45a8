"""The public description of a run that guarantees are computed from: who takes part, how values leave, who looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from consenso.errors import PreconditionError
from consenso.facts import Facts
from consenso.privacy.door import Doorway
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Observer, members
from consenso.privacy.release import Release
from consenso.problem import Adjacency, Unit
from consenso.schedules import Schedule
from consenso.topology import Topology

Declaration: TypeAlias = Callable[[Facts], tuple[Release, ...]]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A run before it starts."""

    facts: Facts  # of everyone, in round 0
    schedule: Schedule
    doorway: Doorway
    shape: Literal["hub", "peer"]
    topology: Topology | None = None
    colluders: int = 0  # parties that may pool what they know with whoever looks
    _computed: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def rounds(self) -> int:
        """The number of rounds that is charged."""
        return self.facts.rounds

    @property
    def parties(self) -> int:
        """How many parties there are."""
        return self.facts.parties

    def representatives(self) -> Facts:
        """Facts of one party of each kind that public facts tell apart."""
        return self._representatives

    @cached_property
    def _representatives(self) -> Facts:
        return self.facts.only(self.facts.classes())


@dataclass(frozen=True, kw_only=True)
class View:
    """One question: what does this observer learn of one unit of this party, by the bounds of this adjacency?"""

    observer: Observer
    unit: Unit
    adjacency: Adjacency
    party: int


@dataclass(frozen=True)
class Stretch:
    """Consecutive rounds in which a party makes the same releases with the same noise."""

    first: int
    count: int
    releases: tuple[Release, ...]


def insiders(setting: Setting, view: View) -> int:
    """How many parties look on with the observer, knowing their own noise, coins and all that they are sent.

    The observer's own members, and the planned colluders, whoever the observer is (docs/privacy.md#colluders).
    """
    return len(members(view.observer)) + setting.colluders


def stretches(setting: Setting, party: int, declaration: Declaration) -> tuple[Stretch, ...]:
    """The rounds of a run as stretches of equal ones, as far as one party is concerned."""
    key = (stretches, declaration, party)
    if key not in setting._computed:
        setting._computed[key] = tuple(_stretches(setting, party, declaration))
    found: tuple[Stretch, ...] = setting._computed[key]
    return found


def _stretches(setting: Setting, party: int, declaration: Declaration) -> Iterator[Stretch]:
    own = setting.facts.only(np.array([party], dtype=np.int64))
    first, before = 0, None
    for round_ in range(setting.rounds):
        releases = declaration(own.at(round_))
        now = releases, [setting.doorway.noise_for(release.name).scale(1.0, round_) for release in releases]
        if before is not None and now != before:
            yield Stretch(first, round_ - first, before[0])
            first = round_
        before = now
    if before is not None:
        yield Stretch(first, setting.rounds - first, before[0])


def largest_bounds(setting: Setting, declaration: Declaration, round_: int) -> dict[str, float]:
    """The largest bound of each release of a round over all parties, for the problem's own unit and adjacency."""
    problem = setting.facts.problem
    return {
        release.name: float(np.max(release.bounds.at(problem.unit, problem.adjacency)))
        for release in declaration(setting.representatives().at(round_))
    }


@dataclass(frozen=True)
class GaussianDraws:
    """The Gaussian noise of one release over all rounds and parties of a run, for theorems that know one law only.

    std: the smallest there is. Louder noise is noise of this size and a rest that may be told to everybody. rounding:
    how far a discrete sampler can move a released value from value plus continuous noise, in the 2-norm. excess: total
    variation between a discrete sampler and the law that theorems speak of, of one draw.
    """

    std: float
    rounding: float
    excess: float


def gaussian_draws(setting: Setting, declaration: Declaration, name: str) -> GaussianDraws:
    """The smallest noise of a release and the largest errors of its sampler. Refuses noise that is not Gaussian."""
    noise, sampler = setting.doorway.noise_for(name), setting.doorway.sampler
    if not isinstance(noise, GaussianNoise):
        raise PreconditionError(
            f"The theorem is about Gaussian noise, and {name!r} has {noise!r}; plan with GaussianNoise(multiplier=...)."
        )
    key = (gaussian_draws, declaration, name)
    if key not in setting._computed:
        drawn = set(_drawn(setting, declaration, name))
        if not drawn:
            raise PreconditionError(f"The run makes no release {name!r}; plan at least one round in which it does.")
        setting._computed[key] = GaussianDraws(
            std=min(scale for scale, _, _ in drawn),
            rounding=max(
                sampler.displacement(scale, sensitivity, size) + sampler.widening(scale, sensitivity, size, 2)
                for scale, sensitivity, size in drawn
            ),
            excess=max(sampler.excess(scale, sensitivity, size, "gaussian") for scale, sensitivity, size in drawn),
        )
    found: GaussianDraws = setting._computed[key]
    return found


def _drawn(setting: Setting, declaration: Declaration, name: str) -> Iterator[tuple[float, float, int]]:
    """Scale, sensitivity and size of every draw for a release, over the rounds and the kinds of parties."""
    problem = setting.facts.problem
    for round_ in range(setting.rounds):
        everyone = setting.representatives().at(round_)
        for release in declaration(everyone):
            if release.name == name:
                largest = float(np.max(release.bounds.at(problem.unit, problem.adjacency)))
                sensitivity = np.atleast_1d(setting.doorway.sensitivity(release, everyone, largest))
                scales = setting.doorway.noise_for(name).scale(sensitivity, round_)
                yield from zip(scales.tolist(), sensitivity.tolist(), [release.size] * len(scales), strict=True)
