"""Minimising a sum of smooth functions of scores and coordinates: damped Newton steps, for `consenso.solvers.exact`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from consenso.arrays import Array
from consenso.regularizers import L1, L2, ElasticNet, NoPenalty, Regularizer, Sum, Unpenalized
from consenso.rows import BLOCK_NUMBERS, Rows
from consenso.subproblems.batch import Term

LARGEST_SYSTEM = 2000
STEPS = 200
TRIALS = 60
PRODUCTS = 500
FORCING = 1e-2  # relative accuracy of a direction by conjugate gradients
FINISHED = 1e-16  # a step that would lower the objective by less than this, relative to it, is not taken
ROUNDING = 16 * float(np.finfo(np.float64).eps)
LEAST_DAMPING, MOST_DAMPING = 1e-13, 1e3


@dataclass(frozen=True, kw_only=True, eq=False)
class Penalty:
    """A regularizer as square/2 |x|^2 + absolute |x|_1, coordinate by coordinate, or as it is (`other`)."""

    square: Array
    absolute: Array
    other: Regularizer | None = None

    @property
    def has_kinks(self) -> bool:
        """Whether it has to be smoothed."""
        return self.other is not None or bool(self.absolute.any())

    def opposing(self, z: Array, gradient: Array) -> Array:
        """The subgradient of the absolute values at z that cancels most of a gradient."""
        pushed: Array = np.where(z == 0, np.clip(-gradient, -self.absolute, self.absolute), np.sign(z) * self.absolute)
        return pushed


def split(regularizer: Regularizer, dim: int) -> Penalty:
    """The parts of a regularizer."""
    square, absolute = np.zeros(dim), np.zeros(dim)
    if _collect(regularizer, square, absolute):
        return Penalty(square=square, absolute=absolute)
    return Penalty(square=np.zeros(dim), absolute=np.zeros(dim), other=regularizer)


def _collect(regularizer: Regularizer, square: Array, absolute: Array) -> bool:
    """Add a regularizer to both, in place; False where it is neither."""
    match regularizer:
        case NoPenalty():
            return True
        case L1(strength=strength):
            absolute += strength
            return True
        case L2(strength=strength):
            square += strength
            return True
        case ElasticNet(l1=l1, l2=l2):
            absolute += l1
            square += l2
            return True
        case Unpenalized(inner=inner, last=last):
            return _collect(inner, square[:-last], absolute[:-last])
        case Sum(parts=parts):
            return all([_collect(part, square, absolute) for part in parts])
    return False


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothed:
    """sum of weight * term(<row, x>) + square/2 |x|^2 + the envelope of the rest of the penalty."""

    rows: Any
    term: Term
    weights: Array  # (rows,)
    penalty: Penalty
    widths: Array  # of the envelope of the penalty, (dim,)
    push: Array  # its center, (dim,)
    steepness: Array  # a natural curvature of each coordinate, (dim,)

    def at(self, x: Array) -> Point:
        """Everything at x."""
        scores = self.rows.scores(x)
        slopes = self.term.slope(scores)
        push = self._push(x)
        gradient = self.rows.total(self.weighted(slopes)) + self.penalty.square * x + push
        return Point(x=x, scores=scores, slopes=slopes, push=push, gradient=gradient, value=self.value(x, scores))

    def value(self, x: Array, scores: Array) -> float:
        """The function, its scores being known."""
        total = float(self.weights @ self.term.value(scores) + 0.5 * (self.penalty.square @ (x * x)))
        if not self.penalty.has_kinks:
            return total
        push, z = self._push(x), self.model(x)
        rest = self.penalty.absolute @ np.abs(z) if self.penalty.other is None else self.penalty.other.value(z)
        return total + float(rest + 0.5 * (self._widths() @ (push * push)))

    def slope_along(self, x: Array, scores: Array, move: Array, along: Array) -> float:
        """The derivative at x in the direction `move`, whose scores are `along`."""
        slopes = self.weighted(self.term.slope(scores))
        return float(np.vdot(slopes, along) + (self.penalty.square * x + self._push(x)) @ move)

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """Slopes of the losses and of the rest of the penalty at x: the centers of the next envelopes."""
        return self.term.slope(self.rows.scores(x)), self._push(x)

    def model(self, x: Array) -> Array:
        """The point at which `slopes` are those of the penalty itself: exact zeros, within a constraint."""
        if self.penalty.other is not None:
            return self.penalty.other.prox(x + self._widths() * self.push, float(self._widths()[0]))
        if not self.penalty.has_kinks:
            return x
        ahead = x + self.widths * self.push
        return np.where(self.penalty.absolute > 0, _softened(ahead, self.widths * self.penalty.absolute), x)

    def curvatures(self, x: Array) -> Array:
        """Second derivatives of the penalties, (dim,)."""
        bent = (self.penalty.absolute > 0) & (np.abs(self._push(x)) < self.penalty.absolute)
        return self.penalty.square + np.where(bent, 1.0 / self.widths, 0.0)

    def _push(self, x: Array) -> Array:
        if self.penalty.other is not None:
            return (x + self._widths() * self.push - self.model(x)) / self._widths()
        if not self.penalty.has_kinks:
            return np.zeros_like(x)
        strength = self.penalty.absolute
        pushed: Array = np.clip(x / self.widths + self.push, -strength, strength)
        return pushed

    def _widths(self) -> Array:
        # A prox that couples coordinates takes one step for all of them.
        if self.penalty.other is None:
            return self.widths
        return np.full_like(self.widths, math.exp(float(np.mean(np.log(self.widths)))))

    def weighted(self, per_row: Array) -> Array:
        """Numbers of each record times its weight."""
        return per_row * (self.weights if per_row.ndim == 1 else self.weights[:, None])


@dataclass(frozen=True, kw_only=True, eq=False)
class Point:
    """A model, its scores, slopes, gradient and value."""

    x: Array
    scores: Array
    slopes: Array
    push: Array
    gradient: Array
    value: float


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
        along, expected = smooth.rows.scores(move), -float(here.gradient @ move)
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
        return left - inverse * (part.T @ solved)

    return direction


def _second_moment(rows: Any, weights: Array) -> Array:
    """sum of weight row row', of the rows that have one."""
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
    shared = _shared_preconditioner(smooth) if smooth.rows.features <= LARGEST_SYSTEM else None

    def direction(smooth: Smoothed, here: Point, damping: float) -> Array:
        diagonal = smooth.curvatures(here.x) + damping * smooth.steepness
        precondition = shared or _free_preconditioner(smooth, here, diagonal)
        left = -here.gradient
        move, towards = np.zeros_like(left), precondition(left)
        search, size = towards, float(left @ towards)
        goal = FORCING**2 * size
        for _ in range(PRODUCTS):
            bent = smooth.term.curvature_product(here.scores, smooth.rows.scores(search))
            image = smooth.rows.total(smooth.weighted(bent)) + diagonal * search
            length = size / float(search @ image)
            move, left = move + length * search, left - length * image
            towards = precondition(left)
            last, size = size, float(left @ towards)
            if size <= goal:
                break
            search = towards + (size / last) * search
        return move

    return direction


def _shared_preconditioner(smooth: Smoothed) -> Callable[[Array], Array]:
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


def _softened(v: Array, thresholds: Array) -> Array:
    moved: Array = v - np.clip(v, -thresholds, thresholds)
    return moved
