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
from consenso.engine.record_kernels import compile_contracted, compile_sum, distance, prox_slope, smooth_distance
from consenso.kernels import LOGISTIC
from consenso.losses.kernels import exp, solve_sigmoids
from consenso.privacy.threefry import GAUSSIAN, draw_units, room

TILE = 64  # parties whose scalar equations are solved side by side


@compile_sum
def _measure(rows: Any, i: int, z: Array, u: Array) -> tuple[float, float]:
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
def _prox_slopes(loss: tuple[int, float, float], points: Array, steps: Array, labels: Array, slopes: Array) -> None:
    """Slopes of the loss at point - step * slope."""
    kind, parameter, _ = loss
    if kind != LOGISTIC:
        for t in range(len(points)):
            slopes[t] = prox_slope(kind, parameter, points[t], steps[t], labels[t])
        return
    level, x = np.empty(TILE), np.empty(TILE)
    for t in range(len(points)):
        signed = -labels[t] * points[t]
        level[t] = steps[t] - signed if signed + signed > steps[t] else signed
    solve_sigmoids(level, steps, x, len(points))
    for t in range(len(points)):
        signed = -labels[t] * points[t]
        slopes[t] = -labels[t] * (1.0 - x[t] if signed + signed > steps[t] else x[t])


@compile_contracted
def _distances(
    loss: tuple[int, float, float],
    features: int,
    labels: Array,
    weights: Array,
    norms: Array,
    slopes: Array,
    scores: Array,
    lengths: Array,
    starts: Array,
    apart: Array,
) -> None:
    """How far each x may be from the exact prox; lengths: bounds on those of x, starts: those of v."""
    kind, _, curvature = loss
    if kind != LOGISTIC:
        for t in range(len(labels)):
            both = lengths[t], starts[t]
            apart[t] = distance(loss, labels[t], weights[t], norms[t], slopes[t], scores[t], both, features)
        return
    for t in range(len(labels)):
        # No call into the C library: a loop of them.
        gap = -labels[t] / (1.0 + exp(min(labels[t] * scores[t], 700.0))) - slopes[t]
        both = lengths[t], starts[t]
        apart[t] = smooth_distance(curvature, weights[t], norms[t], slopes[t], gap, both)


@compile_contracted
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
    each of the cohort. draw: seed, round and what else tells the noise. totals (pieces, features): the sums of pieces
    of `length` parties. A party whose prox is not certified keeps its state, is not summed and is not `done`.
    """
    seed, round_, upper = draw
    work, noise = room(z.size)
    noisy, common = stds.max() > 0.0, stds.size == 1
    noise[:] = 0.0
    total, tile = np.zeros_like(z), np.empty((10, TILE))
    for start in range(first, last, TILE):
        own = cohort[start : min(start + TILE, last)]
        count = len(own)
        labels, weights, norms, steps, points = (
            tile[0, :count],
            tile[1, :count],
            tile[2, :count],
            tile[3, :count],
            tile[4, :count],
        )
        starts, slopes, scores, lengths, apart = (
            tile[5, :count],
            tile[6, :count],
            tile[7, :count],
            tile[8, :count],
            tile[9, :count],
        )
        for t in range(count):
            i = own[t]
            labels[t], weights[t], norms[t] = records[0][i], records[1][i], records[2][i]
            points[t], starts[t] = _measure(rows, i, z, u)
            steps[t], starts[t] = weights[t] * norms[t] * norms[t], math.sqrt(starts[t])
        _prox_slopes(loss, points, steps, labels, slopes)
        for t in range(count):
            # Not from x itself, which would be one more pass over its row: from <row, v> and |v|, with |v| + |pull row|
            # for |x| in the bounds on rounding, which then cover the difference. The points are used up after that.
            pull = weights[t] * slopes[t]
            scores[t], lengths[t] = points[t] - pull * norms[t] * norms[t], starts[t] + abs(pull) * norms[t]
        _distances(loss, z.size, labels, weights, norms, slopes, scores, lengths, starts, apart)
        for t in range(count):
            i, k, place = own[t], start + t, t % len(noise)
            if noisy and place == 0:
                draw_units(GAUSSIAN, seed, own[t : t + len(noise)], round_, 0, upper, work, noise)
            done[k] = apart[t] <= tolerance and lengths[t] < np.inf  # nor is what is not a number certified
            if done[k]:
                pull, kept = weights[t] * slopes[t], 1.0
                if clip < np.inf:
                    far = math.sqrt(_squared_residual(rows, i, pull, z, u))
                    kept = 1.0 if far <= clip else clip / far
                moves, shakes = 2 * relaxation * kept, 2 * relaxation * (stds[0] if common else stds[k])
                for j in range(z.size):
                    increment = moves * (z[j] - u[i, j] - pull * rows[i, j]) + shakes * noise[place, j]
                    u[i, j] += increment
                    total[j] += increment
    totals[first // length] = total
