"""What the releases of PreconditionedFixedPoint tell beyond its model: the numbers that standard errors are made of.

All of it is post-processing of what was released, and of public noise levels: nothing here costs budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from consenso.arrays import Array
from consenso.metric import Metric


@dataclass(frozen=True, kw_only=True)
class MomentEvidence:
    """What second moments tell of the lengths of rows in the metric Q that was made of them.

    length: mean squared length of a whitened row by the first second moment, and `noise` the standard deviation of the
    noise in it. blur: that of the relative error of Q, in an entry of the diagonal. Of a second release, if there was
    one: clip to which it shortened rows, lift of its eigenvalues, and last, the entry of the last column in the metric
    before.
    """

    length: float
    noise: float
    blur: float
    clip: float = 0.0
    lift: float = 0.0
    last: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Means over the late steps, in coordinates u = Q^(-1/2) a and Q^(1/2) x, and what noise they have.

    metric: Q. point: mean of the iterates x, as they are. pull: mean of the noisy whitened gradients, and `noise` the
    standard deviation of the noise in each of its entries. clip, limit: of whitened rows and of slopes. steps: how
    many there were. scatter: the variance of iterates around their mean in one whitened coordinate, the covariance of
    iterate and gradient, and the variance of gradients. spread: of real targets around the constant model
    `origin`; 0 where it is not known. sizes: noisy numbers of records by size of their slopes, in powers of two of
    `unit`, at the model `met`; empty where there are none.
    """

    metric: Metric
    point: Array
    pull: Array
    noise: float
    clip: float
    limit: float
    steps: int
    scatter: Array
    moments: MomentEvidence
    spread: float
    unit: float
    origin: Array
    sizes: Array = field(default_factory=lambda: np.empty(0))
    met: Array = field(default_factory=lambda: np.empty(0))

    @property
    def wander(self) -> float:
        """Variance of an iterate around the mean, in one whitened coordinate."""
        return max(float(self.scatter[0]), 0.0)

    def noise_at(self, curvature: float) -> float:
        """Noise of an entry of `pull`: as it was drawn, or by how gradients scatter, if that is more.

        Where iterates wander further than slopes are straight, gradients say less than their noise alone would let
        them.
        """
        iterates, both, gradients = map(float, self.scatter)
        seen = max(gradients - 2 * curvature * both + curvature**2 * iterates, 0.0) / self.steps
        return float(np.sqrt(max(seen, self.noise**2)))


def products(point: Array, gradient: Array) -> Array:
    """Of two vectors: squared length of the one, inner product, squared length of the other."""
    return np.array([point @ point, point @ gradient, gradient @ gradient])
