"""Noise that can be drawn again: for simulations, tests and experiments, never for deployment."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.samplers.contract import Key, Kind, check_draw


@dataclass(frozen=True)
class Seeded:
    """Threefry4x64-20 keyed by seed, party, round, release, repetition and stream, with the coordinate as counter.

    A party's noise is the same bit for bit in whatever cohort it is drawn, so that engines can be compared. Who knows
    the seed can subtract the noise: a seeded run protects nobody. Laws are continuous up to double rounding.
    """

    seed: int = field(repr=False)

    name: ClassVar[str] = "seeded Threefry4x64-20 (simulation, not private)"
    private: ClassVar[bool] = False

    def __post_init__(self) -> None:
        try:
            seed = operator.index(self.seed)
        except TypeError:
            seed = -1
        if isinstance(self.seed, bool) or not 0 <= seed < 1 << 64:
            raise InputError(
                "Seeded(seed=...): a seed is a whole number from 0 to 2**64 - 1; without one, the noise protects."
            )
        object.__setattr__(self, "seed", seed)

    def gaussian(self, values: Array, std: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values plus independent N(0, std^2), by Box-Muller."""
        return self._add("GAUSSIAN", *check_draw(values, std, key, "std"), key)

    def laplace(self, values: Array, scale: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values plus independent Laplace(scale), by the inverse CDF."""
        return self._add("LAPLACE", *check_draw(values, scale, key, "scale"), key)

    def gamma_norm(self, values: Array, scale: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values plus noise with a Gamma(dim, scale) 2-norm and a uniform direction."""
        return self._add("GAMMA_NORM", *check_draw(values, scale, key, "scale"), key)

    def uniform(self, key: Key, count: int) -> Array:
        """Uniforms of 53 bits in (0, 1), shape (parties, count)."""
        parties = key.parties.size
        return self._add("UNIFORM", np.empty((parties, count)), np.empty(parties), key)

    def grid(self, scale: float, sensitivity: float, dim: int) -> float:
        return 0.0

    def widening(self, scale: float, sensitivity: float, dim: int, norm: Literal[1, 2]) -> float:
        return 0.0

    def displacement(self, scale: float, sensitivity: float, dim: int) -> float:
        """The noise is continuous."""
        return 0.0

    def excess(self, scale: float, sensitivity: float, dim: int, kind: Kind) -> float:
        """The law that is simulated is the law of the event."""
        return 0.0

    def _add(self, purpose: str, values: Array, scales: Array, key: Key) -> Array:
        from consenso.privacy import threefry

        return threefry.draw(getattr(threefry, purpose), self.seed, key.parties, key.counter, values, scales)
