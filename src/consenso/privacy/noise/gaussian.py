"""Gaussian noise: the only law here whose shares add up to it."""
# ruff: noqa: A002 - a round is called `round` here as everywhere.

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from consenso.arrays import Array
from consenso.privacy.events import Event, Gaussian
from consenso.privacy.noise.law import ScaledNoise, Size, check_count, compute_scale, trivial_event, widen
from consenso.privacy.samplers import Key, Sampler


@dataclass(frozen=True, kw_only=True)
class GaussianNoise(ScaledNoise):
    """N(0, std^2) with std = multiplier * sensitivity in the 2-norm, over sqrt(shares) for one share of a sum."""

    alias = "gaussian"

    shares: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("GaussianNoise", "shares", self.shares)

    def scale(self, sensitivity: Size, round: int) -> Size:
        return compute_scale("GaussianNoise", self.multiplier, sensitivity, round, math.sqrt(self.shares))

    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        return sampler.gaussian(values, self.scale(sensitivity, round), key, sensitivity=sensitivity)

    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        std = float(self.scale(noise_sensitivity, round))
        widening = sampler.widening(std, noise_sensitivity, dim, 2)
        excess = sampler.excess(std, noise_sensitivity, dim, "gaussian")
        return trivial_event(seen_sensitivity, std) or Gaussian(std, widen(seen_sensitivity, widening), excess)

    def split(self, count: int) -> GaussianNoise:
        """The share of one of `count` parties whose sum has this noise (docs/privacy.md#noise-shares)."""
        check_count("GaussianNoise.split", "count", count)
        return replace(self, shares=self.shares * count)

    def tail(self, dim: int) -> float:
        return 40.0  # exp(-40^2 / 2)

    def log_density(self, gap: Array, scale: Array) -> Array:
        safe = np.maximum(scale, np.finfo(float).tiny)
        density: Array = -np.einsum("ij,ij->i", gap, gap) / (2 * safe**2) - gap.shape[1] * np.log(safe)
        return density

    def variance(self, dim: int) -> float:
        return 1.0

    def simulate(self, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        return rng.standard_normal(shape)

    def event_of_gap(self, gap: Array) -> Event:
        return Gaussian(1.0, float(np.linalg.norm(gap)))
