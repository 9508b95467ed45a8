"""Laplace noise: pure differential privacy for values that are bounded in the 1-norm."""
# ruff: noqa: A002 - a round is called `round` here as everywhere.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.privacy.events import Composed, Event, Laplace
from consenso.privacy.noise.law import ScaledNoise, Size, trivial_event, widen
from consenso.privacy.samplers import Key, Sampler


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise(ScaledNoise):
    """Laplace(scale) in every coordinate, scale = multiplier * sensitivity in the 1-norm: (1/multiplier)-DP."""

    alias = "laplace"
    norm = 1
    is_pure = True

    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        return sampler.laplace(values, self.scale(sensitivity, round), key, sensitivity=sensitivity)

    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        scale = float(self.scale(noise_sensitivity, round))
        widening = sampler.widening(scale, noise_sensitivity, dim, 1)
        excess = sampler.excess(scale, noise_sensitivity, dim, "laplace")
        return trivial_event(seen_sensitivity, scale) or Laplace(scale, widen(seen_sensitivity, widening), excess)

    def tail(self, dim: int) -> float:
        return 60.0  # exp(-60)

    def log_density(self, gap: Array, scale: Array) -> Array:
        safe = np.maximum(scale, np.finfo(float).tiny)
        density: Array = -np.abs(gap).sum(axis=1) / safe - gap.shape[1] * np.log(safe)
        return density

    def variance(self, dim: int) -> float:
        return 2.0

    def simulate(self, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        return rng.laplace(size=shape)

    def event_of_gap(self, gap: Array) -> Event:
        # Coordinates have noise of their own.
        return Composed(tuple(Laplace(1.0, float(each)) for each in np.abs(gap) if each > 0))
