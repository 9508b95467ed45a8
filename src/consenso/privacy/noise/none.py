"""No noise: for values that do not depend on the unit, and for runs that protect nobody."""
# ruff: noqa: A002 - a round is called `round` here as everywhere.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.privacy.events import Event, Nothing, Unbounded
from consenso.privacy.noise.law import Noise, Size, check_count
from consenso.privacy.samplers import Key, Sampler
from consenso.privacy.samplers.contract import check_draw

# What a certain observation is worth: a message that one world can send and the other cannot.
CERTAIN = 1e6


@dataclass(frozen=True, kw_only=True)
class NoNoise(Noise):
    """The value itself: no guarantee against whoever sees it, unless it does not depend on the unit."""

    alias = "none"

    @property
    def is_constant(self) -> bool:
        return True

    def scale(self, sensitivity: Size, round: int) -> Size:
        return sensitivity * 0.0 if isinstance(sensitivity, np.ndarray) else 0.0

    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        """A copy of the values."""
        return check_draw(values, 0.0, key, "scale")[0].copy()

    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        """Unbounded, or nothing for a value that does not depend on the unit."""
        return Nothing() if seen_sensitivity == 0.0 else Unbounded("released without noise")

    def split(self, count: int) -> NoNoise:
        """No noise is its own share."""
        check_count("NoNoise.split", "count", count)
        return self

    def tail(self, dim: int) -> float:
        return 0.0

    def log_density(self, gap: Array, scale: Array) -> Array:
        return np.where(np.abs(gap).max(axis=1, initial=0.0) <= 1e-9, 0.0, -CERTAIN)

    def variance(self, dim: int) -> float:
        return 1.0  # of a scale that is 0

    def simulate(self, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        return np.zeros(shape)

    def event_of_gap(self, gap: Array) -> Event:
        return Unbounded("released without noise")
