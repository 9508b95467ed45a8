"""Step lengths for all parties at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.rows import Layout
from consenso.subproblems.batch import Term

TRIALS = 60
# The slope at an accepted step is at most this fraction of the slope at its start, on either side of the minimum.
FLAT = 0.5
ROUNDING = 16 * float(np.finfo(np.float64).eps)


def line_search(
    layout: Layout,
    term: Term,
    weights: Array,
    scores: Array,
    slopes: Array,
    along: Array,
    bend: Array,
    stretch: Array,
) -> tuple[Array, NDArray[np.bool_]]:
    """Step lengths a, (parties,), and whether h goes down visibly along them.

    h(a) = weight * sum phi(scores + a along) + a bend + a^2 stretch / 2, with `slopes` those of phi at the scores.
    Approximate Wolfe conditions (Hager and Zhang 2005): |h'(a)| <= |h'(0)| / 2 and h(a) <= h(0) up to rounding, which
    can be told from slopes where values no longer differ. 0 where h does not go down at the start.
    """
    start_values = term.value(scores)
    start = weights * layout.sums(slopes * along) + bend
    slack = ROUNDING * (weights * layout.sums(np.abs(start_values)) + np.abs(bend) + stretch)
    low, low_slope = np.zeros_like(start), start
    high, high_slope = np.full_like(start, np.inf), np.full_like(start, np.nan)
    length = np.ones_like(start)
    searching = start < 0
    change = np.zeros_like(start)
    for _ in range(TRIALS):
        per_row = layout.repeat_per_row(length)
        there = scores + (per_row if scores.ndim == 1 else per_row[:, None]) * along
        slope = weights * layout.sums(term.slope(there) * along) + bend + length * stretch
        change = weights * layout.sums(term.value(there) - start_values) + length * (bend + length * stretch / 2)
        above = change > slack
        searching = searching & ((np.abs(slope) > FLAT * np.abs(start)) | above)
        if not searching.any():
            break
        too_far = (slope > 0) | above
        high, high_slope = np.where(too_far, length, high), np.where(too_far, slope, high_slope)
        low, low_slope = np.where(too_far, low, length), np.where(too_far, low_slope, slope)
        length = np.where(searching, _between(low, low_slope, high, high_slope), length)
    # Where the search did not end, `low` is a step along which h went down all the way.
    return np.where(searching, low, np.where(start < 0, length, 0.0)), searching | (change < -slack)


def _between(low: Array, low_slope: Array, high: Array, high_slope: Array) -> Array:
    """Where the slope would vanish if it were linear, kept away from both ends; four times as far without an end."""
    bounded = np.isfinite(high)
    rise = high_slope - low_slope
    share = np.divide(-low_slope, rise, out=np.full_like(low, 0.5), where=bounded & (rise > 0))
    width = np.where(bounded, high - low, 0.0)
    return np.where(bounded, low + np.clip(share, 0.1, 0.9) * width, 4 * low)
