"""How a multiplier changes from round to round: by a public rule. Rounds are counted from 0."""
# ruff: noqa: A002 - a round is called `round` here as everywhere.

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from consenso.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Constant:
    """The same multiplier in every round."""

    value: float

    def __post_init__(self) -> None:
        check_positive("Constant", "value", self.value)

    def at(self, round: int) -> float:
        """The multiplier of a round."""
        return self.value


@dataclass(frozen=True, kw_only=True)
class Geometric:
    """The *variance* is multiplied by `ratio` from round to round: first * ratio^(round/2)."""

    first: float
    ratio: float

    def __post_init__(self) -> None:
        check_positive("Geometric", "first", self.first)
        check_positive("Geometric", "ratio", self.ratio)

    def at(self, round: int) -> float:
        """The multiplier of a round."""
        return float(self.first * self.ratio ** (round / 2.0))


@dataclass(frozen=True, kw_only=True)
class Polynomial:
    """first * (round + 1)^power; a negative power lowers the noise as the rounds go on, -1 like 1/k."""

    first: float
    power: float

    def __post_init__(self) -> None:
        check_positive("Polynomial", "first", self.first)
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
            check_positive("PerRound", "values", value)

    def at(self, round: int) -> float:
        """The multiplier of a round."""
        if not 0 <= round < len(self.values):
            raise InputError(
                f"PerRound(values=...): there are multipliers for {len(self.values)} rounds, counted from 0, and round "
                f"{round} was asked for; give one for every round."
            )
        return self.values[round]


Schedule: TypeAlias = Constant | Geometric | Polynomial | PerRound


def check_positive(name: str, parameter: str, value: float) -> None:
    """Refuse what is not a positive finite number."""
    number = isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
    if not number or not 0.0 < value < math.inf:
        raise InputError(
            f"{name}({parameter}={value!r}): a positive finite number is needed; use NoNoise() to release a value bare."
        )
