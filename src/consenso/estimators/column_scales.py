"""Where columns lie, from one noisy histogram between powers of two: for tables whose records are few for a second one.

The records of a column fill a few neighbouring bins. Of all runs of at most LONGEST sizes, with one sign or with both,
the one is taken whose noisy number of records is the furthest above what noise reaches in as many bins. Its counts give
a centre and a size. A column of which no run is clear is taken to lie in [-1, 1], where it does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
# Of the records of a run, what the rarer sign holds where both are there.
RARER = 0.2

_SIZES = SIGNED_EDGES[len(SIGNED_EDGES) // 2 :]


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


@dataclass(frozen=True, kw_only=True, eq=False)
class FilledBins:
    """Neighbouring bins that hold a column: of sizes `sizes`, with these signs. counts: theirs, (signs, sizes)."""

    signs: tuple[float, ...]
    sizes: slice
    counts: Array
    has_zeros: bool

    @property
    def edges(self) -> Array:
        """Between the sizes."""
        return _SIZES[self.sizes.start : self.sizes.stop + 1]

    @property
    def ends(self) -> tuple[float, float]:
        """The range that it covers."""
        low, high = float(self.edges[0]), float(self.edges[-1])
        if len(self.signs) == 2:
            return -high, high
        low = 0.0 if self.has_zeros else low
        return (low, high) if self.signs[0] > 0 else (-high, -low)


def find_run(
    counts: Array, noise: float, above: Callable[[int], float] | None = None, *, least: float = 0.0
) -> FilledBins | None:
    """The run that is the furthest above noise, from counts (bins,) between SIGNED_EDGES; None where none is.

    above: by how many standard deviations of a bin a run of so many sizes has to be. least: what a run holds at least,
    together with the bin around 0.
    """
    above = above or (lambda sizes: ABOVE * math.sqrt(sizes))
    half = len(counts) // 2
    sides = np.stack([counts[:half][::-1], counts[half + 1 :]])  # negative and positive
    below = np.cumsum(np.pad(sides, ((0, 0), (1, 0))), axis=1)
    best, chosen = 0.0, None
    for many in range(1, LONGEST + 1):
        held = below[:, many:] - below[:, :-many]
        # Noise may give records to a sign that has none, and take those of one that has half of them.
        has_both = held.min(axis=0) > RARER * held.sum(axis=0)
        for which in ([0], [1], [0, 1]):
            clear = held[which].sum(axis=0) - above(many) * noise * math.sqrt(len(which))
            clear[has_both != (len(which) == 2)] = -math.inf
            clear[held[which].sum(axis=0) + counts[half] < least] = -math.inf
            start = int(np.argmax(clear))
            if clear[start] > best:
                best, chosen = float(clear[start]), (which, slice(start, start + many))
    if chosen is None:
        return None
    which, run = chosen
    signs = tuple((-1.0, 1.0)[place] for place in which)
    return FilledBins(signs=signs, sizes=run, counts=sides[which, run], has_zeros=bool(counts[half] > ABOVE * noise))


def _read_column(counts: Array, noise: float) -> tuple[float, float, bool]:
    run = find_run(counts, noise)
    if run is None:
        return 0.0, 1.0, True
    middle, width = (run.edges[:-1] + run.edges[1:]) / 2, np.diff(run.edges)
    weights = np.maximum(run.counts, 0.0)
    weights = weights / weights.sum()
    if run.has_zeros or len(run.signs) == 2:  # around 0
        return 0.0, math.sqrt(float((weights * middle**2).sum())), False
    center = float(weights[0] @ middle)
    size = math.sqrt(float(weights[0] @ ((middle - center) ** 2 + width**2 / 12)))
    return run.signs[0] * center, size, False
