"""Newton's method in score space, a whole party at a time, for losses that bring their formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import at, put
from consenso.speedups import compile_kernel

# Linear systems are solved to this relative accuracy; Newton's steps make up for the rest.
FORCING = 1e-4


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
    parameters: Array,
    derivatives: Any,
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
            derivatives(m, at(parameters, 0), at(here, 0), at(targets, a), at(gap, 0), at(roots, 0))
            for j in range(m):
                gap[j] -= own[j]
                roots[j] = math.sqrt(t * roots[j])
            _product(gram, gap, product)
            length = 0.0
            for j in range(m):
                length += gap[j] * product[j]
            length = t * math.sqrt(max(length, 0.0))
            if not length < shortest:
                break
            shortest = length
            lengths[i] = length
            put(own, dual[a:b])
            if length <= goal:
                break
            _solve(gram, roots, product, solved, work)
            _product(gram, solved, moved)
            for j in range(m):
                own[j] += gap[j] - solved[j]
                here[j] -= t * (product[j] - moved[j])
