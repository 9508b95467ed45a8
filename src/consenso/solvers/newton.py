"""Newton's method on a smooth function of scores and coordinates, with whichever linear system is small."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from consenso.arrays import Array
from consenso.rows import BLOCK_NUMBERS, Rows
from consenso.solvers.smooth import Point, Smoothed

LARGEST_SYSTEM = 2000
STEPS = 200
TRIALS = 60
PRODUCTS = 500
FORCING = 1e-2  # relative accuracy of a direction by conjugate gradients
FINISHED = 1e-16  # a step that would lower the objective by less than this, relative to it, is not taken
ROUNDING = 16 * float(np.finfo(np.float64).eps)
LEAST_DAMPING, MOST_DAMPING = 1e-13, 1e3

Direction: TypeAlias = Callable[[Smoothed, Point, float], Array]


def descend(smooth: Smoothed, x: Array) -> tuple[Array, int]:
    """A minimiser from x on, and the steps taken."""
    if smooth.penalty.other is not None:
        return _quasi_newton(smooth, x)
    direction: Direction = _ByColumns()
    if smooth.rows.outputs > 1 or smooth.rows.features > LARGEST_SYSTEM:
        direction = _by_rows_or(_conjugates(smooth))
    here, damping, idle = smooth.at(x), LEAST_DAMPING, 0
    for taken in range(STEPS):
        move = direction(smooth, here, damping)
        along, expected = smooth.rows.linear_predictor(move), -float(here.gradient @ move)
        if not expected > FINISHED * (abs(here.value) + np.finfo(float).tiny):
            return here.x, taken
        length = _line_search(smooth, here, move, along, -expected)
        if length == 0.0:
            damping, idle = max(damping, 1e-12) * 1e3, idle + 1
        else:
            damping = max(damping * (0.1 if length > 0.1 else 10.0), LEAST_DAMPING)
            before, here = here, smooth.at(here.x + length * move)
            idle = 0 if here.value < before.value - ROUNDING * abs(before.value) else idle + 1
        if idle > 3 or damping > MOST_DAMPING:
            return here.x, taken + 1
    return here.x, STEPS


class _ByColumns:
    """Newton's direction; coordinates are scaled to the diagonal, and damped by a share of their natural curvature.

    The second moment is kept while the curvatures of the records do not change.
    """

    def __init__(self) -> None:
        self._weights, self._moment = np.empty(0), np.empty((0, 0))

    def __call__(self, smooth: Smoothed, here: Point, damping: float) -> Array:
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        weights = smooth.weights * smooth.term.curvature(here.scores)
        if not np.array_equal(weights, self._weights):
            self._weights, self._moment = weights, _second_moment(smooth.rows, weights)
        own = self._moment.diagonal() + smooth.curvatures(here.x)
        while True:
            root = 1.0 / np.sqrt(own + damping * smooth.steepness)
            scaled = self._moment * root[:, None] * root
            np.fill_diagonal(scaled, 1.0)
            try:
                factor = cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                damping = max(damping, LEAST_DAMPING) * 100
                continue
            move: Array = -root * cho_solve(factor, root * here.gradient, check_finite=False)
            return move


def _by_rows_or(otherwise: Direction) -> Direction:
    """Newton's direction from a system of the records that have curvature, if these are few (Woodbury's identity)."""

    def direction(smooth: Smoothed, here: Point, damping: float) -> Array:
        diagonal = smooth.curvatures(here.x) + damping * smooth.steepness
        if smooth.rows.outputs > 1:
            return otherwise(smooth, here, damping)
        weights = smooth.weights * smooth.term.curvature(here.scores)
        chosen = np.flatnonzero(weights)
        # Beside a diagonal that is nearly zero the identity cancels.
        if len(chosen) > LARGEST_SYSTEM or diagonal.min() < 1e-8 * diagonal.max():
            return otherwise(smooth, here, damping)
        part, roots = smooth.rows.matrix[chosen], np.sqrt(weights[chosen])
        inverse = 1.0 / diagonal
        if smooth.rows.is_sparse:
            gram = (part.multiply(inverse[None, :]) @ part.T).toarray()
        else:
            gram = (part * inverse) @ part.T
        gram = roots[:, None] * gram * roots
        gram[np.diag_indices_from(gram)] += 1.0
        left = -here.gradient * inverse
        solved = roots * np.linalg.solve(gram, roots * (part @ left))
        move: Array = left - inverse * (part.T @ solved)
        return move

    return direction


def _second_moment(rows: Any, weights: Array) -> Array:
    """The sum of weight row row', of the rows that have one."""
    matrix, chosen = rows.matrix, np.flatnonzero(weights)
    if rows.is_sparse:
        part = matrix[chosen]
        return np.asarray((part.T @ part.multiply(weights[chosen, None]).tocsr()).toarray(), dtype=np.float64)
    out = np.zeros((rows.features, rows.features))
    length = max(1, BLOCK_NUMBERS // rows.features)
    everything = len(chosen) == len(weights)
    for start in range(0, len(chosen), length):
        block = slice(start, start + length) if everything else chosen[start : start + length]
        part = matrix[block] * np.sqrt(weights[block])[:, None]
        out += part.T @ part
    return out


def _conjugates(smooth: Smoothed) -> Direction:
    """Directions by conjugate gradients."""
    shared = _make_preconditioner(smooth) if smooth.rows.features <= LARGEST_SYSTEM else None

    def direction(smooth: Smoothed, here: Point, damping: float) -> Array:
        diagonal = smooth.curvatures(here.x) + damping * smooth.steepness
        precondition = shared or _free_preconditioner(smooth, here, diagonal)
        left = -here.gradient
        move, towards = np.zeros_like(left), precondition(left)
        search, size = towards, float(left @ towards)
        goal = FORCING**2 * size
        for _ in range(PRODUCTS):
            bent = smooth.term.curvature_product(here.scores, smooth.rows.linear_predictor(search))
            image = smooth.rows.total(smooth.weight(bent)) + diagonal * search
            length = size / float(search @ image)
            move, left = move + length * search, left - length * image
            towards = precondition(left)
            last, size = size, float(left @ towards)
            if size <= goal:
                break
            search = towards + (size / last) * search
        return move

    return direction


def _make_preconditioner(smooth: Smoothed) -> Callable[[Array], Array]:
    """The inverse of the second moment of all rows, the same for every output."""
    from scipy.linalg import cho_factor, cho_solve

    rows, outputs = smooth.rows, smooth.rows.outputs
    moment = _second_moment(rows, smooth.weights)
    # The curvature of a record falls off as it is fitted: the share of its bound that is left is a guess.
    moment *= 0.2 * smooth.term.curvature_bound
    moment += np.diag(smooth.penalty.square[::outputs] + 1e-8 * smooth.steepness[::outputs])
    factor = cho_factor(moment, check_finite=False)

    def apply(vector: Array) -> Array:
        solved: Array = cho_solve(factor, vector.reshape(rows.features, outputs), check_finite=False)
        return solved.reshape(-1)

    return apply


def _free_preconditioner(smooth: Smoothed, here: Point, diagonal: Array) -> Callable[[Array], Array]:
    """The diagonal; and the inverse of the block of the coordinates that no kink holds, if these are few."""
    full = diagonal + smooth.steepness
    held = (smooth.penalty.absolute > 0) & (np.abs(here.push) < smooth.penalty.absolute)
    free = np.flatnonzero(~held)
    if smooth.rows.outputs > 1 or not 0 < len(free) <= LARGEST_SYSTEM:
        return lambda vector: vector / full
    from scipy.linalg import cho_factor, cho_solve

    part = Rows(smooth.rows.matrix[:, free], smooth.rows.layout)
    block = _second_moment(part, smooth.weights * smooth.term.curvature(here.scores))
    block += np.diag(diagonal[free] + 1e-10 * smooth.steepness[free])
    factor = cho_factor(block, check_finite=False)

    def apply(vector: Array) -> Array:
        out: Array = vector / full
        out[free] = cho_solve(factor, vector[free], check_finite=False)
        return out

    return apply


def _line_search(smooth: Smoothed, here: Point, move: Array, along: Array, start: float) -> float:
    """A length at which the slope has fallen to half and the value has not risen; 0 where there is none.

    Approximate Wolfe conditions (Hager and Zhang 2005): slopes tell what values no longer do.
    """
    low, low_slope, high, high_slope, length = 0.0, start, math.inf, math.nan, 1.0
    slack = ROUNDING * abs(here.value)
    for _ in range(TRIALS):
        x, scores = here.x + length * move, here.scores + length * along
        slope, above = smooth.slope_along(x, scores, move, along), smooth.value(x, scores) > here.value + slack
        if abs(slope) <= 0.5 * abs(start) and not above:
            return length
        if slope > 0 or above:
            high, high_slope = length, slope
        else:
            low, low_slope = length, slope
        if math.isinf(high):
            length = 4 * low
        else:
            rise = high_slope - low_slope
            share = -low_slope / rise if rise > 0 else 0.5
            length = low + min(max(share, 0.05), 0.95) * (high - low)
    return low


def _quasi_newton(smooth: Smoothed, x: Array) -> tuple[Array, int]:
    """L-BFGS, for penalties whose prox couples coordinates."""
    from scipy.optimize import minimize

    def both(x: Array) -> tuple[float, Array]:
        point = smooth.at(x)
        return point.value, point.gradient

    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30}
    found = minimize(both, x, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x, dtype=np.float64), int(found.nit)
