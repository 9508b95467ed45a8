"""Newton's method in score space, a whole party at a time, for losses whose formula is compiled here."""

from __future__ import annotations

import math

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import compile_kernel

LOGISTIC, RESIDUAL, HINGE = 0, 1, 2
# Linear systems are solved to this relative accuracy; Newton's steps make up for the rest.
FORCING = 1e-4


@compile_kernel
def slope_and_curvature(kind: int, parameter: float, score: float, target: float) -> tuple[float, float]:
    """Of the logistic loss, of Huber's with threshold `parameter`, or of the hinge smoothed over `parameter`."""
    if kind == LOGISTIC:
        small = math.exp(-abs(score))
        large = 1.0 / (1.0 + small)
        small *= large
        return -target * (small if target * score > 0.0 else large), small * large
    if kind == RESIDUAL:
        residual = score - target
        inside = abs(residual) <= parameter
        return min(max(residual, -parameter), parameter), 1.0 if inside else 0.0
    depth = (1.0 - target * score) / parameter
    return -target * min(max(depth, 0.0), 1.0), 1.0 / parameter if 0.0 <= depth <= 1.0 else 0.0


@compile_kernel
def _product(gram: Array, weights: Array, out: Array) -> None:
    """A symmetric matrix times a vector, by rows so that the loop vectorizes."""
    out[:] = 0.0
    for r in range(len(weights)):
        weight = weights[r]
        for c in range(len(weights)):
            out[c] += weight * gram[r, c]


@compile_kernel
def _solve(gram: Array, roots: Array, right: Array, solution: Array, work: Array) -> None:
    """With w = roots: solution = w (I + w G w)^-1 w right, by conjugate gradients; work is (4, m)."""
    left, search, weighted, image = work[0], work[1], work[2], work[3]
    size = 0.0
    for j in range(len(roots)):
        solution[j] = 0.0
        left[j] = roots[j] * right[j]
        search[j] = left[j]
        size += left[j] ** 2
    goal = FORCING**2 * size
    for _ in range(2 * len(roots)):
        if size <= goal:
            break
        for j in range(len(roots)):
            weighted[j] = roots[j] * search[j]
        _product(gram, weighted, image)
        bent = 0.0
        for j in range(len(roots)):
            image[j] = search[j] + roots[j] * image[j]
            bent += search[j] * image[j]
        length = size / bent
        last, size = size, 0.0
        for j in range(len(roots)):
            solution[j] += length * search[j]
            left[j] -= length * image[j]
            size += left[j] ** 2
        for j in range(len(roots)):
            search[j] = left[j] + size / last * search[j]
    for j in range(len(roots)):
        solution[j] *= roots[j]


@compile_kernel
def score_newton(
    kind: int,
    parameter: float,
    grams: Array,
    starts: IntArray,
    offsets: IntArray,
    targets: Array,
    scores: Array,
    weights: Array,
    goal: float,
    steps: int,
    dual: Array,
    lengths: Array,
    first: int,
    last: int,
) -> None:
    """Weights b, dual, for which x = v - t A'b nearly minimizes t sum phi(A x) + |x - v|^2 / 2; scores are A v.

    Full steps only, each of which must shorten the gradient t A'(phi' - b), down to `goal`; a party for which one does
    not keeps what it had. `lengths` of the gradients tell which.
    """
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        m, t = b - a, weights[i]
        gram = grams[starts[i] : starts[i] + m * m].reshape(m, m)
        here, gap, roots, product = scores[a:b].copy(), np.empty(m), np.empty(m), np.empty(m)
        own, solved, moved, work = np.zeros(m), np.zeros(m), np.zeros(m), np.empty((4, m))
        shortest = np.inf
        for _ in range(steps):
            for j in range(m):
                slope, curvature = slope_and_curvature(kind, parameter, here[j], targets[a + j])
                gap[j] = slope - own[j]
                roots[j] = math.sqrt(t * curvature)
            _product(gram, gap, product)
            length = 0.0
            for j in range(m):
                length += gap[j] * product[j]
            length = t * math.sqrt(max(length, 0.0))
            if not length < shortest:
                break
            shortest = length
            lengths[i] = length
            dual[a:b] = own
            if length <= goal:
                break
            _solve(gram, roots, product, solved, work)
            _product(gram, solved, moved)
            for j in range(m):
                own[j] += gap[j] - solved[j]
                here[j] -= t * (product[j] - moved[j])
