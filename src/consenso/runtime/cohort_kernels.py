"""A round of many parties of one record, compiled by Numba: import it inside functions, it loads slowly.

The general round makes its arrays one after the other: reflected states, scores, proxes, noise, increments, states.
Here a few parties at a time go through all of it while their rows and states are in the cache, so that each is read
once and written once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.kernels import LOGISTIC
from consenso.losses.kernels import logistic_prox_slopes
from consenso.privacy.threefry import GAUSSIAN, draw_units, room
from consenso.runtime.record_kernels import contracted, distance, fetch_row, prox_slope, summed

TILE = 32  # parties whose scalar equations are solved side by side


@summed
def _measure(rows: Any, i: int, z: Array, u: Array) -> tuple[float, float]:
    """The score of v = 2 z - u[i] and its squared length."""
    score, square = 0.0, 0.0
    for j in range(z.size):
        v = 2 * z[j] - u[i, j]
        score += rows[i, j] * v
        square += v * v
    return score, square


@summed
def _pull(rows: Any, i: int, pull: float, z: Array, u: Array, residual: Array) -> tuple[float, float, float]:
    """Write x - z with x = 2 z - u[i] - pull * row; the score of x and the squared lengths of x and of x - z."""
    score, square, moved = 0.0, 0.0, 0.0
    for j in range(z.size):
        x = 2 * z[j] - u[i, j] - pull * rows[i, j]
        residual[j] = x - z[j]
        score += rows[i, j] * x
        square += x * x
        moved += residual[j] * residual[j]
    return score, square, moved


@contracted
def consensus_cohort(
    rows: Any,
    records: tuple[Array, Array, Array],
    loss: tuple[int, float, float],
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
    """ConsensusADMM at parties cohort[first:last]: their states u in place, their increments summed.

    records: targets, weights and norms of the rows. loss: kind, parameter, largest curvature. stds: one, or one for
    each of the cohort. draw: seed, round and upper counter words of the noise. totals (pieces, features): the sums of
    pieces of `length` parties. A party whose prox is not certified keeps its state, is not summed and is not `done`.
    """
    targets, weights, norms = records
    kind, parameter, _ = loss
    seed, round_, upper = draw
    words, keys, noise = room(z.size)
    residual, total = np.empty_like(z), np.zeros_like(z)
    points, lengths, steps, labels, slopes = (
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
    )
    noisy, common = stds.max() > 0.0, stds.size == 1
    for start in range(first, last, TILE):
        count = min(TILE, last - start)
        for t in range(count):
            i = cohort[start + t]
            points[t], square = _measure(rows, i, z, u)
            lengths[t], steps[t], labels[t] = math.sqrt(square), weights[i] * norms[i] * norms[i], targets[i]
        if kind == LOGISTIC:
            logistic_prox_slopes(points, steps, labels, slopes, 0, count)
        else:
            for t in range(count):
                slopes[t] = prox_slope(kind, parameter, points[t], steps[t], labels[t])
        for t in range(count):
            k = start + t
            i, place = cohort[k], t % len(noise)
            if noisy and place == 0:
                some = cohort[k : min(k + len(noise), start + count)]
                draw_units(GAUSSIAN, seed, some, round_, 0, upper, words, keys, noise)
            # The arithmetic of this party takes as long as the memory of one of the next tile.
            fetch_row(rows, cohort, k + TILE)
            fetch_row(u, cohort, k + TILE)
            score, square, moved = _pull(rows, i, weights[i] * slopes[t], z, u, residual)
            both = math.sqrt(square), lengths[t]
            apart = distance(loss, targets[i], weights[i], norms[i], slopes[t], score, both, z.size)
            far = math.sqrt(moved)
            done[k] = apart <= tolerance and far < np.inf  # nor is what is not a number certified
            if done[k]:
                kept = 1.0 if far <= clip else clip / far
                std = stds[0] if common else stds[k]
                if noisy:
                    for j in range(z.size):
                        increment = 2 * relaxation * (kept * residual[j] + std * noise[place, j])
                        u[i, j] += increment
                        total[j] += increment
                else:
                    for j in range(z.size):
                        increment = 2 * relaxation * (kept * residual[j])
                        u[i, j] += increment
                        total[j] += increment
    totals[first // length] = total
