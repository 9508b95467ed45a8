"""How much noise, how many rounds, how large a sample: the most that a target allows, never more.

Each function takes `build`, which makes the event for a value, and searches for the value at which the event's cost
meets the target. Costs must be monotone in the value. What is returned was itself accounted and found within the
target, to a relative 1e-6 of the best value (the tolerance of the search, not of the guarantee).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from consenso.errors import InputError
from consenso.privacy.accountants import conversion, epsilon, gdp, pure, renyi, zcdp
from consenso.privacy.accountants.kinds.objective import floor
from consenso.privacy.accountants.parts import is_unbounded, parts
from consenso.privacy.events import Event, Mixture, ObjectivePerturbation, Unbounded

# How far multipliers and rates are searched, and rounds.
_LEAST, _MOST = 1e-9, 1e12
_TOLERANCE = 1e-6
# The tight cost can be slow: a cheaper one that is never smaller brings the search this close first.
_ROUGH_TOLERANCE = 0.02
_NO_NOISE = "a part of it does not depend on what is calibrated"


class Target(Protocol):
    """Something that an event may cost at most."""

    @property
    def limit(self) -> float:
        """The largest cost that is allowed."""
        ...

    def cost(self, event: Event) -> float:
        """What the event costs in this currency; infinite when it has no such cost."""
        ...

    def rough(self, event: Event) -> float:
        """A cheap cost that is never smaller."""
        return self.cost(event)


@dataclass(frozen=True, kw_only=True)
class EpsilonDelta(Target):
    """(epsilon, delta)-differential privacy, by the tightest known curve."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _require_positive("EpsilonDelta", "epsilon", self.epsilon)
        if not 0 < self.delta < 1:
            raise InputError(
                f"EpsilonDelta(delta={self.delta}): a delta lies in (0, 1); use PureEpsilon(epsilon=...) for none."
            )

    @property
    def limit(self) -> float:
        return self.epsilon

    def cost(self, event: Event) -> float:
        """Epsilon at the stated delta."""
        return epsilon(event, self.delta)

    def rough(self, event: Event) -> float:
        """Epsilon by the Renyi curve."""
        if gdp(event) is not None or not parts(event) or is_unbounded(event):
            return self.cost(event)
        return conversion.to_epsilon(lambda orders: renyi.curve(event, orders), self.delta).value


@dataclass(frozen=True, kw_only=True)
class Rho(Target):
    """rho-zCDP."""

    rho: float

    def __post_init__(self) -> None:
        _require_positive("Rho", "rho", self.rho)

    @property
    def limit(self) -> float:
        return self.rho

    def cost(self, event: Event) -> float:
        """The smallest known rho."""
        return _require_known(zcdp(event))


@dataclass(frozen=True, kw_only=True)
class PureEpsilon(Target):
    """epsilon-differential privacy, delta = 0."""

    epsilon: float

    def __post_init__(self) -> None:
        _require_positive("PureEpsilon", "epsilon", self.epsilon)

    @property
    def limit(self) -> float:
        return self.epsilon

    def cost(self, event: Event) -> float:
        """The sum of pure epsilons."""
        return _require_known(pure(event))


@dataclass(frozen=True, kw_only=True)
class Mu(Target):
    """mu-GDP."""

    mu: float

    def __post_init__(self) -> None:
        _require_positive("Mu", "mu", self.mu)

    @property
    def limit(self) -> float:
        return self.mu

    def cost(self, event: Event) -> float:
        """The exact mu of Gaussian releases."""
        return _require_known(gdp(event))


def calibrate_noise(build: Callable[[float], Event], target: Target) -> float:
    """The smallest noise multiplier whose event meets the target."""
    # Searched as its inverse, so that here as elsewhere more costs more.
    found = _find_most(lambda inverse: build(1 / inverse), target, 1.0, 1 / _MOST, 1 / _LEAST)
    if found is None:
        raise _unreachable("calibrate_noise", target, build(_MOST), f"a noise multiplier of {_MOST:g}", _NO_NOISE)
    if found >= 1 / _LEAST:
        raise InputError(
            f"calibrate_noise(build=...): {target} is met without noise, so the event does not depend on the "
            "multiplier as it must; build it with std = multiplier * sensitivity."
        )
    return 1 / found


@dataclass(frozen=True)
class _Point:
    """A value and what its event costs."""

    value: float
    cost: float


def _find_most(
    build: Callable[[float], Event], target: Target, start: float, least: float, largest: float
) -> float | None:
    """The largest value in [least, largest] whose event meets a target, for costs that grow with the value.

    None when not even the least meets it.
    """
    limit = target.limit

    def rough_at(value: float) -> _Point:
        return _Point(value, target.rough(build(value)))

    def tight_at(value: float) -> _Point:
        return _Point(value, target.cost(build(value)))

    # What meets the target by the rough cost meets it by the tight one, which is then evaluated a few times only.
    rough = _bracket(rough_at, limit, start, 4.0, least, largest)
    near = start
    if rough is not None:
        low, high = rough
        if high is None:
            return low.value
        near = _narrow(rough_at, limit, low, high, _ROUGH_TOLERANCE).value
    tight = _bracket(tight_at, limit, near, 1.05 if rough else 4.0, least, largest)
    if tight is None:
        return None
    low, high = tight
    return low.value if high is None else _narrow(tight_at, limit, low, high, _TOLERANCE).value


def _bracket(
    at: Callable[[float], _Point], limit: float, start: float, factor: float, least: float, largest: float
) -> tuple[_Point, _Point | None] | None:
    """A value that meets the limit and one that does not (None: all do); None when no value meets it."""
    here = at(min(max(start, least), largest))
    while here.cost <= limit:  # NaN does not
        if here.value >= largest:
            return here, None
        further = at(min(here.value * factor, largest))
        if not further.cost <= limit:
            return here, further
        here, factor = further, factor**1.5
    while here.value > least:
        nearer = at(max(here.value / factor, least))
        if nearer.cost <= limit:
            return nearer, here
        here, factor = nearer, factor**1.5
    return None


def _narrow(at: Callable[[float], _Point], limit: float, low: _Point, high: _Point, tolerance: float) -> _Point:
    """The end of the bracket that meets the limit, once the bracket or what is unspent is within tolerance."""
    same_side, last = 0, None
    while high.value > low.value * (1 + tolerance) and low.cost < limit * (1 - tolerance):
        middle = at(_guess(limit, low, high, tolerance, halve=same_side >= 2))
        meets = middle.cost <= limit
        same_side, last = (same_side + 1, meets) if meets == last else (1, meets)
        low, high = (middle, high) if meets else (low, middle)
    return low


def _guess(limit: float, low: _Point, high: _Point, tolerance: float, *, halve: bool) -> float:
    """Where the cost would meet the limit if its logarithm were linear in that of the value."""
    share = 0.5
    if not halve and 0 < low.cost < high.cost < math.inf:
        # Aim a little below the limit, so that the guess is likely to be one that can be returned.
        aim = limit * (1 - tolerance / 2)
        share = math.log(aim / low.cost) / math.log(high.cost / low.cost)
    return low.value * float((high.value / low.value) ** min(max(share, 1e-6), 1 - 1e-6))


def _require_positive(kind: str, name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{kind}({name}={value}): a target is positive and finite; give such a number.")


def _require_known(cost: float | None) -> float:
    return math.inf if cost is None else cost


def _unreachable(function: str, target: Target, event: Event, least: str, otherwise: str) -> InputError:
    """Why a target cannot be met, from the event that costs least."""
    return InputError(
        f"{function}(target={target}): with {least} the event still costs {target.cost(event):.6g}, more than "
        f"{target.limit:.6g}, because {_obstacle(event, target, otherwise)}; raise the target or release less."
    )


def _obstacle(event: Event, target: Target, otherwise: str) -> str:
    for part, _ in parts(event):
        if isinstance(part, Unbounded):
            return f"a value leaves without a bound ({part.reason})"
        if isinstance(part, ObjectivePerturbation) and floor(part) > target.limit:
            return (
                f"objective perturbation costs at least {floor(part):.6g} with any noise "
                f"(smoothness share {part.smoothness_share:g}; more regularization lowers it)"
            )
        if isinstance(part, Mixture) and is_unbounded(part):
            return "a value may leave without a bound"
    if math.isinf(target.cost(event)):
        return f"the event has no finite cost of the kind {type(target).__name__}"
    return otherwise
