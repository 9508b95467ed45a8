"""The constant part of a wide model: it moves every score, and of few records noise alone would move it far.

All of it is post-processing.
"""

from __future__ import annotations

import math

import numpy as np

from consenso.algorithms.preconditioning import noise_levels
from consenso.arrays import Array
from consenso.losses import Loss

# How far noise may move it, in units in which scores matter: of numbers counts have told most of it.
LABELS, NUMBERS = 0.3, 0.1
# Of the curvature at equal scores, what is counted on where some are far out.
FLAT = 0.25
# How much the loss bends in the score of a class that is as likely as not.
LIKELY = 0.25
# Constant scores of several classes are told from noise alone by so many of its standard deviations.
CLEAR = 4.0


def hold(unit: float, noise: Array, spread: Array, bends: float, loss: Loss) -> Array:
    """The longest step sizes with which noise moves the constant part no further than that, in such units.

    noise: of a gradient; spread: of the sum of all of them. Either all steps together move it by less, or slopes pull
    it back: steps that are short for the curvature leave a variance of step * noise^2 / (2 curvature).
    """
    far = unit * (NUMBERS if loss.targets == "real" else LABELS)
    longest: Array = np.maximum(far / spread, 2 * FLAT * bends * np.square(far / noise))
    return longest


def wander(rates: Array, noise: Array, together: Array, bends: float) -> float:
    """The variance that noise has given to each of its numbers: of all steps together, or what slopes leave of it."""
    pulled = np.minimum(FLAT * rates * bends, 1.0)
    left = np.square(rates * noise) / np.maximum(pulled * (2 - pulled), np.finfo(float).tiny)
    return float(np.minimum(together, left).mean())


def keep(scores: Array, variance: float) -> float:
    """The part of the constant scores of several classes that is no noise (James and Stein); 0 where all may be."""
    freedom = len(scores) - 1
    size, noise = float(np.sum(np.square(scores - scores.mean()))), freedom * variance
    if size <= noise * (1 + CLEAR * math.sqrt(2 / freedom)):
        return 0.0
    return noise_levels.shrinkage_factor(size, noise)
