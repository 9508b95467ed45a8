"""How large residuals are once a model has learnt something, and where to clip them.

    counts      records by sign and size of their slopes, in powers of two of the public bound
    clip c      the minimiser of   (noise(c)^2 + bias(c)^2) / curvature(c)^2,   the expected square of a score's error:
                noise      proportional to c
                curvature  the share of the records whose slopes are not clipped
                bias       what is cut off: its mean with signs, and a share of its mean without them

Small residuals carry all of the curvature and large ones most of the noise, so that a clip well inside them is often
worth its bias: in the limit least squares become least absolute deviations, at 1.25 times a Gaussian spread. What the
counts tell of that bias is taken off the constant part of the model afterwards (`find_pull`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.algorithms.preconditioning.target_counts import STANDS_OUT
from consenso.arrays import Array, IntArray
from consenso.problem import Problem

POWERS = 16
BINS = 2 * POWERS
# Of what is cut off on both sides, how much points to one direction: a fifth, as for five columns that matter.
ALIGNED = 0.2
# Of the range in which clipped slopes balance somewhere.
HALVINGS = 40
# Points of a bin at which clipped slopes are computed.
POINTS = 16
# How far the mean of a bin may be from its middle, in widths: as far as that of a law which falls to a fifth inside it.
UNEVEN = 1 / 8
# Clips that are compared, over the bound.
CLIPS = np.geomspace(2.0**-12, 1.0, 97)


def find_bins(slopes: Array) -> IntArray:
    """The bins of slopes (rows,) over their bound."""
    sizes = np.maximum(np.abs(slopes), 2.0**-POWERS)
    powers = np.clip(np.floor(-np.log2(sizes)), 0, POWERS - 1).astype(np.int64)
    return np.where(slopes >= 0, powers, POWERS + powers)


@dataclass(frozen=True)
class Sizes:
    """The law of slopes over their bound, as noisy counts tell it: even inside a bin."""

    low: Array
    high: Array
    signs: Array
    shares: Array  # of the records, with sum 1

    @classmethod
    def read(cls, problem: Problem, counts: Array, noise: float) -> Sizes | None:
        """The bins that stand out; None where they hold less than half of the records."""
        clear = np.where(counts > STANDS_OUT * noise, counts, 0.0)
        if clear.sum() < problem.records / 2:
            return None
        powers = np.tile(np.arange(POWERS), 2)
        high = np.exp2(-powers.astype(np.float64))
        low = np.where(powers == POWERS - 1, 0.0, high / 2)
        return cls(low, high, np.repeat([1.0, -1.0], POWERS), clear / clear.sum())

    def below(self, clips: Array) -> Array:
        """The part of each bin that is not clipped, (clips, bins)."""
        inside: Array = np.clip((clips[:, None] - self.low) / (self.high - self.low), 0.0, 1.0)
        return inside

    def curvature(self, clip: float) -> float:
        """The share of the records that are not clipped."""
        return float(self.curvatures(np.array([clip]))[0])

    def curvatures(self, clips: Array) -> Array:
        """The same for several clips."""
        return self.below(clips) @ self.shares

    def cut_off(self, clips: Array) -> tuple[Array, Array]:
        """What clips cut off the slopes on average: with signs, and without."""
        over = np.maximum((self.high + np.maximum(self.low, clips[:, None])) / 2 - clips[:, None], 0.0)
        cut = over * (1 - self.below(clips))
        return np.abs(cut @ (self.shares * self.signs)), cut @ self.shares

    def median(self) -> float:
        """Half of the slopes are smaller."""
        return float(np.interp(0.5, self.curvatures(CLIPS), CLIPS))

    def root_mean_square(self) -> float:
        return float(np.sqrt(self.shares @ (self.low**2 + self.low * self.high + self.high**2) / 3))

    def best_clip(self, noise: float) -> float:
        """The clip of least expected error; noise: of a score, for slopes and a curvature of 1."""
        curvatures, (signed, both) = self.curvatures(CLIPS), self.cut_off(CLIPS)
        errors = (noise * CLIPS) ** 2 + signed**2 + (ALIGNED * both) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(CLIPS[np.argmin(np.where(curvatures > 0, errors / curvatures**2, np.inf))])


def find_pull(problem: Problem, counts: Array, noise: float, clip: float) -> float:
    """How far the mean of slopes is from 0 where clipped ones balance, as far as that is clear of doubt.

    Residuals with one long tail balance where the other side is longer: a model of clipped ones is off by what the clip
    cuts off on one side more than on the other, and that was counted. Over the bound, as the clip.
    """
    sides = counts.reshape(2, POWERS)
    seen = (sides > STANDS_OUT * noise).any(axis=0) | (sides.sum(axis=0) > np.sqrt(2.0) * STANDS_OUT * noise)
    # A tail ends where a size is missing: noise alone may fill a bin far out, where few records would move a mean much.
    most = int(np.argmax(sides.sum(axis=0)))
    seen[:most] &= np.cumprod(seen[:most][::-1], dtype=bool)[::-1]
    shares = np.where(seen, sides, 0.0)
    total = float(shares.sum())
    if total < problem.records / 2:
        return 0.0
    shares /= total
    high = np.exp2(-np.arange(POWERS, dtype=np.float64))
    inside = high[:, None] * (1 + (np.arange(POINTS) + 0.5) / POINTS) / 2
    points = np.stack([inside, -inside])  # (signs, powers, points)
    means = points.mean(axis=2)

    def clip_around(middle: float) -> Array:
        out: Array = np.clip(points - middle, -clip, clip).mean(axis=2)
        return out

    ends = [-1.0, 1.0]
    for _ in range(HALVINGS):
        middle = sum(ends) / 2
        ends[0 if np.sum(shares * clip_around(middle)) > 0 else 1] = middle
    pull = float(np.sum(shares * means)) - middle
    unclipped = (np.abs(points - middle) < clip).mean(axis=2)
    bend = max(float(np.sum(shares * unclipped)), 1 / POINTS)
    by_noise = noise / total * (means - middle - clip_around(middle) / bend - pull)[:, seen]
    by_shape = shares * UNEVEN * (high / 2) * (1 - unclipped / bend)
    doubt = STANDS_OUT**2 * float(np.sum(by_noise**2) + np.sum(by_shape**2))
    return pull * max(0.0, 1 - doubt / max(pull**2, np.finfo(float).tiny))
