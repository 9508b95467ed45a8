"""Compiled solvers for the two losses whose prox has no closed form.

Everything here is branch-free arithmetic on float64, so that LLVM turns the loops into vector instructions. That is
why the exponential is written out: a call into the C library would keep every loop scalar and cost five times as much.
The kernels release the interpreter lock and do records first..last, for `run_in_threads`. They check nothing: callers
pass finite points, steps in [0, 1e12], targets in range and arrays of matching shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from consenso.arrays import Array, IntArray

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_ROUND = 1.5 * 2.0**52  # adding this leaves the nearest integer in the low bits of a float64
_LOG2_E = 1.0 / math.log(2.0)
# log 2 in two parts; the first has 21 trailing zero bits, so that its product with an exponent is exact.
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))
# 2 atanh(s) / s - 2 in powers of s^2: on |s| <= 3 - 2 sqrt 2 the first term left out is below 1e-17.
_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10 = (2.0 / (2 * k + 1) for k in range(1, 11))
_SQRT_HALF = int(np.float64(math.sqrt(0.5)).view(np.int64))
BLOCK = 256  # margins that are solved together
_LOWEST_LOG = -708.0  # below this, exp is subnormal: no loss can tell it from zero


def _compile(kernel: Kernel, inline: str = "never") -> Kernel:
    """Compile without fast-math, so that a batch equals its records one by one; cache where a folder allows it."""
    try:
        return njit(error_model="numpy", nogil=True, inline=inline, cache=True)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to cache in
        return njit(error_model="numpy", nogil=True, inline=inline)(kernel)  # type: ignore[no-any-return]


def _compile_inlined(kernel: Kernel) -> Kernel:
    return _compile(kernel, inline="always")


@intrinsic
def _bits_of(typing_context: Any, value: Any) -> Any:
    """The bits of a float64, as an int64."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), emit


@intrinsic
def _float_of(typing_context: Any, bits: Any) -> Any:
    """The float64 with the given bits."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), emit


@intrinsic
def multiply_add(typing_context: Any, left: Any, right: Any, added: Any) -> Any:
    """The product of the first two plus the third, with one rounding.

    Written out rather than left to the compiler, who might do it in the body of a loop and not in what is left over:
    then a record's bits would depend on who is beside it.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), emit


@_compile_inlined
def exp(x: float) -> float:
    """The exponential to one or two units in the last place, for x <= 700; at least that of -708."""
    x = max(x, _LOWEST_LOG)
    shifted = multiply_add(x, _LOG2_E, _ROUND)
    exponent = shifted - _ROUND
    r = multiply_add(-exponent, _LOG_2_LOW, multiply_add(-exponent, _LOG_2_HIGH, x))
    # Taylor's series on |r| <= log(2)/2: the first term left out is below 5e-18. In pairs, which do not wait for each
    # other as the steps of Horner's scheme do.
    square = r * r
    fourth = square * square
    low = multiply_add(multiply_add(_C5, r, _C4), square, multiply_add(_C3, r, _C2))
    middle = multiply_add(multiply_add(_C9, r, _C8), square, multiply_add(_C7, r, _C6))
    high = multiply_add(multiply_add(_C13, r, _C12), square, multiply_add(_C11, r, _C10))
    p = multiply_add(high, fourth * fourth, multiply_add(middle, fourth, low))
    power: float = _float_of((_bits_of(shifted) + 1023) << 52)
    mantissa: float = multiply_add(p, square, r) + 1.0
    return mantissa * power


@_compile_inlined
def _log(x: float) -> float:
    """log(x) to one or two units in the last place, for positive normal x."""
    shifted = _bits_of(x) - _SQRT_HALF
    exponent: float = _float_of(((shifted >> 52) + 2048) | 0x4330000000000000) - (2.0**52 + 2048.0)
    # x = 2^exponent * (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), and log(1 + f) = 2 atanh(s) with s = f / (2 + f).
    f: float = _float_of((shifted & 0x000FFFFFFFFFFFFF) + _SQRT_HALF) - 1.0
    s = f / (2.0 + f)
    q = s * s
    p = _A10
    p = p * q + _A9
    p = p * q + _A8
    p = p * q + _A7
    p = p * q + _A6
    p = p * q + _A5
    p = p * q + _A4
    p = p * q + _A3
    p = p * q + _A2
    p = p * q + _A1
    # 2 s = f - s f, so that the leading term is f, exact.
    return exponent * _LOG_2_HIGH + (f - (s * (f - q * p) - exponent * _LOG_2_LOW))


@_compile_inlined
def _rough_log(x: float) -> float:
    """log(x) to 0.007, for positive normal x: enough to start a cubic iteration."""
    bits = _bits_of(x)
    exponent: float = _float_of((bits >> 52) | 0x4330000000000000) - (2.0**52 + 1023.0)
    mantissa: float = _float_of((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    return (exponent + (2.0 - mantissa * (1.0 / 3.0)) * mantissa - 5.0 / 3.0) * (1.0 / _LOG2_E)


@_compile_inlined
def _guess_log(level: float, step: float) -> float:
    """The root x of x + step * exp(x) = level, to about 0.2."""
    scaled = level + _rough_log(max(step, 1e-300))
    # step * exp(x) is Wright's omega function of `scaled`: its tail, its tangent at 0 and its asymptote.
    omega = max(scaled, 1.0) - _rough_log(max(scaled, 1.0))
    omega = 0.567143 + 0.361896 * scaled if scaled < 1.0 else omega
    return level if scaled < -1.0 else level - omega


@_compile_inlined
def _halley(x: float, level: float, step: float) -> tuple[float, float]:
    """Halley's step for f(x) = x + step * sigmoid(x) - level, and exp(x)."""
    e = exp(x)
    # With a = 1 + e: a f, a^2 f' and a^3 f'' have no denominators, so that one division is enough.
    a, load = 1.0 + e, step * e
    gap = multiply_add(x - level, a, load)
    rise = multiply_add(a, a, load)
    return -2.0 * gap * (rise * a) / multiply_add(2.0 * rise, rise, -gap * (load * (1.0 - e))), e


@_compile_inlined
def _start_sigmoid(level: float, step: float) -> float:
    """A point within about 0.3 of the root x <= 0 of x + step * sigmoid(x) = level, for 2 * level <= step."""
    # Small steps: the tangent at x = 0 and the asymptote x = level both lie above the root.
    small = min(level, (level - 0.5 * step) / (1.0 + 0.25 * step))
    large = min(_guess_log(level, max(step, 4.0)), 0.0)
    return large if step > 4.0 else small


@_compile_inlined
def _closer_sigmoid(x: float, level: float, step: float) -> float:
    """Halley's step towards that root."""
    return min(x + _halley(x, level, step)[0], 0.0)


@_compile_inlined
def _last_sigmoid(x: float, level: float, step: float) -> float:
    """The sigmoid at the root, from a point so near that Halley's step is applied to it by Taylor's formula."""
    move, e = _halley(x, level, step)
    below = 1.0 / (1.0 + e)
    weight = e * below
    moved: float = multiply_add(weight * below * move, multiply_add(0.5 * (below - weight), move, 1.0), weight)
    return moved


@_compile_inlined
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


@_compile_inlined
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


@_compile
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


@_compile_inlined
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


@_compile_inlined
def _closer_log(x: float, level: float, step: float) -> float:
    """Halley's step towards the root x <= 0 of x + step * exp(x) = level, for level <= step."""
    e = step * exp(x)
    gap = (x - level) + e
    rise = 1.0 + e
    return min(x - 2.0 * gap * rise / (2.0 * rise * rise - gap * e), 0.0)


# Several records go side by side, a lane each: there are too few classes to fill vector registers. What a lane knows
# besides its classes lies in one array, at the places below, so that the compiler sees that they do not overlap.
LANES = 32
_STEP, _LOW, _HIGH, _NORMALIZER, _CHANGE, _TOTAL, _FALL, _BEND = (LANES * place for place in range(8))
_TOP, _OTHERS, _PULL, _MASS, _LAST, _ALIVE = (LANES * place for place in range(8, 14))
_PLACES = 14


@_compile
def _bracket(levels: Array, lane: Array, lanes: int) -> None:
    """Bounds on the c of `_locate`; the lower one is good where the step is small and where it is large.

    Weights are at most 1, so c >= logsumexp(level) - step, and p_k >= (level_k - c) / step, so that c is at least the
    threshold at which the positive parts of level - c add up to the step; Michelot's method comes to it from below in
    a few passes. The largest weight is at least 1/K, so c <= max(level) - step/K + log K.
    """
    classes = len(levels)
    for b in range(lanes):
        lane[_TOP + b] = -np.inf
        lane[_TOTAL + b] = 0.0
        lane[_LOW + b] = -np.inf
    for k in range(classes):
        for b in range(lanes):
            lane[_TOP + b] = max(lane[_TOP + b], levels[k, b])
    for k in range(classes):
        for b in range(lanes):
            lane[_TOTAL + b] += exp(levels[k, b] - lane[_TOP + b])
    for _ in range(4):
        for b in range(lanes):
            lane[_PULL + b] = 0.0
            lane[_MASS + b] = 0.0
        for k in range(classes):
            for b in range(lanes):
                inside = 1.0 if levels[k, b] >= lane[_LOW + b] else 0.0
                lane[_PULL + b] += inside * levels[k, b]
                lane[_MASS + b] += inside
        for b in range(lanes):
            threshold = (lane[_PULL + b] - lane[_STEP + b]) / max(lane[_MASS + b], 1.0)
            lane[_LOW + b] = max(lane[_LOW + b], threshold)
    for b in range(lanes):
        small = lane[_TOP + b] + _log(lane[_TOTAL + b]) - lane[_STEP + b]
        lane[_LOW + b] = max(lane[_LOW + b], small)
        lane[_HIGH + b] = lane[_TOP + b] - lane[_STEP + b] / classes + math.log(classes)
        lane[_NORMALIZER + b] = lane[_LOW + b]


@_compile
def _locate(levels: Array, weights: Array, lane: Array, lanes: int) -> None:
    """Class weights p with p_k = exp(s_k - c), s_k + step * p_k = level_k and sum p = 1, to a few per cent.

    Given c, each p_k follows from its own scalar equation; their sum is decreasing and convex in c. A lane that has
    arrived computes the same numbers again until all have.
    """
    classes = len(levels)
    _bracket(levels, lane, lanes)
    for _ in range(100):
        for b in range(lanes):
            lane[_TOTAL + b] = 0.0
            lane[_FALL + b] = 0.0
            lane[_BEND + b] = 0.0
        # One loop after the other: short bodies leave the processor several vectors to work on at a time.
        for k in range(classes):
            for b in range(lanes):
                weights[k, b] = min(_guess_log(levels[k, b] - lane[_NORMALIZER + b], lane[_STEP + b]), 0.0)
        for _closer in range(2):
            for k in range(classes):
                for b in range(lanes):
                    level = levels[k, b] - lane[_NORMALIZER + b]
                    weights[k, b] = _closer_log(weights[k, b], level, lane[_STEP + b])
        for k in range(classes):
            for b in range(lanes):
                step = lane[_STEP + b]
                weight = exp(weights[k, b])
                weights[k, b] = weight
                damping = 1.0 / (1.0 + step * weight)
                lane[_TOTAL + b] += weight
                lane[_FALL + b] += weight * damping
                lane[_BEND + b] += weight * damping * damping * damping
        for b in range(lanes):
            here, total, fall, bend = lane[_NORMALIZER + b], lane[_TOTAL + b], lane[_FALL + b], lane[_BEND + b]
            low = here if total >= 1.0 else lane[_LOW + b]
            high = lane[_HIGH + b] if total >= 1.0 else here
            # Halley on log(total), nearly linear for small steps; else Newton on total, which never passes the root
            # from the left; else halve the bracket.
            excess = _log(total)
            first = here + 2.0 * excess * fall * total / (2.0 * fall * fall - excess * (bend * total - fall * fall))
            second = here + (total - 1.0) / fall
            second = second if (low <= second) & (second <= high) else 0.5 * (low + high)
            following = first if (low <= first) & (first <= high) else second
            lane[_LOW + b], lane[_HIGH + b] = low, high
            lane[_CHANGE + b] = following - here
            lane[_NORMALIZER + b] = following if abs(following - here) > 0.1 else here
        furthest = 0.0
        for b in range(lanes):
            furthest = max(furthest, abs(lane[_CHANGE + b]))
        if furthest <= 0.1:
            break
    for k in range(classes):
        for b in range(lanes):
            weights[k, b] *= 1.0 - lane[_CHANGE + b] / (1.0 + lane[_STEP + b] * weights[k, b])


@_compile
def _polish(scores: Array, own: Array, slopes: Array, weights: Array, lane: Array, lanes: int) -> None:
    """Newton's iteration for slopes = softmax(scores - step * slopes) - own, in place.

    Its matrix I + step * (diag(p) - p p') is inverted by Sherman and Morrison's formula. The target's own slope is kept
    as minus the sum of the other weights, so that it has no cancellation when the target's weight is near 1. A lane
    that has arrived moves no more.
    """
    classes = len(scores)
    for b in range(lanes):
        lane[_LAST + b] = np.inf
        lane[_ALIVE + b] = 1.0
    for _ in range(20):
        for b in range(lanes):
            lane[_TOP + b] = -np.inf
            lane[_OTHERS + b] = 0.0
            lane[_TOTAL + b] = 0.0
            lane[_PULL + b] = 0.0
            lane[_MASS + b] = 0.0
            lane[_CHANGE + b] = 0.0
        for k in range(classes):
            for b in range(lanes):
                weights[k, b] = scores[k, b] - lane[_STEP + b] * slopes[k, b]
                lane[_TOP + b] = max(lane[_TOP + b], weights[k, b])
        for k in range(classes):
            for b in range(lanes):
                weight = exp(weights[k, b] - lane[_TOP + b])
                weights[k, b] = weight
                lane[_OTHERS + b] += weight * (1.0 - own[k, b])
                lane[_TOTAL + b] += weight * own[k, b]
        for b in range(lanes):
            total = lane[_TOTAL + b] + lane[_OTHERS + b]
            lane[_TOTAL + b] = total
            lane[_OTHERS + b] /= total
        for k in range(classes):
            for b in range(lanes):
                weight = weights[k, b] / lane[_TOTAL + b]
                weights[k, b] = weight
                residual = (-lane[_OTHERS + b] if own[k, b] > 0.0 else weight) - slopes[k, b]
                share = weight / (1.0 + lane[_STEP + b] * weight)
                lane[_PULL + b] += share * residual
                lane[_MASS + b] += share
        for k in range(classes):
            for b in range(lanes):
                weight, step = weights[k, b], lane[_STEP + b]
                residual = (-lane[_OTHERS + b] if own[k, b] > 0.0 else weight) - slopes[k, b]
                common = step * lane[_PULL + b] / lane[_MASS + b]
                move = lane[_ALIVE + b] * (residual + weight * common) / (1.0 + step * weight)
                slopes[k, b] += move
                lane[_CHANGE + b] = max(lane[_CHANGE + b], step * abs(move))
        living = 0.0
        for b in range(lanes):
            # The error of a score after this step is about change^2; a change that no longer halves is rounding.
            change = lane[_CHANGE + b]
            arrived = (change <= 1e-8) | (change >= 0.5 * lane[_LAST + b])
            lane[_ALIVE + b] = 0.0 if arrived else lane[_ALIVE + b]
            lane[_LAST + b] = change
        for b in range(lanes):
            living += lane[_ALIVE + b]
        if living == 0.0:
            break


@_compile
def softmax_prox_slopes(points: Array, steps: Array, targets: IntArray, slopes: Array, first: int, last: int) -> None:
    """Write the slopes g of the softmax loss at point - step * g; points (n, K), targets (n,), steps (n,) or (1,).

    No lane looks at another, so that a record's slopes do not depend on who is beside it.
    """
    classes = points.shape[1]
    shape = classes, LANES
    scores, own, levels = np.empty(shape), np.empty(shape), np.empty(shape)
    found, weights, lane = np.empty(shape), np.empty(shape), np.empty(_PLACES * LANES)
    common = steps.size == 1
    for start in range(first, last, LANES):
        lanes = min(LANES, last - start)
        for b in range(lanes):
            i = start + b
            step = steps[0] if common else steps[i]
            lane[_STEP + b] = step
            # Only differences of scores matter, and they are exact where it counts when the largest is 0.
            top = points[i].max()
            for k in range(classes):
                scores[k, b] = points[i, k] - top
                own[k, b] = 1.0 if k == targets[i] else 0.0
                levels[k, b] = scores[k, b] + step * own[k, b]
        _locate(levels, weights, lane, lanes)
        for b in range(lanes):
            lane[_OTHERS + b] = 0.0
        for k in range(classes):
            for b in range(lanes):
                lane[_OTHERS + b] += weights[k, b] * (1.0 - own[k, b])
        for k in range(classes):
            for b in range(lanes):
                found[k, b] = -lane[_OTHERS + b] if own[k, b] > 0.0 else weights[k, b]
        _polish(scores, own, found, weights, lane, lanes)
        for b in range(lanes):
            for k in range(classes):
                slopes[start + b, k] = found[k, b]
