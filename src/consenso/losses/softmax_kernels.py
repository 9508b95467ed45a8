"""The prox of the softmax loss, several records at a time (`kernels` says what compiled solvers have in common)."""

from __future__ import annotations

import math

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.losses.kernels import compile_part, exp, guess_log, log
from consenso.speedups import branchless


@compile_part
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


@branchless
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
        small = lane[_TOP + b] + log(lane[_TOTAL + b]) - lane[_STEP + b]
        lane[_LOW + b] = max(lane[_LOW + b], small)
        lane[_HIGH + b] = lane[_TOP + b] - lane[_STEP + b] / classes + math.log(classes)
        lane[_NORMALIZER + b] = lane[_LOW + b]


@branchless
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
                weights[k, b] = min(guess_log(levels[k, b] - lane[_NORMALIZER + b], lane[_STEP + b]), 0.0)
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
            excess = log(total)
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


@branchless
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


@branchless
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
