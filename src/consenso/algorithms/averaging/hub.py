"""What the hub of DualAveraging knows between rounds."""

from __future__ import annotations

from dataclasses import dataclass

from consenso.algorithms.averaging.centring import Centring
from consenso.arrays import Array


@dataclass(frozen=True)
class Hub:
    """What the releases so far have told, and the iterate."""

    shift: Array  # t; empty while rows are not centred
    scales: Array  # d; empty while columns are as they came
    directions: Array  # V, (features, k); (0, 0) while there are none
    shrinks: Array  # s, (k,)
    looks: bool  # whether passes look for directions; if not, they are steps
    found: Array  # 1 for directions that stand out, (k,)
    astray: float  # the longest that is left across the directions of what lies along them
    variances: Array  # v of the columns, then of the directions; no smaller than their noise
    likely: Array  # their expected values, which may be smaller
    length: float  # of a typical centred row
    clip: float
    width: float  # of slopes, relative to their bound
    spread: float  # of real targets around the constant model, over the slope limit; 0 where they were not counted
    step: float  # of all rates
    taken: int
    gradient: Array  # the last one
    u: Array
    variance: Array  # of the noise in u
    chance: Array  # standard deviation of u because records are a sample, wide
    kept: Array  # the part of u that is neither noise nor chance, wide
    factor: float  # by which the model is made longer around its constant part; 1 before that is measured

    @property
    def centring(self) -> Centring:
        """How rows are centred, scaled and shortened."""
        return Centring(self.shift, self.clip, self.scales, self.directions, self.shrinks)

    @property
    def weight(self) -> float:
        """How much a typical record is shortened: the loss counts so much less, and so must the regularizer."""
        return min(1.0, self.clip / self.length)
