"""What a regularizer is: a convex function of the model with a known prox."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from consenso.arrays import Array
from consenso.errors import PreconditionError


@runtime_checkable
class Regularizer(Protocol):
    """A convex function r of a vector, along the last axis of an array; the axes before it are a batch."""

    @property
    def strong_convexity(self) -> float:
        """The largest m for which r - m/2 |x|^2 is convex, as far as is known."""
        return 0.0

    @property
    def is_constraint(self) -> bool:
        """Whether r is infinite somewhere."""
        return False

    def value(self, x: Array) -> Array:
        """The values r(x), without the last axis; infinite outside a constraint."""
        ...

    def prox(self, v: Array, step: float) -> Array:
        """The minimisers of step * r(x) + |x - v|^2 / 2, shaped like v; step 0 of a constraint still projects."""
        ...

    def subgradient(self, x: Array) -> Array:
        """A subgradient of r at x, shaped like x, zero at a kink; a PreconditionError for a constraint."""
        ...


class ConvexSet(Regularizer, Protocol):
    """A constraint: zero inside, infinite outside. It has normal cones, not slopes."""

    @property
    def is_constraint(self) -> bool:
        return True

    def subgradient(self, x: Array) -> Array:
        raise PreconditionError(
            f"{self!r} is a constraint and has no subgradient outside itself; use its prox, "
            "or an algorithm that takes a prox of the regularizer."
        )
