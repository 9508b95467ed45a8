"""argmin_x f(x) + |A x - v|^2 / (2 step) for the private objective f of one party, with a certificate.

F is strongly convex in the norm |A x|: with g = grad F(x) and d = x - x*, |A d|^2 / step <= <g, d> <= |g| |A d| / w, so

    |A x - A x*| <= step |g| / w,         w the smallest singular value of A,

which holds whatever the solver did. Where A'A is a multiple of the identity the argmin is a prox of f, also for losses
with kinks; otherwise the loss is smooth and the solver is Newton's with conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import MessageError, PreconditionError, StepError
from consenso.newton import Bools, LinePath, Objectives, conjugate_gradients, minimise
from consenso.operators.matrices import LinearMap, require_injective
from consenso.shards import Cohort
from consenso.subproblems.batch import ROUNDING

STEPS = 200
# Each Newton direction is solved to this relative accuracy.
FORCING = 1e-3


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
    found = minimise(_Objective(f, linear, v, step, smallest), start[None], tolerance, STEPS)
    return Argmin(found.x[0], float(found.residual[0]))


def _check_point(f: Cohort, linear: LinearMap, v: Array, step: float, tolerance: float, who: str) -> None:
    """Refuse a v so long that rounding alone could keep A x from being certified: a rule of public facts alone."""
    smallest, scale = require_injective(linear, who), linear.squared_scale
    if scale is not None:
        f.check_points(linear.adjoint(v) / scale, step / scale, tolerance / float(np.sqrt(scale)), who)
        return
    problem, largest = f.problem, linear.largest
    bend = float(f.scales[0]) * float(problem.sizes[f.parties[0]]) * problem.loss.smoothness(problem.row_bound)
    pull = float(f.scales[0]) * float(problem.sizes[f.parties[0]]) * problem.loss.lipschitz(problem.row_bound)
    length = float(np.linalg.norm(v))
    longest = 2 * length / smallest + step * pull / smallest**2  # of x: the loss moves A x by the last part
    hidden = ROUNDING * (largest * (largest * longest + length) + step * (bend * longest + pull)) / smallest
    # Written so that what is not a number is refused.
    if not hidden * float(np.sqrt(max(linear.rows, linear.columns))) <= tolerance / 2:
        raise MessageError(
            f"{who}: A x must be certified to {tolerance:g}, and at a point as long as the one asked for rounding "
            "alone may exceed it; allow a larger tolerance, which is charged, or take a smaller step."
        )


@dataclass(frozen=True, eq=False)
class _State:
    x: Array  # (1, dim)
    gradient: Array
    residual: Array  # (1,)


@dataclass(frozen=True, eq=False)
class _Objective(Objectives[_State]):
    """F as the one objective of Newton's method, whose residual is the certificate."""

    f: Cohort
    linear: LinearMap
    v: Array
    step: float
    smallest: float

    @property
    def scale(self) -> float:
        return float(self.f.scales[0])

    def state(self, x: Array) -> _State:
        point = x[0]
        gradient = self.f.gradient(point)[0] + self.linear.adjoint(self.linear.apply(point) - self.v) / self.step
        reached = self.step * (float(np.linalg.norm(gradient)) + self.rounding(point)) / self.smallest
        return _State(x, gradient, np.array([reached]))

    def is_settled(self, state: _State) -> Bools:
        return np.zeros(1, dtype=bool)

    def direction(self, state: _State) -> Array:
        x = state.x[0]

        def product(search: Array) -> Array:
            bent = self.f.hessian_product(x, search[0])[0]
            return np.asarray(bent + self.linear.adjoint(self.linear.apply(search[0])) / self.step)[None]

        right = -state.gradient[None]
        return conjugate_gradients(product, right, accuracy=FORCING, most=2 * right.size)

    def path(self, state: _State, move: Array) -> LinePath:
        x, image = state.x[0], self.linear.apply(move[0])
        scores, along = self.f.linear_predictor(x), self.f.linear_predictor(move[0])
        fit, before = self.linear.apply(x) - self.v, self.value(x)
        bend, stretch = float(fit @ image), float(image @ image)

        def slope(length: float) -> float:
            pulled = float(np.sum(self.f.slopes(scores + length * along) * along))
            return self.scale * pulled + (bend + length * stretch) / self.step

        def at(lengths: Array) -> tuple[Array, Array]:
            (length,) = lengths
            return np.array([slope(length)]), np.array([self.value(x + length * move[0]) - before])

        slack = ROUNDING * (abs(before) + float(self.v @ self.v) / self.step)
        return LinePath(start=np.array([slope(0.0)]), slack=np.array([slack]), at=at)

    def take(self, few: IntArray) -> tuple[_Objective, IntArray]:
        return self, few

    def value(self, x: Array) -> float:
        fit = self.linear.apply(x) - self.v
        return float(self.f.value(x)[0] + fit @ fit / (2 * self.step))

    def rounding(self, x: Array) -> float:
        """What rounding may hide in the gradient at x."""
        slopes, length = self.f.slopes(self.f.linear_predictor(x)), float(np.linalg.norm(x))
        sizes = np.abs(slopes) if slopes.ndim == 1 else np.linalg.norm(slopes, axis=1)
        norms, largest = np.sqrt(self.f.squared_norms), self.linear.largest
        bend = self.f.problem.loss.curvature_bound
        pulled = self.scale * float(np.sum(norms * (sizes + bend * norms * length)))
        fitted = largest * (largest * length + float(np.linalg.norm(self.v))) / self.step
        return ROUNDING * (pulled + fitted) * float(np.sqrt(max(self.linear.rows, self.linear.columns)))
