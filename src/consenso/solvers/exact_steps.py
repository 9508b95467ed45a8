"""Directions of Newton's method for the exact fit, with whichever linear system is small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.newton import Bools, LinePath, conjugate_gradients, minimise
from consenso.rows import BLOCK_NUMBERS, Rows
from consenso.solvers.smooth import Iterate, Smoothed

LARGEST_SYSTEM = 2000
STEPS = 200
PRODUCTS = 500
FORCING = 1e-2  # relative accuracy of a direction by conjugate gradients
FINISHED = 1e-16  # a step that would lower the objective by less than this, relative to it, is not taken
ROUNDING = 16 * float(np.finfo(np.float64).eps)
LEAST_DAMPING, MOST_DAMPING = 1e-13, 1e3

Direction: TypeAlias = Callable[[Smoothed, Iterate, float], Array]


def descend(smooth: Smoothed, x: Array) -> tuple[Array, int]:
    """A minimiser from x on, and the steps taken."""
    if smooth.penalty.other is not None:
        return _quasi_newton(smooth, x)
    direction: Direction = _ByColumns()
    if smooth.rows.outputs > 1 or smooth.rows.features > LARGEST_SYSTEM:
        direction = _by_rows_or(_conjugates(smooth))
    found = minimise(_Fit(smooth, direction), x[None], 0.0, STEPS)
    return found.x[0], found.steps


@dataclass(frozen=True, eq=False)
class _State:
    x: Array  # (1, dim)
    point: Iterate
    residual: Array  # (1,)


class _Fit:
    """The exact fit as the one objective of Newton's method, damped more where a step had to be short.

    Its residual is the length of the gradient in coordinates that have their natural curvature.
    """

    def __init__(self, smooth: Smoothed, direction: Direction) -> None:
        self._smooth, self._direction, self._damping = smooth, direction, LEAST_DAMPING

    def state(self, x: Array) -> _State:
        point = self._smooth.at(x[0])
        return _State(x, point, np.array([np.sqrt(np.sum(point.gradient**2 / self._smooth.steepness))]))

    def is_settled(self, state: _State) -> Bools:
        return np.array([self._damping > MOST_DAMPING])

    def direction(self, state: _State) -> Array:
        return self._direction(self._smooth, state.point, self._damping)[None]

    def path(self, state: _State, move: Array) -> LinePath:
        smooth, here, (turn,) = self._smooth, state.point, move
        along = smooth.rows.linear_predictor(turn)

        def at(lengths: Array) -> tuple[Array, Array]:
            (length,) = lengths
            x, scores = here.x + length * turn, here.scores + length * along
            slope, change = smooth.slope_along(x, scores, turn, along), smooth.value(x, scores) - here.value
            return np.array([slope]), np.array([change])

        return LinePath(
            start=np.array([float(here.gradient @ turn)]),
            slack=np.array([ROUNDING * abs(here.value)]),
            at=at,
            least=FINISHED * (abs(here.value) + float(np.finfo(float).tiny)),
        )

    def learn(self, lengths: Array) -> None:
        (length,) = lengths
        if length == 0.0:
            self._damping = max(self._damping, 1e-12) * 1e3
        else:
            self._damping = max(self._damping * (0.1 if length > 0.1 else 10.0), LEAST_DAMPING)

    def take(self, few: IntArray) -> tuple[_Fit, IntArray]:
        return self, few

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        return values[:, None]


class _ByColumns:
    """Newton's direction; coordinates are scaled to the diagonal, and damped by a share of their natural curvature.

    The second moment is kept while the curvatures of the records do not change.
    """

    def __init__(self) -> None:
        self._weights, self._moment = np.empty(0), np.empty((0, 0))

    def __call__(self, smooth: Smoothed, here: Iterate, damping: float) -> Array:
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

    def direction(smooth: Smoothed, here: Iterate, damping: float) -> Array:
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

    def direction(smooth: Smoothed, here: Iterate, damping: float) -> Array:
        diagonal = smooth.curvatures(here.x) + damping * smooth.steepness
        precondition = shared or _free_preconditioner(smooth, here, diagonal)

        def product(search: Array) -> Array:
            bent = smooth.term.curvature_product(here.scores, smooth.rows.linear_predictor(search[0]))
            return np.atleast_2d(smooth.rows.total(smooth.weight(bent)) + diagonal * search[0])

        def first(left: Array) -> Array:
            return precondition(left[0])[None]

        right = -here.gradient[None]
        found = conjugate_gradients(product, right, accuracy=FORCING, most=PRODUCTS, precondition=first)
        return np.asarray(found[0])

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


def _free_preconditioner(smooth: Smoothed, here: Iterate, diagonal: Array) -> Callable[[Array], Array]:
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


def _quasi_newton(smooth: Smoothed, x: Array) -> tuple[Array, int]:
    """L-BFGS, for penalties whose prox couples coordinates."""
    from scipy.optimize import minimize

    def both(x: Array) -> tuple[float, Array]:
        point = smooth.at(x)
        return point.value, point.gradient

    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30}
    found = minimize(both, x, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x, dtype=np.float64), int(found.nit)
