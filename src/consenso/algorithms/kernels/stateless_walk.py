"""Visits of `StatelessWalk`, compiled by Numba: import it inside functions, it loads slowly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.algorithms.kernels.records import (
    LossParts,
    Records,
    compile_contracted,
    distance,
    fetch_row,
    find_valid,
    measure,
    pull,
)
from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import at

FETCH = 2  # how many rounds ahead memory is asked for


@compile_contracted
def visits(
    rows: Any,
    records: Records,
    loss: LossParts,
    prox: tuple[Array, Any, int],
    tolerance: float,
    share: float,
    path: IntArray,
    stds: Array,
    noise: Array,
    z: Array,
) -> int:
    """Visits of the parties of `path`, z in place; how many were made before one whose prox is not certified.

    share = 2 relaxation / parties.
    """
    # Unpacked here: in a tuple that is handed on, Numba would count references to each array in each call.
    targets, weights, norms, allowed, kinks, pieces = records
    parameters, prox_slopes, derivatives, bends = loss
    strengths, regularize, free = prox
    residual, moved = np.empty_like(z), np.empty_like(z)
    point, step, target = np.empty(1), np.empty(1), np.empty(1)
    slope, there, unused = np.empty(1), np.empty(1), np.empty(1)
    held = z.size - free
    for k in range(path.size):
        i = path[k]
        fetch_row(rows, path, k + FETCH)
        point[0], square = measure(rows, i, z)
        step[0], target[0] = weights[i] * norms[i] * norms[i], targets[i]
        prox_slopes(1, at(parameters, 0), at(point, 0), at(step, 0), at(target, 0), at(slope, 0))
        point[0], x_square, far = pull(rows, i, weights[i] * slope[0], z, z, residual)
        if bends[0] < np.inf:
            derivatives(1, at(parameters, 0), at(point, 0), at(target, 0), at(there, 0), at(unused, 0))
        both = math.sqrt(x_square), math.sqrt(square)
        valid = find_valid(kinks, pieces, i, slope[0])
        apart = distance(bends, weights[i], norms[i], slope[0], there[0], valid, point[0], both, z.size)
        if not (apart <= tolerance and far < np.inf and both[1] <= allowed[i]):  # false too for what is not a number
            return k
        for j in range(z.size):
            moved[j] = z[j] + share * (residual[j] + stds[k] * noise[k, j])
        for j in range(held, z.size):
            z[j] = moved[j]
        regularize(held, at(strengths, 0), at(moved, 0), at(z, 0))
    return path.size
