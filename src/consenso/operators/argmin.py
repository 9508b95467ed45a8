"""argmin_x f(x) + |A x - v|^2 / (2 step) for the private objective f of one party, with a certificate.

F is strongly convex in the norm |A x|: with g = grad F(x) and d = x - x*, |A d|^2 / step <= <g, d> <= |g| |A d| / w, so

    |A x - A x*| <= step |g| / w,         w the smallest singular value of A,

which holds whatever the solver did. Where A'A is a multiple of the identity the argmin is a prox of f, also for losses
with kinks; otherwise the loss is smooth and the solver is Newton's with conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.errors import MessageError, PreconditionError, StepError
from consenso.operators.matrices import LinearMap, require_injective
from consenso.shards import Cohort
from consenso.subproblems.batch import ROUNDING

STEPS, TRIALS = 200, 60
# Each Newton direction is solved to this relative accuracy.
FORCING = 1e-3
# After this many steps that do not come closer, a point is as close as it gets.
PATIENCE = 4


@dataclass(frozen=True, eq=False)
class Argmin:
    """The point x (dim,) and a bound on |A x - A x*|."""

    x: Array
    residual: float


def certify_argmin(
    f: Cohort, linear: LinearMap, v: Array, step: float, *, start: Array, tolerance: float, who: str
) -> Array:
    """The x of the argmin, or a StepError where A x could not be certified to the tolerance."""
    _check_point(f, linear, v, step, tolerance, who)
    found = argmin(f, linear, v, step, start=start, tolerance=tolerance)
    if not found.residual <= tolerance:
        raise StepError(
            f"{who}: its bound needs A x to a tolerance of {tolerance:g}, which the solver could not certify; allow "
            "a larger tolerance, which is charged, or take a smaller step."
        )
    return found.x


def argmin(f: Cohort, linear: LinearMap, v: Array, step: float, *, start: Array, tolerance: float) -> Argmin:
    """The best point found, and how good it is certified to be."""
    smallest = require_injective(linear, "argmin")
    scale = linear.squared_scale
    if scale is not None:
        size = float(np.sqrt(scale))
        prox = f.prox((linear.adjoint(v) / scale)[None], step / scale, tolerance / size)
        return Argmin(prox.x[0], size * float(prox.residual[0]))
    if f.problem.loss.curvature_bound == np.inf:
        raise PreconditionError(
            "argmin: with a matrix whose A'A is not a multiple of the identity the loss must be smooth, and the slope "
            f"of {f.problem.loss!r} jumps; use SmoothedHinge or Huber, or another splitting."
        )
    return _newton(_Objective(f, linear, v, step), start, smallest, tolerance)


def _check_point(f: Cohort, linear: LinearMap, v: Array, step: float, tolerance: float, who: str) -> None:
    """Refuse a v so long that rounding alone could keep A x from being certified: a rule of public facts alone."""
    smallest, scale = require_injective(linear, who), linear.squared_scale
    if scale is not None:
        f.check_points(linear.adjoint(v) / scale, step / scale, tolerance / float(np.sqrt(scale)), who)
        return
    problem, largest = f.problem, linear.largest
    bend = float(f.scales[0]) * float(problem.sizes[f.parties[0]]) * problem.loss.smoothness(problem.row_bound)
    reach = 2 / smallest  # |x| over |v|, but for what the loss moves
    hidden = ROUNDING * (largest * (largest * reach + 1) + step * bend * reach) / smallest
    # Written so that what is not a number is refused.
    if not hidden * float(np.sqrt(max(linear.rows, linear.columns))) * float(np.linalg.norm(v)) <= tolerance / 2:
        raise MessageError(
            f"{who}: A x must be certified to {tolerance:g}, and at a point as long as the one asked for rounding "
            "alone may exceed it; allow a larger tolerance, which is charged, or take a smaller step."
        )


class _Objective:
    """F, its derivatives and what rounding hides in them."""

    def __init__(self, f: Cohort, linear: LinearMap, v: Array, step: float) -> None:
        self.f, self.linear, self.v, self.step = f, linear, v, step
        self.scale = float(f.scales[0])

    def value(self, x: Array) -> float:
        """F(x)."""
        fit = self.linear.apply(x) - self.v
        return float(self.f.value(x)[0] + fit @ fit / (2 * self.step))

    def gradient(self, x: Array) -> Array:
        """The gradient of F at x."""
        total: Array = self.f.gradient(x)[0] + self.linear.adjoint(self.linear.apply(x) - self.v) / self.step
        return total

    def hessian(self, x: Array, direction: Array) -> Array:
        """The second derivative times a direction."""
        bent = self.f.hessian_product(x, direction)[0]
        total: Array = bent + self.linear.adjoint(self.linear.apply(direction)) / self.step
        return total

    def rounding(self, x: Array) -> float:
        """What rounding may hide in the gradient at x."""
        slopes, length = self.f.slopes(self.f.linear_predictor(x)), float(np.linalg.norm(x))
        sizes = np.abs(slopes) if slopes.ndim == 1 else np.linalg.norm(slopes, axis=1)
        norms, largest = np.sqrt(self.f.squared_norms), self.linear.largest
        bend = self.f.problem.loss.curvature_bound
        pulled = self.scale * float(np.sum(norms * (sizes + bend * norms * length)))
        fitted = largest * (largest * length + float(np.linalg.norm(self.v))) / self.step
        return ROUNDING * (pulled + fitted) * float(np.sqrt(max(self.linear.rows, self.linear.columns)))

    def length(self, x: Array, move: Array) -> float:
        """A step along which F goes down and at whose end it is at most half as steep as at its start."""
        image, scores, along = self.linear.apply(move), self.f.linear_predictor(x), self.f.linear_predictor(move)
        bend, stretch = float((self.linear.apply(x) - self.v) @ image), float(image @ image)

        def slope(length: float) -> float:
            pulled = float(np.sum(self.f.slopes(scores + length * along) * along))
            return self.scale * pulled + (bend + length * stretch) / self.step

        start, before = slope(0.0), self.value(x)
        slack = ROUNDING * (abs(before) + float(self.v @ self.v) / self.step)
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(TRIALS):
            there = slope(length)
            rises = there > 0 and self.value(x + length * move) > before + slack
            if abs(there) <= 0.5 * abs(start) and not rises:
                return length
            low, high = (low, length) if there > 0 or rises else (length, high)
            length = (low + high) / 2 if np.isfinite(high) else 4 * low
        return low


def _newton(objective: _Objective, x: Array, smallest: float, tolerance: float) -> Argmin:
    best, residual, idle = x, np.inf, 0
    for _ in range(STEPS):
        gradient = objective.gradient(x)
        reached = objective.step * (float(np.linalg.norm(gradient)) + objective.rounding(x)) / smallest
        idle = 0 if reached < residual else idle + 1
        if reached < residual:
            best, residual = x, reached
        if residual <= tolerance or idle >= PATIENCE:
            break
        move = _direction(objective, x, gradient)
        x = x + objective.length(x, move) * move
    return Argmin(best, residual)


def _direction(objective: _Objective, x: Array, gradient: Array) -> Array:
    """A direction of descent wherever conjugate gradients stop, nearly Newton's when they stop by accuracy."""
    left = -gradient
    move, search, size = np.zeros_like(left), left, float(left @ left)
    goal = FORCING**2 * size
    for _ in range(2 * len(left)):
        if size <= goal:
            break
        image = objective.hessian(x, search)
        length = size / float(search @ image)
        move, left = move + length * search, left - length * image
        last, size = size, float(left @ left)
        search = left + (size / last) * search
    return move
