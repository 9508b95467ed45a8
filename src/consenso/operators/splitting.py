"""The Douglas-Rachford operator of Lions and Mercier, and the functions on which it is ADMM.

    R(u) = u + 2 relaxation (prox_{step f}(2 prox_{step g}(u) - u) - prox_{step g}(u))

is (1 - relaxation) I + relaxation (2 prox_f - I)(2 prox_g - I): averaged with the relaxation. Its fixed points u have
prox_g(u) = argmin f + g. For min f(x) + g(z) subject to A x + B z = c, ADMM is this operator for two infimal
post-compositions (Gabay 1983; Giselsson and Boyd 2017):

    p1(w) = inf { f(x) : A x = w + c }       prox_{step p1}(v) = A x - c,   x = argmin f(x) + |A x - c - v|^2 / (2 step)
    p2(w) = inf { g(z) : -B z = w }          prox_{step p2}(v) = -B z,      z = argmin g(z) + |B z + v|^2 / (2 step)

One unit moves A x by at most step gap / w_A, w_A the smallest singular value of A (docs/privacy.md#general-splitting):
the two optimality conditions give |A d|^2 / step <= gap |d| <= gap |A d| / w_A. No other norm of A enters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.operators.contract import Proximable, check_gap, check_step
from consenso.operators.matrices import LinearMap
from consenso.operators.steps import contraction_of_reflection, prox_sensitivity


@dataclass(frozen=True, kw_only=True, eq=False)
class DouglasRachford:
    """The operator of two proximable functions, of which only `first` sees data."""

    first: Proximable
    second: Proximable
    step: float
    relaxation: float = 0.5
    first_smoothness: float = np.inf
    second_smoothness: float = np.inf
    gradient_gap: float = 0.0

    def __post_init__(self) -> None:
        check_step(self, self.step)
        check_gap(self, self.gradient_gap)
        if not 0 < self.relaxation <= 1:
            raise InputError(f"DouglasRachford(relaxation={self.relaxation}): a relaxation lies in (0, 1]; try 0.5.")

    @property
    def lipschitz(self) -> float:
        """The identity's share and that of both reflections."""
        one = contraction_of_reflection(self.step, self.first_smoothness, self.first.strong_convexity)
        other = contraction_of_reflection(self.step, self.second_smoothness, self.second.strong_convexity)
        return 1 - self.relaxation + self.relaxation * one * other

    @property
    def averagedness(self) -> float:
        """The relaxation."""
        return self.relaxation

    @property
    def sensitivity(self) -> float:
        """Twice the relaxation times that of the first prox."""
        return 2 * self.relaxation * prox_sensitivity(self.step, self.gradient_gap, self.first.strong_convexity)

    def __call__(self, u: Array) -> Array:
        """One iteration."""
        shadow = self.solution(u)
        moved: Array = u + 2 * self.relaxation * (self.first.prox(2 * shadow - u, self.step) - shadow)
        return moved

    def solution(self, u: Array) -> Array:
        """prox_{step g}(u): at a fixed point, the minimiser of both functions together."""
        return self.second.prox(u, self.step)

    def norm(self, u: Array) -> float:
        """The 2-norm."""
        return float(np.linalg.norm(u))


@dataclass(frozen=True, kw_only=True, eq=False)
class Image:
    """p(w) = inf { f(x) : A x = w + offset }, for an injective A."""

    function: Proximable
    map: LinearMap
    offset: Array | float = 0.0

    def __post_init__(self) -> None:
        require_injective(self.map, "Image")

    @property
    def strong_convexity(self) -> float:
        """That of f over the largest squared singular value."""
        return self.function.strong_convexity / self.map.largest**2

    def smoothness(self, smoothness: float) -> float:
        """The smoothness of p when f has this one; infinite unless A is also surjective, because p is then infinite."""
        width = self.map.smallest_transposed
        return smoothness / width**2 if width > 0 else np.inf

    def gradient_gap(self, gap: float) -> float:
        """How far the gradient of p moves, as its prox shows it, when that of f moves by at most `gap`."""
        return gap / self.map.smallest

    def prox(self, v: Array, step: float) -> Array:
        """A x - offset."""
        moved: Array = self.map.apply(self.argmin(v, step)) - self.offset
        return moved

    def argmin(self, v: Array, step: float) -> Array:
        """The x behind the prox."""
        return self.map.argmin(self.function, v + self.offset, step)


def require_injective(linear: LinearMap, needed_by: str) -> float:
    """The smallest singular value, or a PreconditionError that says who needs it to be positive."""
    if linear.smallest == 0.0:
        raise PreconditionError(
            f"{needed_by}: the matrix of shape {linear.rows} x {linear.columns} must have full column rank, because "
            "otherwise one unit moves A x without bound; add rows, for instance an identity, or split differently."
        )
    return linear.smallest


def lions_mercier(
    first: Proximable,
    second: Proximable,
    *,
    left: LinearMap,
    right: LinearMap,
    constant: Array | float = 0.0,
    step: float,
    relaxation: float = 0.5,
    gradient_gap: float = 0.0,
    first_smoothness: float = np.inf,
    second_smoothness: float = np.inf,
) -> DouglasRachford:
    """ADMM for min first(x) + second(z) subject to left x + right z = constant, as one operator on u (rows,)."""
    one = Image(function=first, map=left, offset=constant)
    other = Image(function=second, map=right.opposite)
    return DouglasRachford(
        first=one,
        second=other,
        step=step,
        relaxation=relaxation,
        first_smoothness=one.smoothness(first_smoothness),
        second_smoothness=other.smoothness(second_smoothness),
        gradient_gap=one.gradient_gap(gradient_gap),
    )
