"""Where columns lie, from one noisy histogram between powers of two: for tables whose records are few for a second one.

The records of a column fill a few neighbouring bins. Of all runs of at most LONGEST sizes, with one sign or with both,
the one is taken whose noisy number of records is the furthest above what noise reaches in as many bins. Its counts give
a centre and a size. A column of which no run is clear is taken to lie in [-1, 1], where it does no harm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.estimators.quantiles import SIGNED_EDGES

# Sizes of a run: a factor of 64 from the smallest to the largest, which all but the longest tails have.
LONGEST = 6
# Standard deviations by which a run has to be above noise. Records that are few are seen late, and a run that noise has
# chosen does little harm, since cells are moved to REACH sizes around its centre.
ABOVE = 3.0
REACH = 3.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Scales:
    """Centres and sizes of columns, each (columns,); and which have no more than one value that noise does not hide."""

    center: Array
    size: Array
    is_constant: Array


def read_scales(counts: Array, noise: float) -> Scales:
    """From counts (columns, bins) between SIGNED_EDGES, with noise of this standard deviation."""
    found = [_read_column(row, noise) for row in counts]
    center, size, is_constant = (np.array(part) for part in zip(*found, strict=True))
    return Scales(center=center, size=size, is_constant=is_constant)


def _read_column(counts: Array, noise: float) -> tuple[float, float, bool]:
    half = len(counts) // 2
    sides: dict[tuple[float, ...], Array] = {(-1.0,): counts[:half][::-1][None], (1.0,): counts[half + 1 :][None]}
    sides[(-1.0, 1.0)] = np.concatenate(list(sides.values()))
    best, chosen = 0.0, None
    for signs, seen in sides.items():
        below = np.concatenate([[0.0], np.cumsum(seen.sum(axis=0))])
        for many in range(1, LONGEST + 1):
            clear = below[many:] - below[:-many] - ABOVE * noise * math.sqrt(many * len(signs))
            start = int(np.argmax(clear))
            if clear[start] > best:
                best, chosen = float(clear[start]), (signs, slice(start, start + many))
    has_zeros = bool(counts[half] > ABOVE * noise)
    if chosen is None:
        return 0.0, 1.0, True
    signs, run = chosen
    edges = SIGNED_EDGES[half + 1 :]
    middle, width = (edges[:-1] + edges[1:])[run] / 2, np.diff(edges)[run]
    weights = np.maximum(sides[signs][:, run], 0.0)
    weights = weights / weights.sum()
    if has_zeros or len(signs) == 2:  # around 0
        return 0.0, math.sqrt(float((weights * middle**2).sum())), False
    center = float(weights[0] @ middle)
    size = math.sqrt(float(weights[0] @ ((middle - center) ** 2 + width**2 / 12)))
    return signs[0] * center, size, False
