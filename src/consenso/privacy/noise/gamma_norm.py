"""Noise of density proportional to exp(-|x|_2/scale): pure differential privacy for values bounded in the 2-norm."""
# ruff: noqa: A002 - a round is called `round` here as everywhere.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.privacy.events import Event, GammaNorm
from consenso.privacy.noise.law import ScaledNoise, Size, trivial_event
from consenso.privacy.samplers import Key, Sampler


@dataclass(frozen=True, kw_only=True)
class GammaNormNoise(ScaledNoise):
    """Density proportional to exp(-|x|_2/scale), scale = multiplier * sensitivity in the 2-norm: (1/multiplier)-DP."""

    alias = "gamma-norm"
    is_pure = True

    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        return sampler.gamma_norm(values, self.scale(sensitivity, round), key, sensitivity=sensitivity)

    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        scale = float(self.scale(noise_sensitivity, round))
        # A sampler without this noise refuses here; a pure guarantee would have no room for an excess.
        sampler.excess(scale, noise_sensitivity, dim, "gamma-norm")
        return trivial_event(seen_sensitivity, scale) or GammaNorm(scale, float(seen_sensitivity), int(dim))

    def tail(self, dim: int) -> float:
        return 4.0 * dim + 100.0

    def log_density(self, gap: Array, scale: Array) -> Array:
        safe = np.maximum(scale, np.finfo(float).tiny)
        density: Array = -np.sqrt(np.einsum("ij,ij->i", gap, gap)) / safe - gap.shape[1] * np.log(safe)
        return density

    def variance(self, dim: int) -> float:
        # The length is Gamma(dim, 1) distributed, with second moment dim (dim + 1).
        return dim + 1.0

    def simulate(self, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        drawn = rng.standard_normal(shape)
        lengths = rng.gamma(shape[1], size=(shape[0], 1))
        spread: Array = drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * lengths
        return spread

    def event_of_gap(self, gap: Array) -> Event:
        return GammaNorm(1.0, float(np.linalg.norm(gap)), len(gap))
