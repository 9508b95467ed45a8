"""The prox of a kink."""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array


def ramp(excess: Array, steps: Array) -> Array:
    """The ratio excess / step, cut to [-1, 1], with step 0 read as a limit: the sign of the excess.

    The prox of step * |s| moves a point by at most the step towards 0, so its slope is this ramp of the point.
    """
    width = np.maximum(np.abs(excess), steps)
    return np.divide(excess, width, out=np.zeros_like(width), where=width > 0)
