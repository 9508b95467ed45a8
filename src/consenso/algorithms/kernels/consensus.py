"""Rounds of `ConsensusADMM` with parties of one record, compiled by Numba: import it inside functions, it loads slowly.

`walk` takes many rounds of one party each: hops and noise depend on coins alone and are drawn before; what is left of a
round, which must wait for the one before, is a few loops over the features. `cohort` takes one round of many parties: a
few of them at a time go through all of it while their rows and states are in the cache, so that each is read once and
written once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.algorithms.kernels.records import (
    LossParts,
    Records,
    clip_factor,
    compile_contracted,
    compile_sum,
    distance,
    fetch_row,
    find_valid,
    measure,
    pull,
)
from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import at, put
from consenso.privacy.threefry import GAUSSIAN, draw_units, room

FETCH = 2  # how many rounds ahead memory is asked for
TILE = 64  # parties whose scalar equations are solved side by side


@compile_contracted
def walk(
    rows: Any,
    records: Records,
    loss: LossParts,
    prox: tuple[Array, Any, int],
    tolerance: float,
    clip: float,
    relaxation: float,
    path: IntArray,
    stds: Array,
    noise: Array,
    token: tuple[Array, Array],
    u: Array,
) -> int:
    """Rounds of the parties of `path`, in place; how many were done before one that is not certified.

    token: mean and z. clip: infinite for none.
    """
    # Unpacked here: in a tuple that is handed on, Numba would count references to each array in each call.
    targets, weights, norms, allowed, kinks, pieces = records
    parameters, prox_slopes, derivatives, bends = loss
    strengths, regularize, free = prox
    mean, z = token
    v, residual = np.empty_like(z), np.empty_like(z)
    point, step, target = np.empty(1), np.empty(1), np.empty(1)
    slope, there, unused = np.empty(1), np.empty(1), np.empty(1)
    share, held = 1.0 / u.shape[0], z.size - free
    for k in range(path.size):
        i = path[k]
        fetch_row(rows, path, k + FETCH)
        fetch_row(u, path, k + FETCH)
        for j in range(z.size):
            v[j] = 2 * z[j] - u[i, j]
        point[0], square = measure(rows, i, v)
        step[0], target[0] = weights[i] * norms[i] * norms[i], targets[i]
        prox_slopes(1, at(parameters, 0), at(point, 0), at(step, 0), at(target, 0), at(slope, 0))
        point[0], x_square, far = pull(rows, i, weights[i] * slope[0], v, z, residual)
        if bends[0] < np.inf:
            derivatives(1, at(parameters, 0), at(point, 0), at(target, 0), at(there, 0), at(unused, 0))
        both, far = (math.sqrt(x_square), math.sqrt(square)), math.sqrt(far)
        valid = find_valid(kinks, pieces, i, slope[0])
        apart = distance(bends, weights[i], norms[i], slope[0], there[0], valid, point[0], both, z.size)
        if not (apart <= tolerance and far < np.inf and both[1] <= allowed[i]):  # false too for what is not a number
            return k
        kept = clip_factor(far, clip) if clip < np.inf else 1.0
        for j in range(z.size):
            increment = 2 * relaxation * (kept * residual[j] + stds[k] * noise[k, j])
            u[i, j] += increment
            mean[j] += share * increment
        for j in range(held, z.size):
            z[j] = mean[j]
        regularize(held, at(strengths, 0), at(mean, 0), at(z, 0))
    return path.size


@compile_sum
def _measure_reflected(rows: Any, i: int, z: Array, u: Array) -> tuple[float, float]:
    """The score of v = 2 z - u[i] and its squared length."""
    score, square = 0.0, 0.0
    for j in range(z.size):
        v = 2 * z[j] - u[i, j]
        score += rows[i, j] * v
        square += v * v
    return score, square


@compile_sum
def _squared_residual(rows: Any, i: int, pull: float, z: Array, u: Array) -> float:
    """The squared length of x - z with x = 2 z - u[i] - pull * row."""
    square = 0.0
    for j in range(z.size):
        residual = z[j] - u[i, j] - pull * rows[i, j]
        square += residual * residual
    return square


@compile_contracted
def cohort(
    rows: Any,
    records: Records,
    loss: LossParts,
    tolerance: float,
    clip: float,
    relaxation: float,
    z: Array,
    cohort: IntArray,
    stds: Array,
    draw: tuple[Any, int, tuple[Any, Any]],
    u: Array,
    done: Any,
    totals: Array,
    length: int,
    first: int,
    last: int,
) -> None:
    """The step of parties cohort[first:last]: their states u in place, their increments summed.

    stds: one, or one for each of the cohort. draw: seed, round and what else tells the noise. totals (pieces,
    features): the sums of pieces of `length` parties. A party whose prox is not certified keeps its state, is not
    summed and is not `done`.
    """
    targets, weights, norms, allowed, kinks, pieces = records
    parameters, prox_slopes, derivatives, bends = loss
    seed, round_, upper = draw
    work, noise = room(z.size)
    noisy, common = False, stds.size == 1
    for k in range(stds.size):
        noisy = noisy or stds[k] > 0.0
    noise[:] = 0.0
    total, tile = np.zeros_like(z), np.empty((8, TILE))
    for start in range(first, last, TILE):
        own = cohort[start : min(start + TILE, last)]
        count = len(own)
        labels, steps, points, starts = tile[0, :count], tile[1, :count], tile[2, :count], tile[3, :count]
        slopes, scores, there, unused = tile[4, :count], tile[5, :count], tile[6, :count], tile[7, :count]
        for t in range(count):
            i = own[t]
            labels[t] = targets[i]
            points[t], starts[t] = _measure_reflected(rows, i, z, u)
            steps[t], starts[t] = weights[i] * norms[i] * norms[i], math.sqrt(starts[t])
        at_targets, at_slopes = at(labels, 0), at(slopes, 0)
        prox_slopes(count, at(parameters, 0), at(points, 0), at(steps, 0), at_targets, at_slopes)
        for t in range(count):
            scores[t] = points[t] - steps[t] * slopes[t]
        derivatives(count, at(parameters, 0), at(scores, 0), at_targets, at(there, 0), at(unused, 0))
        for t in range(count):
            i, k, place = own[t], start + t, t % len(noise)
            if noisy and place == 0:
                draw_units(np.int64(GAUSSIAN), seed, own[t : t + len(noise)], round_, np.int64(0), upper, work, noise)
            drawn = weights[i] * slopes[t]
            # The score of x is not from x itself, which would be one more pass over its row: it is from <row, v>, with
            # |v| + |drawn row| for |x| in the bounds on rounding, which then cover the difference.
            longest = starts[t] + abs(drawn) * norms[i]
            both = longest, starts[t]
            valid = find_valid(kinks, pieces, i, slopes[t])
            apart = distance(bends, weights[i], norms[i], slopes[t], there[t], valid, scores[t], both, z.size)
            # False too for what is not a number.
            done[k] = apart <= tolerance and longest < np.inf and starts[t] <= allowed[i]
            if done[k]:
                kept = 1.0
                if clip < np.inf:
                    kept = clip_factor(math.sqrt(_squared_residual(rows, i, drawn, z, u)), clip)
                moves, shakes = 2 * relaxation * kept, 2 * relaxation * (stds[0] if common else stds[k])
                for j in range(z.size):
                    increment = moves * (z[j] - u[i, j] - drawn * rows[i, j]) + shakes * noise[place, j]
                    u[i, j] += increment
                    total[j] += increment
    put(total, totals[first // length])
