"""Tight costs of compositions from the distribution of their privacy loss, for parts that have a dominating pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy.special import logsumexp

from consenso.arrays import Array
from consenso.privacy.accountants.conversion import Converted, to_epsilon, to_log_delta
from consenso.privacy.accountants.distribution import (
    WINDOW,
    Grid,
    Losses,
    Readout,
    chernoff_orders,
    composed,
    discretized,
    mixed,
    nothing,
    transform_error,
)
from consenso.privacy.accountants.pairs import Direction, directions, span
from consenso.privacy.accountants.parts import Part, parts
from consenso.privacy.events import Bounded, Event, Laplace, Mixture, Pure

# Logarithm of the moment of a loss, by tilt.
Moments: TypeAlias = Callable[[Array], Array]

# Relative error of epsilon through the grid: the first where it is cheap, at most the second where it is affordable.
_FINE, _COARSE = 2e-6, 2e-5
_CHEAP_SIZE, _MOST_PART_SIZE, _MOST_SIZE = 1 << 18, 1 << 20, 1 << 22
_SKETCH_SIZE = 1 << 14
# Parts may move exp(-_TAIL) of delta to infinity, and the error of the transform may add about as much again.
_TAIL = 13.0
_LOG_TRANSFORM_ERROR = -11.5
# A curve that is wanted everywhere is not tilted, and need not be accurate below this delta.
_LEAST_DELTA = 1e-10


@lru_cache(maxsize=256)
def epsilon(event: Event, delta: float) -> float:
    """The smallest epsilon at a delta in (0, 1), for a supported event that released something."""
    log_tail = math.log(delta) - math.log(_rounds(event)) - _TAIL
    moments = _log_moments(event, log_tail)
    guess = to_epsilon(_renyi(moments), delta)
    tilt = _tilt(moments, guess, math.log(delta), _rounds(event))
    both = _both(event, moments, guess, tilt, log_tail)
    return max(Readout.around(each, guess.value).epsilon(delta) for each in both)


@lru_cache(maxsize=256)
def log_delta(event: Event, epsilon: float) -> float:
    """Logarithm of delta at an epsilon above 0, for a supported event that released something."""
    # What is cut off must be small against a delta that is not known yet: cut, look, cut again.
    log_tail = -50.0 - math.log(_rounds(event)) - _TAIL
    for _ in range(2):
        moments = _log_moments(event, log_tail)
        guess = to_log_delta(_renyi(moments), epsilon)
        log_tail = max(guess.value, -700.0) - math.log(_rounds(event)) - _TAIL
    at = Converted(epsilon, guess.order)
    tilt = _tilt(moments, at, guess.value - 3.0, _rounds(event))
    return max(Readout.around(each, epsilon).log_delta(epsilon) for each in _both(event, moments, at, tilt, log_tail))


def deltas(event: Event, epsilons: Array) -> Array:
    """delta at many epsilons from one composition, to an absolute accuracy far below 1e-6."""
    log_tail = math.log(_LEAST_DELTA) - math.log(_rounds(event)) - _TAIL
    moments = _log_moments(event, log_tail)
    guess = to_epsilon(_renyi(moments), _LEAST_DELTA)
    found = np.zeros_like(epsilons)
    for each in _both(event, moments, guess, 0.0, log_tail):
        readout = Readout.around(each, 0.0)
        found = np.maximum(found, np.exp([readout.log_delta(float(at)) for at in epsilons]))
    return found


def _both(event: Event, moments: Moments, guess: Converted, tilt: float, log_tail: float) -> Iterator[Losses]:
    """The composition in every direction that matters, accurate around the guess."""
    window = _window_width(moments, tilt)
    for direction in directions(event):
        interval = _interval(event, guess, window, log_tail, direction)
        yield _distribution(event, Grid(interval, tilt, log_tail, direction))


def _distribution(event: Event, grid: Grid) -> Losses:
    factors: list[tuple[Losses, int]] = []
    rho = 0.0
    for part, count in parts(event):
        if isinstance(part, Bounded):
            rho += count * part.rho  # Gaussians compose exactly, so they enter as one
        elif isinstance(part, Mixture):
            factors.append((mixed(part.weights, [_distribution(inner, grid) for inner in part.events]), count))
        else:
            factors.append((discretized(part, grid), count))
    if rho:
        factors.append((discretized(Bounded(rho), grid), 1))
    return composed(factors) if factors else nothing(grid)


def _rounds(event: Event) -> int:
    """How many distributions are put on the grid and added up."""
    found, gaussian = 0, 0
    for part, count in parts(event):
        if isinstance(part, Bounded):
            gaussian = 1
        else:
            found += count * (max(map(_rounds, part.events)) if isinstance(part, Mixture) else 1)
    return max(found + gaussian, 1)


def _renyi(moments: Moments) -> Moments:
    """The Renyi curve that belongs to logarithms of moments."""
    return lambda orders: moments(orders - 1) / (orders - 1)


def _tilt(moments: Moments, guess: Converted, log_delta: float, rounds: int) -> float:
    """The least tilt at which the error of the transform is small against delta.

    The order of the guess would make it smallest, but the more tilt, the longer the tail of the tilted distribution.
    """
    tilts = (guess.order - 1) * np.linspace(0.1, 1.0, 10)
    amplified = moments(tilts) - tilts * guess.value
    allowed = log_delta + _LOG_TRANSFORM_ERROR - math.log(transform_error(rounds))
    if allowed >= 0:
        return 0.0
    enough = amplified <= allowed
    return float(tilts[np.argmax(enough)] if enough.any() else tilts[np.argmin(amplified)])


def _window_width(moments: Moments, tilt: float) -> float:
    """About how far the losses of the tilted composition spread."""
    step = 0.05 * max(tilt, 1.0)
    low, here, high = moments(tilt + step * np.array([-1.0, 0.0, 1.0]))
    variance = max(float(low - 2 * here + high) / step**2, 1e-300)
    orders = chernoff_orders(variance)
    above = np.min((moments(tilt + orders) - here + WINDOW) / orders)
    below = np.min((moments(tilt - orders) - here + WINDOW) / orders)
    return float(above + below)


def _log_moments(event: Event, log_tail: float) -> Moments:
    """Logarithms of the moments of the loss without its far tails, roughly: nothing is claimed of them.

    They say where to look. The tails that `log_tail` moves to infinity can dominate the true Renyi curve (sampling at
    small rates), which then recommends an order that is no good for what is left.
    """
    functions: list[tuple[Moments, int]] = []
    for part, count in parts(event):
        if isinstance(part, Mixture):
            functions.append((_mixed_moments(part, log_tail), count))
        elif isinstance(part, Bounded):
            functions.append((_gaussian_moments(part.rho), count))
        else:
            interval = _width(part, log_tail, "remove") / _SKETCH_SIZE
            functions.append((discretized(part, Grid(interval, 0.0, log_tail, "remove")).log_moments, count))

    def total(tilts: Array) -> Array:
        found = np.zeros_like(tilts)
        for function, count in functions:
            found += count * function(tilts)
        return found

    return total


def _gaussian_moments(rho: float) -> Moments:
    return lambda tilts: tilts * (tilts + 1) * rho


def _mixed_moments(part: Mixture, log_tail: float) -> Moments:
    inner = [_log_moments(event, log_tail) for event in part.events]
    weights = np.array(part.weights)[:, None]
    return lambda tilts: np.asarray(logsumexp([each(tilts) for each in inner], axis=0, b=weights))


def _interval(event: Event, guess: Converted, window: float, log_tail: float, direction: Direction) -> float:
    """Distance of the grid points.

    Connecting dots leaves the moments of order 0 and -1 as they are and adds (tilt + 1) tilt interval^2 / 12 to the
    logarithm of the moment of order tilt, in every round; epsilon moves by that over tilt.
    """
    unit = 12 * max(guess.value, 1e-12) / (guess.order * _rounds(event))
    fine, coarse = math.sqrt(_FINE * unit), math.sqrt(_COARSE * unit)
    leaves = list(_leaves(event))
    widest = max(_width(part, log_tail, direction) for part in leaves)
    interval = min(max(widest * len(leaves) / _CHEAP_SIZE, fine), coarse)
    interval = max(interval, widest * len(leaves) / _MOST_PART_SIZE, window / _MOST_SIZE)
    atoms = {_atom(part) for part in leaves} - {0.0}
    if len(atoms) != 1:
        return interval
    # One kind of atom: put it on the grid, where it costs nothing.
    (atom,) = atoms
    if all(isinstance(part, Pure) for part in leaves):
        return atom
    return atom / max(math.ceil(atom / interval), 1)


def _leaves(event: Event) -> Iterator[Part]:
    for part, _ in parts(event):
        if isinstance(part, Mixture):
            for inner in part.events:
                yield from _leaves(inner)
        else:
            yield part


def _width(part: Part, log_tail: float, direction: Direction) -> float:
    limits = span(part, log_tail, direction)
    return limits.high - limits.low


def _atom(part: Part) -> float:
    """The largest loss of a mechanism that has one with positive probability."""
    if isinstance(part, Pure):
        return part.epsilon
    return part.sensitivity / part.scale if isinstance(part, Laplace) else 0.0
