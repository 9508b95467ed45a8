"""The prox of the logistic loss, many margins at a time (`kernels` says what compiled solvers have in common)."""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array
from consenso.losses.kernels import compile_part, exp, guess_log, multiply_add
from consenso.speedups import branchless

BLOCK = 256  # margins that are solved together


@compile_part
def _halley(x: float, level: float, step: float) -> tuple[float, float]:
    """Halley's step for f(x) = x + step * sigmoid(x) - level, and exp(x)."""
    e = exp(x)
    # With a = 1 + e: a f, a^2 f' and a^3 f'' have no denominators, so that one division is enough.
    a, load = 1.0 + e, step * e
    gap = multiply_add(x - level, a, load)
    rise = multiply_add(a, a, load)
    return -2.0 * gap * (rise * a) / multiply_add(2.0 * rise, rise, -gap * (load * (1.0 - e))), e


@compile_part
def _start_sigmoid(level: float, step: float) -> float:
    """A point within about 0.3 of the root x <= 0 of x + step * sigmoid(x) = level, for 2 * level <= step."""
    # Small steps: the tangent at x = 0 and the asymptote x = level both lie above the root.
    small = min(level, (level - 0.5 * step) / (1.0 + 0.25 * step))
    large = min(guess_log(level, max(step, 4.0)), 0.0)
    return large if step > 4.0 else small


@compile_part
def _closer_sigmoid(x: float, level: float, step: float) -> float:
    """Halley's step towards that root."""
    return min(x + _halley(x, level, step)[0], 0.0)


@compile_part
def _last_sigmoid(x: float, level: float, step: float) -> float:
    """The sigmoid at the root, from a point so near that Halley's step is applied to it by Taylor's formula."""
    move, e = _halley(x, level, step)
    below = 1.0 / (1.0 + e)
    weight = e * below
    moved: float = multiply_add(weight * below * move, multiply_add(0.5 * (below - weight), move, 1.0), weight)
    return moved


@compile_part
def _solve_sigmoids(level: Array, step: Array, x: Array, count: int) -> None:
    """The roots q of q = sigmoid(level - step * q) for levels up to step / 2, one stage after the other, into x.

    With x = level - step * q the equation reads x + step * sigmoid(x) = level; for these levels x <= 0, where the left
    side is increasing and convex. The starting points are good to about 0.3 and three evaluations of Halley's cubic
    iteration suffice for every level and every step up to 1e12: the third correction is at most 2e-6.
    Short loops leave the processor several vectors to work on, and a block stays in its nearest cache.
    """
    for i in range(count):
        x[i] = _start_sigmoid(level[i], step[i])
    for i in range(count):
        x[i] = _closer_sigmoid(x[i], level[i], step[i])
    for i in range(count):
        x[i] = _closer_sigmoid(x[i], level[i], step[i])
    for i in range(count):
        x[i] = _last_sigmoid(x[i], level[i], step[i])


@compile_part
def _solve_logistic(
    count: int, points: Array, step: Array, targets: Array, slopes: Array, level: Array, x: Array
) -> None:
    """Slopes of a block; level and x have room for them.

    The map (level, q) -> (step - level, 1 - q) sends roots with x > 0 to those with x < 0.
    """
    for i in range(count):
        signed = -targets[i] * points[i]
        level[i] = step[i] - signed if signed + signed > step[i] else signed
    _solve_sigmoids(level, step, x, count)
    for i in range(count):
        signed = -targets[i] * points[i]
        slopes[i] = -targets[i] * (1.0 - x[i] if signed + signed > step[i] else x[i])


@branchless
def logistic_prox_slopes(points: Array, steps: Array, targets: Array, slopes: Array, first: int, last: int) -> None:
    """Write the slopes g of the logistic loss at point - step * g; points, targets (n,), steps (n,) or (1,)."""
    common = steps.size == 1
    step, level, x = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        # Slices counted from 0: an index that could be negative would keep the loops from being vectorised.
        count = min(BLOCK, last - start)
        own_points, own_steps = points[start : start + count], steps if common else steps[start : start + count]
        own_targets, own_slopes = targets[start : start + count], slopes[start : start + count]
        for i in range(count):
            step[i] = own_steps[0] if common else own_steps[i]
        _solve_logistic(count, own_points, step, own_targets, own_slopes, level, x)


@compile_part
def _solve_one(point: float, step: float, target: float) -> float:
    """The same for one record."""
    signed = -target * point
    mirrored = signed + signed > step
    level = step - signed if mirrored else signed
    x = _start_sigmoid(level, step)
    x = _closer_sigmoid(x, level, step)
    x = _closer_sigmoid(x, level, step)
    weight = _last_sigmoid(x, level, step)
    return -target * (1.0 - weight if mirrored else weight)


def logistic_block(count: int, parameters: Array, points: Array, steps: Array, targets: Array, slopes: Array) -> None:
    """The prox slopes of a block, for loops that are compiled elsewhere."""
    if count == 1:  # a walk has one record at a time, and no time for an array
        slopes[0] = _solve_one(points[0], steps[0], targets[0])
    else:
        _solve_logistic(count, points, steps, targets, slopes, np.empty(count), np.empty(count))


def logistic_derivatives(
    count: int, parameters: Array, scores: Array, targets: Array, slopes: Array, curvatures: Array
) -> None:
    """Slopes and curvatures of a block, with all digits on both sides."""
    for i in range(count):
        small = exp(-abs(scores[i]))
        large = 1.0 / (1.0 + small)
        small *= large
        slopes[i] = -targets[i] * (small if targets[i] * scores[i] > 0.0 else large)
        curvatures[i] = small * large
