"""What accountants ask of a kind of event; a file of `kinds` answers for each.

| question | answered by | without an answer |
| --- | --- | --- |
| is it well formed, and what is its plainest form? | `simplify` | the event is refused |
| the Renyi curve | `find_rdp` | the accountant refuses it |
| a pure epsilon, a rho of zCDP | `find_pure`, `find_rho` | there is none |
| a pair of distributions that dominates it | `delta` and `span` together | it is not composed by PLD |
| does the pair depend on the direction? | `is_lopsided` | no |

Answers are registered with the event's class: `@find_rdp.register`. All but `simplify` get events that it returned.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from functools import singledispatch
from typing import Literal, TypeAlias

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError, UnsupportedEventError
from consenso.privacy.events import Event, Nothing, Unbounded

Direction: TypeAlias = Literal["remove", "add"]


@dataclass(frozen=True)
class Span:
    """Where the losses of a pair lie, but for a stated probability."""

    low: float
    high: float
    has_top: bool = False  # whether nothing at all lies above `high`


@singledispatch
def simplify(event: object) -> Event:
    """The event in the form that it amounts to, or an InputError that names the number which is wrong."""
    raise InputError(f"{type(event).__name__}: an event of consenso.privacy.events must be given, got {event!r}.")


@singledispatch
def find_rdp(part: object, orders: Array) -> Array:
    """The Renyi divergence bound at real orders above 1."""
    raise UnsupportedEventError(f"rdp({type(part).__name__}): no Renyi curve is known for this event.")


@singledispatch
def find_pure(part: object) -> float | None:
    """The epsilon at delta = 0."""
    return None


@singledispatch
def find_rho(part: object) -> float | None:
    """A rho with RDP at most order * rho at every order."""
    return None


@singledispatch
def delta(part: object, epsilon: Array, direction: Direction) -> Array:
    """The curve of the part's pair; never below the true one by more than rounding."""
    raise TypeError(type(part).__name__)


@singledispatch
def span(part: object, log_tail: float, direction: Direction) -> Span:
    """Losses that the pair has but for a probability exp(log_tail) on either side."""
    raise TypeError(type(part).__name__)


@singledispatch
def is_lopsided(part: object) -> bool:
    """Whether a unit removed and a unit added have different pairs."""
    return False


def has_pair(part: Event) -> bool:
    """Whether a dominating pair is known."""
    return delta.dispatch(type(part)) is not delta.dispatch(object)


def finite(event: Event, cost: float) -> Event:
    """The event, nothing when it costs nothing, unbounded when its cost is not finite."""
    if cost == 0:
        return Nothing()
    if math.isinf(cost):
        return Unbounded(f"{type(event).__name__} without a finite bound")
    return event


def ratio(event: Event, what: str, against: str) -> float:
    """One field over another, sensitivity over noise: infinite without noise, zero without sensitivity."""
    size, noise = not_negative(event, what), not_negative(event, against)
    if size == 0 or math.isinf(noise):
        if math.isinf(size):
            raise InputError(
                f"{type(event).__name__}({what}=inf, {against}=inf): the ratio is undefined; state one of them."
            )
        return 0.0
    return math.inf if noise == 0 else size / noise


def not_negative(event: Event, name: str) -> float:
    """A field that is a number of at least 0, as a float."""
    return check_number(event, name, getattr(event, name))


def check_number(event: Event, name: str, value: object) -> float:
    """A number of at least 0, as a float; NaN is none."""
    if type(value) is not bool and isinstance(value, numbers.Real) and float(value) >= 0:
        return float(value)
    raise InputError(f"{type(event).__name__}({name}={value!r}): a number that is not negative must be given.")


def whole(event: Event, name: str, *, least: int) -> int:
    """A field that is a whole number."""
    value = getattr(event, name)
    if type(value) is not bool and isinstance(value, numbers.Integral) and int(value) >= least:
        return int(value)
    raise InputError(f"{type(event).__name__}({name}={value!r}): a whole number, at least {least}, must be given.")


def normal_reach(log_tail: float) -> float:
    """Beyond this a standard normal has probability at most exp(log_tail)."""
    return math.sqrt(-2 * log_tail)


def certain_delta(epsilon: Array) -> Array:
    """Delta where the whole space is the best set: 1 - exp(epsilon), or 0."""
    return np.asarray(-np.expm1(np.minimum(epsilon, 0.0)), dtype=np.float64)
