"""What a law of noise is: everything that the rest of the package asks of one.

Releasers draw from it, guarantees and cards ask for its event, hubs for its tail (a larger number is refused), and
audits for its density.
"""
# ruff: noqa: A002 - a round is called `round` here as everywhere.

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.privacy.events import Event, Nothing, Unbounded
from consenso.privacy.noise.patterns import Constant, Geometric, PerRound, Polynomial, Schedule, check_positive
from consenso.privacy.samplers import Key, Sampler

# A sensitivity, or one for each party; scales have the shape of their sensitivities.
Size = TypeVar("Size", float, Array, "Array | float")


class Noise(ABC):
    """A law of noise. A kind is a frozen dataclass; studies call it by its `alias`."""

    #: The norm in which a value must be bounded to be protected; a bound in the 1-norm is one in the 2-norm too.
    norm: ClassVar[Literal[1, 2]] = 2
    #: Whether one release is differentially private with delta = 0.
    is_pure: ClassVar[bool] = False

    @property
    @abstractmethod
    def is_constant(self) -> bool:
        """Whether every round has the same multiplier."""

    @abstractmethod
    def scale(self, sensitivity: Size, round: int) -> Size:
        """The scale in a round, of the sensitivity's shape."""

    @abstractmethod
    def sample(self, values: Array, sensitivity: Size, round: int, key: Key, sampler: Sampler) -> Array:
        """Values (parties, dim) plus noise. A law that the sampler does not draw is made from `sampler.uniform`."""

    @abstractmethod
    def event(self, noise_sensitivity: float, seen_sensitivity: float, round: int, sampler: Sampler, dim: int) -> Event:
        """What a unit went through that moves the value by `seen_sensitivity`; the noise is scaled with the other."""

    def split(self, count: int) -> Noise:
        """The share of one of `count` parties whose sum has this noise; refused where shares do not add up to it."""
        check_count(f"{type(self).__name__}.split", "count", count)
        if count > 1:
            raise PreconditionError(
                f"{type(self).__name__}.split({count}): shares of this law do not add up to it; use GaussianNoise "
                "under a secure sum."
            )
        return self

    @abstractmethod
    def tail(self, dim: int) -> float:
        """How many scales no entry of `dim` numbers ever exceeds (probability below 1e-20)."""

    # What an attack needs of noise of scale 1, or of a scale for each row. Nothing of it is released.

    @abstractmethod
    def log_density(self, gap: Array, scale: Array) -> Array:
        """Log density at `gap` (rows, dim), with a scale for each row, up to the law's own constant."""

    @abstractmethod
    def variance(self, dim: int) -> float:
        """Variance of one of `dim` coordinates."""

    @abstractmethod
    def simulate(self, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        """Draws (rows, dim)."""

    @abstractmethod
    def event_of_gap(self, gap: Array) -> Event:
        """Two worlds that differ by exactly `gap` (dim,), which is not zero."""


@dataclass(frozen=True, kw_only=True)
class ScaledNoise(Noise):
    """A law whose scale is a multiple of the sensitivity, the same one or one for each round."""

    multiplier: float | Schedule

    def __post_init__(self) -> None:
        if not isinstance(self.multiplier, Constant | Geometric | Polynomial | PerRound):
            check_positive(type(self).__name__, "multiplier", self.multiplier)

    @property
    def is_constant(self) -> bool:
        return isinstance(self.multiplier, float | int | Constant)

    def scale(self, sensitivity: Size, round: int) -> Size:
        return compute_scale(type(self).__name__, self.multiplier, sensitivity, round)


def compute_scale(name: str, multiplier: float | Schedule, sensitivity: Size, round: int, over: float = 1.0) -> Size:
    """The one place where a scale is computed, for the sample and for the event."""
    # Most are one number, of which NumPy takes ten times as long to say the same.
    if not (
        0.0 <= sensitivity < math.inf
        if isinstance(sensitivity, float)
        else np.isfinite(sensitivity).all() and np.greater_equal(sensitivity, 0.0).all()
    ):
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


def trivial_event(seen_sensitivity: float, scale: float) -> Event | None:
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


def widen(sensitivity: float, widening: float) -> float:
    """Both worlds are rounded; the sum is rounded up."""
    return math.nextafter(sensitivity + 2.0 * widening, math.inf) if widening else float(sensitivity)


def check_count(name: str, parameter: str, count: int) -> None:
    """Refuse what is not a number of parties."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"{name}({parameter}={count!r}): a whole number of at least 1 is needed; give the parties.")
