"""Log densities of what is heard, given what was exact: the terms of a trajectory's log likelihood ratio.

Given the same past view, both worlds' exact values are known numbers, and the noise of a release is independent of the
past. So the log likelihood ratio of an adaptive sequence is the sum over releases of the difference of two densities.
"""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array


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
