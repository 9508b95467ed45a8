"""Noise: one object draws the sample and states the event, from one scale.

The scale is a multiple of a sensitivity, never a number of its own: with an adaptive bound the cost then depends on
the multiple alone and is known before the run (docs/privacy.md section 19). The multiple may change from round to
round by a public schedule. Rounds are counted from 0.
"""
# ruff: noqa: A002 - a round is called `round` here as everywhere.

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.privacy.events import Event, GammaNorm, Gaussian, Laplace, Nothing, Unbounded
from consenso.privacy.samplers import Key, Sampler
from consenso.privacy.samplers.contract import check_draw

# A sensitivity, or one for each party; scales have the shape of their sensitivities.
Size = TypeVar("Size", float, Array, "Array | float")


@dataclass(frozen=True, kw_only=True)
class Constant:
    """The same multiplier in every round."""

    value: float

    def __post_init__(self) -> None:
        _check_positive("Constant", "value", self.value)

    def at(self, round: int) -> float:
        """The multiplier of a round."""
        return self.value


@dataclass(frozen=True, kw_only=True)
class Geometric:
    """The *variance* is multiplied by `ratio` from round to round: first * ratio^(round/2)."""

    first: float
    ratio: float

    def __post_init__(self) -> None:
        _check_positive("Geometric", "first", self.first)
        _check_positive("Geometric", "ratio", self.ratio)

    def at(self, round: int) -> float:
        """The multiplier of a round."""
        return float(self.first * self.ratio ** (round / 2.0))


@dataclass(frozen=True, kw_only=True)
class Polynomial:
    """first * (round + 1)^power; a negative power lowers the noise as the rounds go on, -1 like 1/k."""

    first: float
    power: float

    def __post_init__(self) -> None:
        _check_positive("Polynomial", "first", self.first)
        if not math.isfinite(self.power):
            raise InputError(f"Polynomial(power={self.power!r}): a finite exponent is needed; -1 falls like 1/k.")

    def at(self, round: int) -> float:
        """The multiplier of a round."""
        return float(self.first * (round + 1.0) ** self.power)


@dataclass(frozen=True, kw_only=True)
class PerRound:
    """One multiplier for each round, written out."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        for value in self.values:
            _check_positive("Table", "values", value)

    def at(self, round: int) -> float:
        """The multiplier of a round."""
        if not 0 <= round < len(self.values):
            raise InputError(
                f"Table(values=...): there are multipliers for {len(self.values)} rounds, counted from 0, and round "
                f"{round} was asked for; give one for every round."
            )
        return self.values[round]


Schedule: TypeAlias = Constant | Geometric | Polynomial | PerRound


@dataclass(frozen=True, kw_only=True)
class GaussianNoise:
    """N(0, std^2) with std = multiplier * sensitivity in the 2-norm, over sqrt(shares) for one share of a sum."""

    alias = "gaussian"

    multiplier: float | Schedule
    shares: int = 1

    def __post_init__(self) -> None:
        _check_multiplier("GaussianNoise", self.multiplier)
        _check_count("GaussianNoise", "shares", self.shares)

    def scale(self, sensitivity: Size, round: int) -> Size:
        return _scale("GaussianNoise", self.multiplier, sensitivity, round, math.sqrt(self.shares))

    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        """Values (parties, dim) plus noise."""
        return sampler.gaussian(values, self.scale(sensitivity, round), key, sensitivity=sensitivity)

    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        """What a unit of 2-norm sensitivity `seen_sensitivity` went through, the noise being scaled with the other."""
        std = float(self.scale(noise_sensitivity, round))
        widening = sampler.widening(std, noise_sensitivity, dim, 2)
        excess = sampler.excess(std, noise_sensitivity, dim, "gaussian")
        return _trivial(seen_sensitivity, std) or Gaussian(std, _widen(seen_sensitivity, widening), excess)

    def split(self, count: int) -> GaussianNoise:
        """The share of one of `count` parties whose sum has this noise (docs/privacy.md section 17)."""
        _check_count("GaussianNoise.split", "count", count)
        return replace(self, shares=self.shares * count)


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise:
    """Laplace(scale) in every coordinate, scale = multiplier * sensitivity in the 1-norm: (1/multiplier)-DP."""

    alias = "laplace"

    multiplier: float | Schedule

    def __post_init__(self) -> None:
        _check_multiplier("LaplaceNoise", self.multiplier)

    @classmethod
    def from_epsilon(cls, epsilon: float) -> LaplaceNoise:
        """Noise that is epsilon-DP at every release, for the unit and adjacency of the sensitivity."""
        return cls(multiplier=_inverse("LaplaceNoise", epsilon))

    def scale(self, sensitivity: Size, round: int) -> Size:
        return _scale("LaplaceNoise", self.multiplier, sensitivity, round)

    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        """Values (parties, dim) plus noise."""
        return sampler.laplace(values, self.scale(sensitivity, round), key, sensitivity=sensitivity)

    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        """What a unit of 1-norm sensitivity `seen_sensitivity` went through, the noise being scaled with the other."""
        scale = float(self.scale(noise_sensitivity, round))
        widening = sampler.widening(scale, noise_sensitivity, dim, 1)
        excess = sampler.excess(scale, noise_sensitivity, dim, "laplace")
        return _trivial(seen_sensitivity, scale) or Laplace(scale, _widen(seen_sensitivity, widening), excess)

    def split(self, count: int) -> LaplaceNoise:
        """Refused for more than one party: a sum of Laplace variables is not Laplace."""
        _check_undivided("LaplaceNoise", count)
        return self


@dataclass(frozen=True, kw_only=True)
class GammaNormNoise:
    """Density proportional to exp(-|x|_2/scale), scale = multiplier * sensitivity in the 2-norm: (1/multiplier)-DP."""

    alias = "gamma-norm"

    multiplier: float | Schedule

    def __post_init__(self) -> None:
        _check_multiplier("GammaNormNoise", self.multiplier)

    @classmethod
    def from_epsilon(cls, epsilon: float) -> GammaNormNoise:
        """Noise that is epsilon-DP at every release, for the unit and adjacency of the sensitivity."""
        return cls(multiplier=_inverse("GammaNormNoise", epsilon))

    def scale(self, sensitivity: Size, round: int) -> Size:
        return _scale("GammaNormNoise", self.multiplier, sensitivity, round)

    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        """Values (parties, dim) plus noise."""
        return sampler.gamma_norm(values, self.scale(sensitivity, round), key, sensitivity=sensitivity)

    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        """What a unit of 2-norm sensitivity `seen_sensitivity` went through, the noise being scaled with the other."""
        scale = float(self.scale(noise_sensitivity, round))
        # A sampler without this noise refuses here; a pure guarantee would have no room for an excess.
        sampler.excess(scale, noise_sensitivity, dim, "gamma-norm")
        return _trivial(seen_sensitivity, scale) or GammaNorm(scale, float(seen_sensitivity), int(dim))

    def split(self, count: int) -> GammaNormNoise:
        """Refused for more than one party: the law is not that of a sum."""
        _check_undivided("GammaNormNoise", count)
        return self


@dataclass(frozen=True, kw_only=True)
class NoNoise:
    """The value itself: no guarantee against whoever sees it, unless it does not depend on the unit."""

    alias = "none"

    def scale(self, sensitivity: Size, round: int) -> Size:
        return sensitivity * 0.0 if isinstance(sensitivity, np.ndarray) else 0.0

    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        """A copy of the values."""
        return check_draw(values, 0.0, key, "scale")[0].copy()

    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        """Unbounded, or nothing for a value that does not depend on the unit."""
        return Nothing() if seen_sensitivity == 0.0 else Unbounded("released without noise")

    def split(self, count: int) -> NoNoise:
        """No noise is its own share."""
        _check_count("NoNoise.split", "count", count)
        return self


Noise: TypeAlias = GaussianNoise | LaplaceNoise | GammaNormNoise | NoNoise


def is_constant(noise: Noise) -> bool:
    """Whether every round has the same multiplier."""
    return isinstance(noise, NoNoise) or isinstance(noise.multiplier, float | int | Constant)


def _scale(name: str, multiplier: float | Schedule, sensitivity: Size, round: int, over: float = 1.0) -> Size:
    """The one place where a scale is computed, for the sample and for the event."""
    if not (np.isfinite(sensitivity).all() and np.greater_equal(sensitivity, 0.0).all()):
        raise PreconditionError(
            f"{name}: noise is scaled with a finite sensitivity of at least 0, and {sensitivity!r} was given; "
            "clip the value or use a Lipschitz loss."
        )
    factor = (multiplier if isinstance(multiplier, float | int) else multiplier.at(round)) / over
    if not 0.0 < factor < math.inf:
        raise PreconditionError(
            f"{name}(multiplier={multiplier!r}): the multiplier of round {round} is {factor!r} and must be a positive "
            "finite number; use a schedule that stays in range."
        )
    return sensitivity * factor


def _trivial(seen_sensitivity: float, scale: float) -> Event | None:
    """The event where no noise law is needed to state it."""
    if math.isnan(seen_sensitivity) or seen_sensitivity < 0.0:
        raise InputError(
            f"seen_sensitivity={seen_sensitivity!r}: a number of at least 0 is needed; inf says unbounded."
        )
    if seen_sensitivity == 0.0:
        return Nothing()
    if math.isinf(seen_sensitivity):
        return Unbounded("the released value has no bounded sensitivity for this unit and adjacency")
    return Unbounded("released without noise") if scale == 0.0 else None


def _widen(sensitivity: float, widening: float) -> float:
    """Both worlds are rounded; the sum is rounded up."""
    return math.nextafter(sensitivity + 2.0 * widening, math.inf) if widening else float(sensitivity)


def _inverse(name: str, epsilon: float) -> float:
    _check_positive(f"{name}.from_epsilon", "epsilon", epsilon)
    return 1.0 / epsilon


def _check_multiplier(name: str, multiplier: float | Schedule) -> None:
    if not isinstance(multiplier, Constant | Geometric | Polynomial | PerRound):
        _check_positive(name, "multiplier", multiplier)


def _check_positive(name: str, parameter: str, value: float) -> None:
    number = isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
    if not number or not 0.0 < value < math.inf:
        raise InputError(
            f"{name}({parameter}={value!r}): a positive finite number is needed; use NoNoise() to release a value bare."
        )


def _check_count(name: str, parameter: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"{name}({parameter}={count!r}): a whole number of at least 1 is needed; give the parties.")


def _check_undivided(name: str, count: int) -> None:
    _check_count(f"{name}.split", "count", count)
    if count > 1:
        raise PreconditionError(
            f"{name}.split({count}): shares of this law do not add up to it; use GaussianNoise under a secure sum."
        )
