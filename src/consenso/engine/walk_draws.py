"""What coins decide of a walk, for many rounds at once: where the token goes, and the noise. Compiled by Numba.

The draws are those of `consenso.privacy.threefry`, counter for counter, for one party in each of many rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.privacy.threefry import GAUSSIAN, UNIFORM, draw_units, room
from consenso.speedups import branchless


@branchless
def hop(
    seed: Any,
    coin: Any,
    counter: tuple[Any, Any],
    pointers: IntArray,
    neighbors: IntArray,
    parties: int,
    here: int,
    round_: int,
    path: IntArray,
) -> None:
    """Write the parties of rounds round_, round_ + 1, ... into `path`.

    Each is uniform among the sorted neighbours of the one before, among all parties without neighbours or a party
    before (here = -1). `coin` and `counter` are the key of the schedule's coins.
    """
    work, units = room(np.int64(1))
    coins = np.full(len(units), coin)
    for k in range(path.size):
        column = k % len(units)
        if column == 0:
            draw_units(np.int64(UNIFORM), seed, coins, round_ + k, np.int64(1), counter, work, units)
        uniform = units[column, 0]
        anywhere = neighbors.size == 0 or here < 0
        choices = parties if anywhere else pointers[here + 1] - pointers[here]
        chosen = min(int(uniform * choices), choices - 1)
        here = chosen if anywhere else neighbors[pointers[here] + chosen]
        path[k] = here


@branchless
def draw_noise(seed: Any, counter: tuple[Any, Any], path: IntArray, round_: int, out: Array) -> None:
    """Write into out[k] (features,) the normals that the seeded sampler has for party path[k] in round round_ + k."""
    features = out.shape[1]
    work, units = room(features)
    for start in range(0, path.size, len(units)):
        rows = min(len(units), path.size - start)
        own = path[start : start + rows]
        draw_units(np.int64(GAUSSIAN), seed, own, round_ + start, np.int64(1), counter, work, units)
        for k in range(rows):
            for j in range(features):
                out[start + k, j] = units[k, j]
