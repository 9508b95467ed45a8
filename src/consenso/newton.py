"""Newton's method, written once: several convex functions at a time, each with a step length of its own.

Local problems of a cohort, the argmin with a matrix and the exact fit are its users. They say what a direction is
(whichever linear system is small) and how a function changes along it; the steps, the search for their lengths and
when to stop are here. `consenso.kernels.newton` has full steps without a search, compiled, for many small problems.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray

STEPS, TRIALS = 60, 60
# After this many steps that neither lower a function visibly nor come closer, a point is as close as it gets.
PATIENCE = 4
# The slope at an accepted step is at most this fraction of the slope at its start, on either side of the minimum.
FLAT = 0.5

Bools: TypeAlias = NDArray[np.bool_]


class State(Protocol):
    """Points of all functions, and what is known there."""

    @property
    def x(self) -> Array:
        """The points: functions along the first axis, unless `Objectives.spread` says otherwise."""
        ...

    @property
    def residual(self) -> Array:
        """How far from its minimiser each point may be, (functions,)."""
        ...


@dataclass(frozen=True, eq=False)
class LinePath:
    """The functions h(a) along a direction, from a = 0 on, one a for each."""

    start: Array  # h'(0)
    slack: Array  # what rounding hides in a change of h
    at: Callable[[Array], tuple[Array, Array]]  # h'(a) and h(a) - h(0)
    least: float | Array = 0.0  # a slope less steep than this is not worth a step


S = TypeVar("S", bound=State)


class Objectives(Protocol[S]):
    """Convex functions that are minimised together."""

    def state(self, x: Array) -> S:
        """Everything that is needed at x, evaluated from x itself."""
        ...

    def is_settled(self, state: S) -> Bools:
        """Where a gradient is as short as rounding lets it become, (functions,)."""
        ...

    def direction(self, state: S) -> Array:
        """Newton's direction, shaped like x."""
        ...

    def path(self, state: S, move: Array) -> LinePath:
        """The functions along a direction."""
        ...

    def learn(self, lengths: Array) -> None:
        """Hear how long the steps were."""
        return

    def take(self, few: IntArray) -> tuple[Objectives[S], Any]:
        """Some of the functions, and the index of their entries in x."""
        ...

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """A number of each function, in a shape that broadcasts against x."""
        return values[:, None]


@dataclass(frozen=True, eq=False)
class Minimum:
    """The best points, how close they are known to be, (functions,), and the steps that it took."""

    x: Array
    residual: Array
    steps: int


def minimise(objectives: Objectives[S], x: Array, tolerance: float, steps: int = STEPS) -> Minimum:
    """Newton steps until every residual is within the tolerance; when half of the functions are done, others go on."""
    state = objectives.state(x)
    best, residual = state.x, state.residual
    idle = np.zeros(len(residual), dtype=np.int64)
    taken = 0
    while taken < steps:
        live = (residual > tolerance) & (idle < PATIENCE)
        if live.any():
            live &= ~objectives.is_settled(state)
        if not live.any():
            break
        if 2 * live.sum() <= live.size:
            few = np.flatnonzero(live)
            part, place = objectives.take(few)
            found = minimise(part, state.x[place], tolerance, steps - taken)
            closer = found.residual < residual[few]
            best, residual = best.copy(), residual.copy()
            best[place] = np.where(part.spread(closer), found.x, best[place])
            residual[few] = np.where(closer, found.residual, residual[few])
            return Minimum(best, residual, taken + found.steps)
        move = objectives.direction(state)
        path = objectives.path(state, move)
        live &= path.start < -path.least
        if not live.any():
            break
        lengths, lower = search_lengths(path)
        lengths = np.where(live, lengths, 0.0)
        objectives.learn(lengths)
        taken += 1
        state = objectives.state(state.x + objectives.spread(lengths) * move)
        closer = state.residual < residual
        best = np.where(objectives.spread(closer), state.x, best)
        residual = np.where(closer, state.residual, residual)
        idle = np.where(closer | lower, 0, idle + 1)
    return Minimum(best, residual, taken)


def search_lengths(path: LinePath) -> tuple[Array, Bools]:
    """Step lengths, (functions,), and whether the functions go down visibly along them.

    Approximate Wolfe conditions (Hager and Zhang 2005): |h'(a)| <= |h'(0)| / 2 and h(a) <= h(0) up to rounding, which
    can be told from slopes where values no longer differ. 0 where h does not go down at the start.
    """
    start = path.start
    low, low_slope = np.zeros_like(start), start
    high, high_slope = np.full_like(start, np.inf), np.full_like(start, np.nan)
    length, change = np.ones_like(start), np.zeros_like(start)
    searching = start < 0
    for _ in range(TRIALS):
        slope, change = path.at(length)
        above = change > path.slack
        searching = searching & ((np.abs(slope) > FLAT * np.abs(start)) | above)
        if not searching.any():
            break
        too_far = (slope > 0) | above
        high, high_slope = np.where(too_far, length, high), np.where(too_far, slope, high_slope)
        low, low_slope = np.where(too_far, low, length), np.where(too_far, low_slope, slope)
        length = np.where(searching, _between(low, low_slope, high, high_slope), length)
    # Where the search did not end, `low` is a step along which h went down all the way.
    lower = (searching & (low > 0)) | (change < -path.slack)
    return np.where(searching, low, np.where(start < 0, length, 0.0)), lower


def _between(low: Array, low_slope: Array, high: Array, high_slope: Array) -> Array:
    """Where the slope would vanish if it were linear, kept away from both ends; four times as far without an end."""
    bounded = np.isfinite(high)
    rise = high_slope - low_slope
    share = np.divide(-low_slope, rise, out=np.full_like(low, 0.5), where=bounded & (rise > 0))
    width = np.where(bounded, high - low, 0.0)
    return np.where(bounded, low + np.clip(share, 0.1, 0.9) * width, 4 * low)


def conjugate_gradients(
    product: Callable[[Array], Array],
    right: Array,
    *,
    accuracy: float,
    most: int,
    precondition: Callable[[Array], Array] | None = None,
) -> Array:
    """Solutions of positive definite systems, (functions, dim), to a relative accuracy.

    With minus a gradient on the right they are directions of descent wherever they stop.
    """
    left = right
    towards = precondition(left) if precondition else left
    solution, search, size = np.zeros_like(left), towards, dots(left, towards)
    goal = accuracy**2 * size
    for _ in range(most):
        going = size > goal
        if not going.any():
            break
        image = product(search)
        length = np.where(going, size / np.where(going, dots(search, image), 1.0), 0.0)[:, None]
        solution, left = solution + length * search, left - length * image
        towards = precondition(left) if precondition else left
        last, size = size, dots(left, towards)
        search = towards + np.where(going, size / np.where(going, last, 1.0), 0.0)[:, None] * search
    return solution


def dots(left: Array, right: Array) -> Array:
    """Inner products of the vectors of each function, (functions,)."""
    products: Array = np.einsum("ij,ij->i", left, right)
    return products
