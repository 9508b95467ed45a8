"""Sums of regularizers, where the prox of the sum is known.

With p = prox_{t r}(v) characterised by v - p in t * dr(p), the rules are:

1. *A square goes with anything.* step * (r + m/2 |x|^2) + |x - v|^2 / 2 is, up to a constant and with s = 1 + step * m,
   s times (step/s) * r + |x - v/s|^2 / 2: take the prox of r at v/s with step/s.
2. *Absolute values and a box.* Both act coordinate by coordinate, and a convex function of one variable has its minimum
   over an interval at the projection of its minimum: soft threshold, then clip.
3. *Groups after a homogeneous h* (absolute values, a box that is a cone, both). For such h, dh(a x) = dh(x) for a > 0
   and dh(x) is contained in dh(0). Let p = prox_{t h}(v) and shrink a group of it to a p, so that p - a p is in the
   multiple of d|.| at a p, also for a = 0, when |p| is at most the threshold. And v - p is in t dh(p), which is
   t dh(a p) for a > 0 and lies in t dh(0) for a = 0. The two inclusions add up.
4. *A ball after a homogeneous h* (those of 3, groups, and their sums). Let a p be the projection of p = prox_{t h}(v).
   The radius is positive, so a > 0: v - p is in t dh(a p), and p - a p is normal to the ball at a p.
5. *A simplex* makes absolute values constant, and boxes and balls that contain it redundant.

Nothing else is accepted, since a composition of proxes is in general not the prox of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.regularizers.checks import check_step
from consenso.regularizers.constraints import Ball, Box, Simplex
from consenso.regularizers.groups import GroupL1
from consenso.regularizers.norms import L1, L2, ElasticNet, NoPenalty
from consenso.regularizers.regularizer import Regularizer


@dataclass(frozen=True, kw_only=True)
class Sum(Regularizer):
    """The sum of regularizers whose proxes compose; a PreconditionError names a pair that does not."""

    parts: tuple[Regularizer, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not self.parts:
            raise InputError(
                f"Sum(parts={self.parts!r}): parts is a tuple of at least one regularizer; use NoPenalty() for none."
            )
        _ = self._chain

    @cached_property
    def _square(self) -> float:
        return sum(part.strength for part in _flatten(self.parts) if isinstance(part, L2))

    @cached_property
    def _chain(self) -> tuple[Regularizer, ...]:
        return _merge([part for part in _flatten(self.parts) if not isinstance(part, L2)])

    @property
    def strong_convexity(self) -> float:
        """The sum of the parts'."""
        return sum(part.strong_convexity for part in self.parts)

    @property
    def is_constraint(self) -> bool:
        """Whether any part is."""
        return any(part.is_constraint for part in self.parts)

    def value(self, x: Array) -> Array:
        """The sum of the parts' values."""
        values: Array = np.sum([part.value(x) for part in self.parts], axis=0)
        return values

    def prox(self, v: Array, step: float) -> Array:
        """The square first, then the proxes of the other parts, one after the other."""
        check_step(self, step)
        scale = 1.0 + step * self._square
        x: Array = np.asarray(v, dtype=np.float64) / scale
        for part in self._chain:
            x = part.prox(x, step / scale)
        return x

    def subgradient(self, x: Array) -> Array:
        """The sum of the parts' subgradients, refused when a part is a constraint."""
        slopes: Array = np.sum([part.subgradient(x) for part in self.parts], axis=0)
        return slopes


def _flatten(parts: Sequence[Regularizer]) -> list[Regularizer]:
    plain: list[Regularizer] = []
    for part in parts:
        if isinstance(part, Sum):
            plain += _flatten(part.parts)
        elif isinstance(part, ElasticNet):
            plain += [L1(strength=part.l1), L2(strength=part.l2)]
        elif not isinstance(part, NoPenalty):
            plain.append(part)
    return plain


def _merge(parts: Sequence[Regularizer]) -> tuple[Regularizer, ...]:
    """Parts without squares as proxes to apply one after the other: L1, box, groups, ball, or a simplex alone."""
    if len(parts) <= 1:
        return tuple(parts)
    for part in parts:
        if not isinstance(part, L1 | Box | GroupL1 | Ball | Simplex):
            raise _no_rule(part, next((other for other in parts if other is not part), part))
    simplexes = [part for part in parts if isinstance(part, Simplex)]
    if simplexes:
        simplex = simplexes[0]
        for part in parts:
            if not _holds(part, simplex):
                raise _no_rule(simplex, part)
        return (simplex,)
    thresholds = [part for part in parts if isinstance(part, L1)]
    boxes = [part for part in parts if isinstance(part, Box)]
    groups = [part for part in parts if isinstance(part, GroupL1)]
    balls = [part for part in parts if isinstance(part, Ball)]
    for other in groups[1:]:
        if other.groups != groups[0].groups:
            raise _no_rule(groups[0], other)
    if groups or balls:
        for box in boxes:
            if not _is_cone(box):
                raise _no_rule(box, (groups or balls)[0])
    order: list[Regularizer] = []
    if thresholds:
        order.append(L1(strength=sum(part.strength for part in thresholds)))
    if boxes:
        order.append(Box(low=max(part.low for part in boxes), high=min(part.high for part in boxes)))
    if groups:
        order.append(GroupL1(strength=sum(part.strength for part in groups), groups=groups[0].groups))
    if balls:
        order.append(Ball(radius=min(part.radius for part in balls)))
    return tuple(order)


def _is_cone(box: Box) -> bool:
    return box.low in (-math.inf, 0.0) and box.high in (0.0, math.inf)


def _holds(part: Regularizer, simplex: Simplex) -> bool:
    """Whether a part is constant on a simplex."""
    match part:
        case L1():
            return True
        case Simplex(total=total):
            return total == simplex.total
        case Box(low=low, high=high):
            return low <= 0.0 and high >= simplex.total
        case Ball(radius=radius):
            return radius >= simplex.total
    return False


def _no_rule(one: Regularizer, other: Regularizer) -> PreconditionError:
    return PreconditionError(
        f"Sum: the prox of {one!r} plus {other!r} has no known rule; drop one of them, or use an algorithm that takes "
        "one prox for each."
    )
