"""Releases that are made before a fit and are paid for with it (docs/privacy.md#releases-before-a-fit).

Bounds of columns, a number of rows that were shortened, numbers of records of each class: what a fit needs to know and
nobody has declared. The whole budget is one mu that is fixed before anything is drawn. Every earlier release has a
share of its square, the fit keeps to the rest whatever they said, and the squares add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.calibrate import Mu, calibrate_noise
from consenso.privacy.events import Event, Told, Unbounded, compose, repeat
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Record, release_alone
from consenso.privacy.samplers import Sampler
from consenso.problem import Adjacency, Unit

# Simulated noise is keyed by the round and the place of a number: no run has so many rounds, and a noisy count of the
# records has a round of its own below these.
_ROUND = 2**31 + 1


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Counts, or a sum in whole steps, that were released `times` times with this noise.

    name: what was counted. add_remove, replace_one: how far one unit moves the counts of one time, in the 2-norm. size:
    the most numbers of one time. place: tells the noise of several earlier releases of a fit apart. tells: probability
    that what only one unit has is told by name (a threshold that its noisy count passes), 0 where names are public.
    """

    name: str
    noise: GaussianNoise
    add_remove: float
    replace_one: float
    size: int
    times: int = 1
    place: int = 0
    tells: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.add_remove < math.inf and 0 < self.replace_one < math.inf and self.size > 0 < self.times):
            raise InputError(f"Earlier({self.name!r}): bounds are positive and finite, and something is counted.")
        if not 0 <= self.tells < 1:
            raise InputError(f"Earlier(tells={self.tells}): a probability lies in [0, 1).")

    @classmethod
    def plan(cls, mu: float, adjacency: Adjacency, sampler: Sampler, **told: object) -> Earlier:
        """The least noise with which all times together are mu-GDP."""

        def at(multiplier: float) -> Earlier:
            return cls(noise=GaussianNoise(multiplier=multiplier), **told)  # type: ignore[arg-type]

        def event(multiplier: float) -> Event:
            return at(multiplier)._find_event_of_counts(sampler, adjacency, adjacency)

        return at(calibrate_noise(event, Mu(mu=mu)))

    def scale(self, adjacency: Adjacency) -> float:
        """Standard deviation of the noise on every number, in a run for this adjacency."""
        return float(self.noise.scale(self._bound(adjacency), _ROUND))

    def event(self, sampler: Sampler, run: Adjacency, unit: Unit, adjacency: Adjacency) -> Event:
        """What one unit went through in all times; `run` is the adjacency that the noise was scaled for."""
        if unit == "party":
            return Unbounded(f"nothing bounds by how much a party moves the {self.name}")
        counted = self._find_event_of_counts(sampler, run, adjacency)
        return compose(counted, Told(self.tells)) if self.tells else counted

    def _find_event_of_counts(self, sampler: Sampler, run: Adjacency, adjacency: Adjacency) -> Event:
        own, seen = self._bound(run), self._bound(adjacency)
        return repeat(self.noise.event(own, seen, _ROUND, sampler, self.size), self.times)

    def release(self, time: int, exact: Array, adjacency: Adjacency, sampler: Sampler, record: Record) -> Array:
        """The numbers with noise, in a run for this adjacency."""
        declared = Release(
            name=self.name,
            size=exact.size,
            bounds=Bounds(record_add_remove=self.add_remove, record_replace_one=self.replace_one),
            why="a unit moves few counts (docs/privacy.md#releases-before-a-fit)",
        )
        value, bound = exact.reshape(1, -1).astype(np.float64), self._bound(adjacency)
        noisy = release_alone(declared, value, self.noise, bound, _ROUND + 16 * self.place + time, sampler, record)
        return noisy.reshape(exact.shape)

    def _bound(self, adjacency: Adjacency) -> float:
        return self.add_remove if adjacency == "add-remove" else self.replace_one
