"""What an averaged operator is: a map with the constants that convergence and privacy rest on."""

from __future__ import annotations

from typing import Protocol

from consenso.arrays import Array
from consenso.errors import InputError


class Smooth(Protocol):
    """A convex function with a gradient; both constants are those of the norm in which the operator is declared."""

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient."""
        ...

    @property
    def strong_convexity(self) -> float:
        """The largest known m for which the function minus m/2 |x|^2 is convex."""
        ...

    def gradient(self, u: Array) -> Array:
        """The gradient at u, shaped like u."""
        ...


class Proximable(Protocol):
    """A convex function with a prox. Every regularizer is one."""

    @property
    def strong_convexity(self) -> float:
        """The largest known m for which the function minus m/2 |x|^2 is convex."""
        ...

    def prox(self, v: Array, step: float) -> Array:
        """The minimiser of step * f(x) + |x - v|^2 / 2."""
        ...


class Operator(Protocol):
    """A map R of vectors (dim,) with |R(u) - R(v)| <= lipschitz |u - v|, and |R(u) - R'(u)| <= sensitivity.

    R' is the same operator on neighbouring data, where the gradient of the private function differs by at most the
    operator's `gradient_gap` at every point; the gap is 0 for an operator that sees no data.
    """

    @property
    def lipschitz(self) -> float:
        """At most 1: non-expansive. Below 1: a contraction by this factor."""
        ...

    @property
    def averagedness(self) -> float:
        """The smallest known a in (0, 1] with R = (1 - a) I + a N for some non-expansive N."""
        ...

    @property
    def sensitivity(self) -> float:
        """How far R(u) moves between neighbouring data sets, at the same u and in the declared norm."""
        ...

    def __call__(self, u: Array) -> Array:
        """R(u)."""
        ...

    def norm(self, u: Array) -> float:
        """The norm in which all constants are declared."""
        ...


def check_step(owner: object, step: float, *, largest: float = float("inf")) -> None:
    """A step is positive, finite and at most `largest`, beyond which the operator would expand."""
    if not (0 < step < float("inf") and step <= largest):
        limit = "" if largest == float("inf") else f" and at most 2/smoothness = {largest:g}"
        raise InputError(f"{type(owner).__name__}(step={step}): a step is positive, finite{limit}; choose such a one.")


def check_gap(owner: object, gap: float) -> None:
    """A gap is zero or positive; infinite says that no bound is known."""
    if not gap >= 0:
        raise InputError(
            f"{type(owner).__name__}(gradient_gap={gap}): a gap is a number of at least 0; use 0 for a public function."
        )
