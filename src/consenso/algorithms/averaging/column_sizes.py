"""Centres and sizes of columns, as far as noise lets them be told. All of it is post-processing."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from consenso.algorithms.averaging.centring import LONGEST_SHIFT
from consenso.arrays import Array

# A column has a mean if that is so many standard deviations of its noise away from 0.
STANDS_OUT = 3.0


def find_level(columns: int) -> float:
    """Standard deviations of its noise from which on a column is made smaller, at least 1.

    To make columns smaller that noise has made large biases the length of rows, by E max(z - level, 0) of them each:
    all together by one standard deviation of the sum at most.
    """
    if columns < 8:
        return 1.0

    def excess(level: float) -> float:
        return math.exp(-(level**2) / 2) / math.sqrt(2 * math.pi) - level * float(ndtr(-level)) - 1 / math.sqrt(columns)

    return max(1.0, float(brentq(excess, 0.0, 10.0)))


def find_trace(around: Array, scales: Array, noise: float) -> float:
    """The mean squared length of scaled rows, above the truth but for one table in forty.

    A clip that is too short costs more than one that is too long. So does a free column that is made too small: what is
    hidden by noise may be as large as that, however far below zero noise has moved it.
    """
    weights = np.square(scales) if scales.size else np.ones(len(around))
    spread = noise * float(np.linalg.norm(weights))
    return max(float(weights @ around) + 2 * spread, spread)


def find_shift(mean: Array, noise: float) -> Array:
    """Means in units of that of the free column, 0 where they do not stand out; none at all where it does not."""
    clear = np.abs(mean) > STANDS_OUT * noise
    if not clear[-1]:
        return np.zeros_like(mean)
    shift: Array = np.where(clear, mean / mean[-1], 0.0)
    shift[-1] = 0.0
    return shift if float(np.linalg.norm(shift)) <= LONGEST_SHIFT else np.zeros_like(mean)
