"""The public description of a run that guarantees are computed from: who takes part, how values leave, who looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from consenso.errors import PreconditionError
from consenso.facts import Facts
from consenso.privacy.door import Doorway
from consenso.privacy.observers import Coalition, Observer, Peer
from consenso.privacy.release import Amount, Release
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
    colluders: int = 0  # parties that are assumed to work with the hub

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

    @property
    def insiders(self) -> int:
        """How many parties look on with the observer, knowing their own noise."""
        if isinstance(self.observer, Peer):
            return 1
        return len(self.observer.parties) if isinstance(self.observer, Coalition) else 0


def largest_bounds(setting: Setting, declaration: Declaration, round_: int) -> dict[str, float]:
    """The largest bound of each release of a round over all parties, for the problem's own unit and adjacency."""
    problem = setting.facts.problem
    return {
        release.name: float(np.max(release.bounds.at(problem.unit, problem.adjacency)))
        for release in declaration(setting.representatives().at(round_))
    }


def noise_scale(setting: Setting, declaration: Declaration, name: str, round_: int = 0) -> float:
    """The noise scale of every party's release, as the door will draw it. Refuses where parties draw differently.

    Theorems about sums of the parties' noises need it to be the same for all of them.
    """
    scales = np.atleast_1d(_drawn(setting, declaration, name, round_)[0])
    if not (scales == scales[0]).all():
        raise PreconditionError(
            f"The noise of {name!r} differs between parties, and the theorem needs it equal; plan with equal noise."
        )
    return float(scales[0])


def rounding(setting: Setting, declaration: Declaration, name: str, round_: int = 0) -> float:
    """How far a discrete sampler can move a released value from value plus continuous noise, in the 2-norm.

    Theorems about noise that is carried on (in states, along a walk) take it as an error of the prox.
    """
    scales, sensitivities, size = _drawn(setting, declaration, name, round_)
    scale, sensitivity = float(np.max(scales)), float(np.max(sensitivities))
    sampler = setting.doorway.sampler
    return sampler.displacement(scale, sensitivity, size) + sampler.widening(scale, sensitivity, size, 2)


def excess(setting: Setting, declaration: Declaration, name: str, draws: int) -> float:
    """Total variation between a discrete sampler and the law that theorems speak of, over all draws of a run."""
    scales, sensitivities, size = _drawn(setting, declaration, name, 0)
    scale, sensitivity = float(np.max(scales)), float(np.max(sensitivities))
    return draws * setting.doorway.sampler.excess(scale, sensitivity, size, "gaussian")


def _drawn(setting: Setting, declaration: Declaration, name: str, round_: int) -> tuple[Amount, Amount, int]:
    """Scales and sensitivities of a release over the kinds of parties, and its size."""
    everyone = setting.representatives().at(round_)
    (release,) = (release for release in declaration(everyone) if release.name == name)
    largest = largest_bounds(setting, declaration, round_)[name]
    sensitivity = setting.doorway.sensitivity(release, everyone, largest)
    return setting.doorway.noise_for(name).scale(sensitivity, round_), sensitivity, release.size
