"""Curves delta(epsilon) that are known at some points only: between them the chord in exp(epsilon) lies above them.

A curve is convex in exp(epsilon), 1 where that is 0, and never rises. So the chords through any of its points,
continued by the value of the last one, bound it from above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array


@dataclass(frozen=True)
class Chords:
    """Points of a curve, by increasing epsilon, and the probabilities of a loss above and below each of them."""

    epsilons: Array
    deltas: Array
    above: Array
    below: Array

    def at(self, epsilon: Array) -> Array:
        """Upper bounds on delta."""
        place = np.searchsorted(self.epsilons, epsilon, side="right")
        # Below the first point the chord starts at delta = 1, where exp(epsilon) is 0.
        lower = np.concatenate([[-np.inf], self.epsilons])[place]
        before = np.concatenate([[1.0], self.deltas])[place]
        upper = np.concatenate([self.epsilons, [np.inf]])[place]
        after = np.concatenate([self.deltas, self.deltas[-1:]])[place]
        with np.errstate(invalid="ignore", over="ignore"):
            # (e^epsilon - e^lower) / (e^upper - e^lower), from the upper end so that nothing overflows.
            share = np.exp(epsilon - upper) * (-np.expm1(lower - epsilon)) / (-np.expm1(lower - upper))
        share = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 0.0)
        return np.asarray(before + (after - before) * share, dtype=np.float64)

    def span(self, log_tail: float) -> tuple[float, float]:
        """Losses between which the loss lies, but for a probability exp(log_tail) on either side."""
        tail = math.exp(max(log_tail, -700.0))
        high = min(int(np.searchsorted(-self.above, -tail)), self.epsilons.size - 1)
        low = max(int(np.searchsorted(self.below, tail, side="right")) - 1, 0)
        return float(self.epsilons[low]), float(self.epsilons[high])
