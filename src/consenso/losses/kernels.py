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
_LOWEST_LOG = -708.0  # below this, exp is subnormal: no loss can tell it from zero


def _compiled(kernel: Kernel, inline: str = "never") -> Kernel:
    """Compile without fast-math, so that a batch equals its records one by one; cache where a folder allows it."""
    try:
        return njit(error_model="numpy", nogil=True, inline=inline, cache=True)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to cache in
        return njit(error_model="numpy", nogil=True, inline=inline)(kernel)  # type: ignore[no-any-return]


def _inlined(kernel: Kernel) -> Kernel:
    return _compiled(kernel, inline="always")


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


@_inlined
def _exp(x: float) -> float:
    """exp(x) to one or two units in the last place, for x <= 700; at least exp(-708)."""
    x = max(x, _LOWEST_LOG)
    shifted = x * _LOG2_E + _ROUND
    exponent = shifted - _ROUND
    r = (x - exponent * _LOG_2_HIGH) - exponent * _LOG_2_LOW
    # Taylor's series on |r| <= log(2)/2: the first term left out is below 5e-18.
    p = _C13
    p = p * r + _C12
    p = p * r + _C11
    p = p * r + _C10
    p = p * r + _C9
    p = p * r + _C8
    p = p * r + _C7
    p = p * r + _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    power: float = _float_of((_bits_of(shifted) + 1023) << 52)
    return ((p * r * r + r) + 1.0) * power


@_inlined
def _rough_log(x: float) -> float:
    """log(x) to 0.007, for positive normal x: enough to start a cubic iteration."""
    bits = _bits_of(x)
    exponent: float = _float_of((bits >> 52) | 0x4330000000000000) - (2.0**52 + 1023.0)
    mantissa: float = _float_of((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    return (exponent + (2.0 - mantissa / 3.0) * mantissa - 5.0 / 3.0) / _LOG2_E


@_inlined
def _guess_log(level: float, step: float) -> float:
    """The root x of x + step * exp(x) = level, to about 0.2."""
    scaled = level + _rough_log(max(step, 1e-300))
    # step * exp(x) is Wright's omega function of `scaled`: its tail, its tangent at 0 and its asymptote.
    omega = max(scaled, 1.0) - _rough_log(max(scaled, 1.0))
    omega = 0.567143 + 0.361896 * scaled if scaled < 1.0 else omega
    return level if scaled < -1.0 else level - omega


@_inlined
def _halley(x: float, level: float, step: float) -> tuple[float, float, float, float]:
    """Halley's step for x + step * sigmoid(x) = level, and at x: sigmoid(x), sigmoid(-x), sigmoid'(x)."""
    e = _exp(x)
    below = 1.0 / (1.0 + e)
    weight = e * below
    bend = weight * below
    gap = (x - level) + step * weight
    rise = 1.0 + step * bend
    move = -2.0 * gap * rise / (2.0 * rise * rise - gap * step * bend * (below - weight))
    return move, weight, below, bend


@_inlined
def solve_sigmoid(level: float, step: float) -> float:
    """The root q of q = sigmoid(level - step * q).

    With x = level - step * q the equation reads x + step * sigmoid(x) = level. The map (level, q) -> (step - level,
    1 - q) sends the roots with x > 0 to those with x < 0, where the left side is increasing and convex. There the
    starting points below are good to about 0.3 and three evaluations of Halley's cubic iteration suffice for every
    level and every step up to 1e12: the third correction, of at most 2e-6, is applied to q by Taylor's formula.
    """
    mirrored = level + level > step
    level = step - level if mirrored else level
    # Small steps: the tangent at x = 0 and the asymptote x = level both lie above the root.
    small = min(level, (level - 0.5 * step) / (1.0 + 0.25 * step))
    large = min(_guess_log(level, max(step, 4.0)), 0.0)
    x = large if step > 4.0 else small
    move, weight, below, bend = _halley(x, level, step)
    x = min(x + move, 0.0)
    move, weight, below, bend = _halley(x, level, step)
    x = min(x + move, 0.0)
    move, weight, below, bend = _halley(x, level, step)
    weight += bend * move * (1.0 + 0.5 * (below - weight) * move)
    return 1.0 - weight if mirrored else weight


@_compiled
def logistic_prox_slopes(points: Array, steps: Array, targets: Array, slopes: Array, first: int, last: int) -> None:
    """Write the slopes g of the logistic loss at point - step * g; points, targets (n,), steps (n,) or (1,)."""
    common = steps.size == 1
    # Slices counted from 0: an index that could be negative would keep the loop from being vectorised.
    own_points, own_steps = points[first:last], steps if common else steps[first:last]
    own_targets, own_slopes = targets[first:last], slopes[first:last]
    for i in range(own_points.size):
        step = own_steps[0] if common else own_steps[i]
        own_slopes[i] = -own_targets[i] * solve_sigmoid(-own_targets[i] * own_points[i], step)


@_inlined
def _log_weight(level: float, step: float) -> float:
    """The root x <= 0 of x + step * exp(x) = level, for level <= step, to about 1e-5."""
    x = min(_guess_log(level, step), 0.0)
    for _ in range(2):
        e = step * _exp(x)
        gap = (x - level) + e
        rise = 1.0 + e
        x = min(x - 2.0 * gap * rise / (2.0 * rise * rise - gap * e), 0.0)
    return x


@_compiled
def _locate(shifted: Array, step: float, weights: Array) -> None:
    """Class weights p with p_k = exp(s_k - c), s_k + step * p_k = shifted_k and sum p = 1, to a few per cent.

    Given c, each p_k follows from its own scalar equation; their sum is decreasing and convex in c, and c is bracketed:
    p <= 1 gives c >= logsumexp(shifted) - step, and max p >= 1/K gives c <= max(shifted) - step/K + log K.
    """
    classes = shifted.size
    top = shifted.max()
    total = 0.0
    for k in range(classes):
        total += _exp(shifted[k] - top)
    low = top + math.log(total) - step
    high = top - step / classes + math.log(classes)
    normalizer = low
    for _ in range(100):
        for k in range(classes):
            weights[k] = _exp(_log_weight(shifted[k] - normalizer, step))
        total = 0.0
        fall = 0.0
        for k in range(classes):
            total += weights[k]
            fall += weights[k] / (1.0 + step * weights[k])
        if total >= 1.0:
            low = normalizer
        else:
            high = normalizer
        # Newton on log(total), nearly linear for small steps; else on total, which is nearly linear for large ones
        # and never passes the root from the left; else halve the bracket.
        following = normalizer + total * math.log(total) / fall
        if not low <= following <= high:
            following = normalizer + (total - 1.0) / fall
        if not low <= following <= high:
            following = 0.5 * (low + high)
        change = following - normalizer
        normalizer = following
        if abs(change) <= 0.1:
            break
    for k in range(classes):
        weights[k] *= 1.0 - change / (1.0 + step * weights[k])


@_compiled
def _polish(scores: Array, step: float, target: int, slopes: Array, weights: Array) -> None:
    """Newton's iteration for slopes = softmax(scores - step * slopes) - e_target, in place.

    Its matrix I + step * (diag(p) - p p') is inverted by Sherman and Morrison's formula. The target's own slope is kept
    as minus the sum of the other weights, so that it has no cancellation when the target's weight is near 1.
    """
    classes = scores.size
    last = np.inf
    for _ in range(20):
        for k in range(classes):
            weights[k] = scores[k] - step * slopes[k]
        top = weights.max()
        for k in range(classes):
            weights[k] = _exp(weights[k] - top)
        others = 0.0
        for k in range(classes):
            if k != target:
                others += weights[k]
        total = others + weights[target]
        pull = 0.0
        mass = 0.0
        for k in range(classes):
            weights[k] /= total
            residual = (-others / total if k == target else weights[k]) - slopes[k]
            share = weights[k] / (1.0 + step * weights[k])
            pull += share * residual
            mass += share
        common = step * pull / mass
        change = 0.0
        for k in range(classes):
            residual = (-others / total if k == target else weights[k]) - slopes[k]
            move = (residual + weights[k] * common) / (1.0 + step * weights[k])
            slopes[k] += move
            change = max(change, step * abs(move))
        # The error of a score after this step is about change^2; a change that no longer halves is rounding.
        if change <= 1e-8 or change >= 0.5 * last:
            break
        last = change


@_compiled
def softmax_prox_slopes(points: Array, steps: Array, targets: IntArray, slopes: Array, first: int, last: int) -> None:
    """Write the slopes g of the softmax loss at point - step * g; points (n, K), targets (n,), steps (n,) or (1,)."""
    classes = points.shape[1]
    shifted = np.empty(classes)
    weights = np.empty(classes)
    common = steps.size == 1
    for i in range(first, last):
        step = steps[0] if common else steps[i]
        target = targets[i]
        # Only differences of scores matter, and they are exact where it counts when the largest is 0.
        top = points[i].max()
        for k in range(classes):
            shifted[k] = points[i, k] - top
        shifted[target] += step
        _locate(shifted, step, weights)
        others = 0.0
        for k in range(classes):
            shifted[k] = points[i, k] - top
            slopes[i, k] = weights[k]
            if k != target:
                others += weights[k]
        slopes[i, target] = -others
        _polish(shifted, step, target, slopes[i], weights)
