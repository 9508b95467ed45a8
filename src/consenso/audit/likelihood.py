"""Log densities of what is heard, given what was exact: the terms of a trajectory's log likelihood ratio.

Given the same past view, both worlds' exact values are known numbers, and the noise of a release is independent of the
past. So the log likelihood ratio of an adaptive sequence is the sum over releases of the difference of two densities.
"""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array
from consenso.privacy.noise import GammaNormNoise, GaussianNoise, LaplaceNoise, Noise, NoNoise

# What a certain observation is worth: a message that one world can send and the other cannot.
CERTAIN = 1e6


def log_density(noise: Noise, gap: Array, scale: Array) -> Array:
    """Log density of noise of a law at `gap` (rows, size), with a scale for each row, up to the law's own constant."""
    if isinstance(noise, NoNoise):
        return np.where(np.abs(gap).max(axis=1, initial=0.0) <= 1e-9, 0.0, -CERTAIN)
    size, safe = gap.shape[1], np.maximum(scale, np.finfo(float).tiny)
    if isinstance(noise, GaussianNoise):
        loss = np.einsum("ij,ij->i", gap, gap) / (2 * safe**2)
    elif isinstance(noise, LaplaceNoise):
        loss = np.abs(gap).sum(axis=1) / safe
    else:
        loss = np.sqrt(np.einsum("ij,ij->i", gap, gap)) / safe
    density: Array = -loss - size * np.log(safe)
    return density


def coordinate_variance(noise: Noise, size: int) -> float:
    """Variance of one coordinate of noise of scale 1, for sums of many, which are nearly Gaussian."""
    if isinstance(noise, LaplaceNoise):
        return 2.0
    # The length is Gamma(size, 1) distributed, with second moment size (size + 1).
    return size + 1.0 if isinstance(noise, GammaNormNoise) else 1.0


def log_gaussian(gap: Array, variance: Array) -> Array:
    """Log density of N(0, variance I) at gap (trials, size); a variance for each trial."""
    safe = np.maximum(variance, np.finfo(float).tiny)
    density: Array = -np.einsum("ij,ij->i", gap, gap) / (2 * safe) - gap.shape[1] / 2 * np.log(safe)
    return density


def log_mixture(rate: float, inside: Array, outside: Array) -> Array:
    """Log density of what happened with probability `rate` as `inside` says, and otherwise as `outside` says."""
    if rate >= 1.0:
        return inside
    mixed: Array = np.logaddexp(np.log(rate) + inside, np.log1p(-rate) + outside)
    return mixed
