"""Pairs of distributions that dominate a part: their exact curves delta(epsilon), at every real epsilon.

A pair (P, Q) dominates a mechanism when no two neighbouring outputs are easier to tell apart than P and Q. Its curve
sup_S P(S) - exp(epsilon) Q(S) is all that composition needs. Sampled Gaussians under add-remove have two pairs, for the
unit removed (its contribution is in P) and added (it is in Q): both are composed and the worse one counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import log_ndtr, ndtr

from consenso.arrays import Array
from consenso.privacy.accountants import gamma_norm, gaussian, groups, objective
from consenso.privacy.accountants.parts import Parts, parts
from consenso.privacy.events import (
    Bounded,
    Event,
    GammaNorm,
    Laplace,
    Mixture,
    ObjectivePerturbation,
    Pure,
    Sampled,
    SampledGroup,
)

Direction: TypeAlias = Literal["remove", "add"]


@dataclass(frozen=True)
class Span:
    """Where the losses of a pair lie, but for a stated probability."""

    low: float
    high: float
    has_top: bool = False  # whether nothing at all lies above `high`


def is_supported(event: Event) -> bool:
    """Whether every part has a known dominating pair."""
    return all(
        all(is_supported(inner) for inner in part.events)
        if isinstance(part, Mixture)
        else isinstance(part, Bounded | Laplace | GammaNorm | Pure | Sampled | SampledGroup | ObjectivePerturbation)
        for part, _ in parts(event)
    )


def curve(event: Event, epsilon: Array) -> Array | None:
    """The exact delta of a single release, or of one drawn from several; None for any composition of others.

    Gaussian releases count as one. When what was drawn is revealed, the curves of a mixture are averaged.
    """
    if not _is_single(event):
        return None
    found = np.zeros_like(epsilon)
    for direction in directions(event):
        found = np.maximum(found, _single_curve(event, epsilon, direction))
    return found


def _is_single(event: Event) -> bool:
    found = parts(event)
    if all(isinstance(part, Bounded) for part, _ in found):
        return True
    ((part, count), *others) = found
    if others or count > 1:
        return False
    return all(map(_is_single, part.events)) if isinstance(part, Mixture) else is_supported(event)


def _single_curve(event: Event, epsilon: Array, direction: Direction) -> Array:
    mu = gaussian.gdp(event)
    if mu is not None:
        return np.exp(gaussian.log_delta(mu, epsilon)) if mu else _certain(epsilon)
    ((part, _),) = parts(event)
    if not isinstance(part, Mixture):
        return delta(part, epsilon, direction)
    curves = [_single_curve(inner, epsilon, direction) for inner in part.events]
    return np.asarray(np.average(curves, axis=0, weights=part.weights), dtype=np.float64)


def directions(event: Event) -> tuple[Direction, ...]:
    """The directions that have to be composed."""
    return ("remove", "add") if _is_lopsided(parts(event)) else ("remove",)


def _is_lopsided(found: Parts) -> bool:
    return any(
        any(_is_lopsided(parts(inner)) for inner in part.events)
        if isinstance(part, Mixture)
        else isinstance(part, Sampled | SampledGroup) and part.adjacency == "add-remove"
        for part, _ in found
    )


@singledispatch
def delta(part: object, epsilon: Array, direction: Direction) -> Array:
    """The curve of the part's pair; never below the true one by more than rounding."""
    raise TypeError(type(part).__name__)


@singledispatch
def span(part: object, log_tail: float, direction: Direction) -> Span:
    """Losses that the pair has but for a probability exp(log_tail) on either side."""
    raise TypeError(type(part).__name__)


def _reach(log_tail: float) -> float:
    """Beyond this a standard normal has probability at most exp(log_tail)."""
    return math.sqrt(-2 * log_tail)


def _certain(epsilon: Array) -> Array:
    """Delta where the whole space is the best set: 1 - exp(epsilon), or 0."""
    return np.asarray(-np.expm1(np.minimum(epsilon, 0.0)), dtype=np.float64)


@delta.register
def _(part: Bounded, epsilon: Array, direction: Direction) -> Array:
    return np.exp(gaussian.log_delta(math.sqrt(2 * part.rho), epsilon))


@span.register
def _(part: Bounded, log_tail: float, direction: Direction) -> Span:
    width = math.sqrt(2 * part.rho) * _reach(log_tail)
    return Span(part.rho - width, part.rho + width)


@delta.register
def _(part: Laplace, epsilon: Array, direction: Direction) -> Array:
    shift = part.sensitivity / part.scale
    inside = -np.expm1(np.minimum(epsilon - shift, 0.0) / 2)
    return np.where(epsilon < -shift, _certain(epsilon), inside)


@span.register
def _(part: Laplace, log_tail: float, direction: Direction) -> Span:
    shift = part.sensitivity / part.scale
    return Span(-shift, shift, has_top=True)


@delta.register
def _(part: GammaNorm, epsilon: Array, direction: Direction) -> Array:
    return gamma_norm.chords(part.sensitivity / part.scale, part.dim).at(epsilon)


@span.register
def _(part: GammaNorm, log_tail: float, direction: Direction) -> Span:
    low, high = gamma_norm.chords(part.sensitivity / part.scale, part.dim).span(log_tail)
    return Span(low, high)


@delta.register
def _(part: SampledGroup, epsilon: Array, direction: Direction) -> Array:
    return groups.chords(part, direction).at(epsilon)


@span.register
def _(part: SampledGroup, log_tail: float, direction: Direction) -> Span:
    low, high = groups.chords(part, direction).span(log_tail)
    return Span(low, high)


@delta.register
def _(part: Pure, epsilon: Array, direction: Direction) -> Array:
    inside = -np.expm1(np.minimum(epsilon - part.epsilon, 0.0)) / (1 + math.exp(-part.epsilon))
    return np.where(epsilon < -part.epsilon, _certain(epsilon), inside)


@span.register
def _(part: Pure, log_tail: float, direction: Direction) -> Span:
    return Span(-part.epsilon, part.epsilon, has_top=True)


@delta.register
def _(part: ObjectivePerturbation, epsilon: Array, direction: Direction) -> Array:
    return np.exp(objective.log_delta(part, epsilon))


@span.register
def _(part: ObjectivePerturbation, log_tail: float, direction: Direction) -> Span:
    bend = objective.least_loss(part)
    return Span(bend, bend + part.ratio * _reach(log_tail - math.log(2)))


@delta.register
def _(part: Sampled, epsilon: Array, direction: Direction) -> Array:
    shift, rate = part.contribution / part.std, part.rate
    if part.adjacency == "replace-one":
        return _antipodal(shift, rate, epsilon)
    if direction == "remove":
        return _removal_curve(shift, rate, epsilon)
    # P and Q exchanged: 1 - e^epsilon + e^epsilon removed(-epsilon), written without cancellation.
    edge = -math.log1p(-rate)
    low = np.minimum(epsilon, edge)
    kept = -np.expm1(low - edge)
    with np.errstate(divide="ignore"):
        inner = low + math.log(rate) - np.log(kept)
    found = np.zeros_like(epsilon)
    below = kept > 0
    found[below] = kept[below] * np.exp(gaussian.log_delta(shift, inner[below]))
    return found


def _removal_curve(shift: float, rate: float, epsilon: Array) -> Array:
    """Rate * delta of the Gaussian at log(1 + (e^epsilon - 1) / rate): amplification by sampling is exact here."""
    edge = math.log1p(-rate)
    above = epsilon > edge
    found = _certain(epsilon)
    high = epsilon[above]
    # e^epsilon - (1 - rate), relative to the rate.
    inner = high + np.log(-np.expm1(edge - high)) - math.log(rate)
    found[above] = rate * np.exp(gaussian.log_delta(shift, inner))
    return found


def _antipodal(shift: float, rate: float, epsilon: Array) -> Array:
    """Contributions +shift and -shift; the best set is {x > cut}, where the loss at the cut is epsilon."""
    half = np.abs(epsilon) / 2
    with np.errstate(divide="ignore"):
        log_sinh = half + np.log(-np.expm1(-2 * half)) - math.log(2)
    log_scaled = log_sinh + shift**2 / 2 + math.log1p(-rate) - math.log(rate)
    # asinh(exp(t)) = log(exp(t) + sqrt(exp(2 t) + 1)) without overflow.
    asinh = np.logaddexp(log_scaled, 0.5 * np.logaddexp(0.0, 2 * log_scaled))
    cut = np.sign(epsilon) * (asinh + half) / shift
    absent = (1 - rate) * (ndtr(-cut) - np.exp(epsilon + log_ndtr(-cut)))
    with_unit, without = rate * ndtr(shift - cut), rate * np.exp(epsilon + log_ndtr(-shift - cut))
    rounding = 8 * np.finfo(float).eps * (np.abs(absent) + with_unit)
    return np.asarray(np.clip(absent + with_unit - without + rounding, 0.0, 1.0), dtype=np.float64)


@span.register
def _(part: Sampled, log_tail: float, direction: Direction) -> Span:
    shift, reach = part.contribution / part.std, _reach(log_tail)
    if part.adjacency == "replace-one":
        far = _loss(part, shift + reach) - _loss(part, -shift - reach)
        near = _loss(part, -reach) - _loss(part, reach)
        return Span(min(near, 0.0), far)
    if direction == "remove":
        return Span(_loss(part, -reach), _loss(part, shift + reach))
    return Span(-_loss(part, reach), -_loss(part, -reach))


def _loss(part: Sampled, x: float) -> float:
    """log(1 - rate + rate L(x))."""
    shift = part.contribution / part.std
    return float(np.logaddexp(math.log1p(-part.rate), math.log(part.rate) + shift * x - shift**2 / 2))
