"""Tight costs of compositions from the distribution of their privacy loss, for parts that have a dominating pair.

Whatever this module decides (tilt, grid, what is cut off) only moves the result between the exact one and something
larger: `distribution` keeps every step an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from consenso.arrays import Array
from consenso.privacy.accountants import renyi
from consenso.privacy.accountants.conversion import Converted, to_epsilon, to_log_delta
from consenso.privacy.accountants.costs import Direction, span
from consenso.privacy.accountants.distribution import (
    ROUNDED_LOSS,
    Grid,
    Losses,
    compose_losses,
    discretize,
    mix_losses,
    nothing,
    reach,
    transform_error,
)
from consenso.privacy.accountants.logarithms import logsumexp
from consenso.privacy.accountants.pairs import directions
from consenso.privacy.accountants.parts import parts
from consenso.privacy.accountants.readout import Readout
from consenso.privacy.events import Bounded, Event, Mixture, Pure

# Logarithm of the moment of a loss, by tilt.
Moments: TypeAlias = Callable[[Array], Array]

# Relative error of epsilon through the grid: the first where it is cheap, at most the second where it is affordable.
_FINE, _COARSE = 2e-6, 2e-5
_CHEAP_SIZE, _MOST_PART_SIZE, _MOST_SIZE = 1 << 18, 1 << 20, 1 << 21
_SKETCH_SIZE = 1 << 14
# Larger orders are recommended only near the largest loss there is, where no grid is fine enough for them.
_MOST_ORDER = 500.0
# Parts may move exp(-tail) of delta to infinity. The first is negligible; the others are tried when long tails spoil
# the transform, as they do for small sampling rates and tiny deltas.
_TAILS = (13.0, 9.0, 6.0)
# Logarithm of the share of delta that may be due to all this before another tail is tried.
_LOG_MOST_SLACK = -6.0
_MOST_PASSES = 5
# Logarithms of the share of the latter that is aimed at; the second where the first makes the window too long.
_TRANSFORM_SHARES = (-11.5, -7.0)
# Deltas below this are not told apart.
_LOG_LEAST = -690.0
# A curve that is wanted everywhere is not tilted, and need not be accurate below this delta.
_LEAST_DELTA = 1e-10


@lru_cache(maxsize=256)
def epsilon(event: Event, delta: float) -> float:
    """The smallest epsilon at a delta in (0, 1), for a supported event that released something."""
    found = math.inf
    tails = list(_TAILS)
    for _ in range(_MOST_PASSES):
        log_tail = math.log(delta) - math.log(_rounds(event)) - tails[0]
        moments = _log_moments(event, log_tail)
        guess = to_epsilon(_renyi(moments), delta)
        if found < guess.value:
            guess = Converted(found, to_log_delta(_renyi(moments), found).order)
        readouts = list(_readouts(event, moments, guess, math.log(delta), log_tail))
        found = min(found, max(each.epsilon(delta) for each in readouts))
        if any(each.log_slack(found) - math.log(delta) > _LOG_MOST_SLACK for each in readouts) and len(tails) > 1:
            del tails[0]
        elif found == 0 or found > guess.value / 2:
            break  # the grid was made for an epsilon of this size
    return found * (1 + 2 * ROUNDED_LOSS)


@lru_cache(maxsize=256)
def log_delta(event: Event, epsilon: float) -> float:
    """Logarithm of delta at an epsilon above 0, for a supported event that released something."""
    # What is cut off must be small against a delta that is not known yet: start from a bound on it.
    found = to_log_delta(lambda orders: renyi.curve(event, orders), epsilon).value
    if found < _LOG_LEAST:
        return found
    for tail in (_TAILS[0], *_TAILS):
        log_tail = max(found, _LOG_LEAST) - math.log(_rounds(event)) - tail
        moments = _log_moments(event, log_tail)
        guess = Converted(epsilon, to_log_delta(_renyi(moments), epsilon).order)
        readouts = list(_readouts(event, moments, guess, max(found, _LOG_LEAST), log_tail))
        found = min(found, max(each.log_delta(epsilon) for each in readouts))
        if found < _LOG_LEAST or all(each.log_slack(epsilon) - found < _LOG_MOST_SLACK for each in readouts):
            break
    return found


def deltas(event: Event, epsilons: Array) -> Array:
    """Delta at many epsilons from one composition, to an absolute accuracy far below 1e-6."""
    log_tail = math.log(_LEAST_DELTA) - math.log(_rounds(event)) - _TAILS[0]
    moments = _log_moments(event, log_tail)
    guess = to_epsilon(_renyi(moments), _LEAST_DELTA)
    found = np.zeros_like(epsilons)
    for each in _readouts(event, moments, guess, 0.0, log_tail):
        found = np.maximum(found, np.exp([each.log_delta(float(at)) for at in epsilons]))
    return found


def _readouts(event: Event, moments: Moments, guess: Converted, log_delta: float, log_tail: float) -> Iterator[Readout]:
    """The composition in every direction that matters, accurate around the guess."""
    for share in _TRANSFORM_SHARES:
        tilt = _tilt(moments, guess, log_delta + share - math.log(transform_error(_rounds(event))))
        window = _window(moments, tilt)
        if window / _MOST_SIZE <= _grid_error(event, guess, _COARSE):
            break
    for direction in directions(event):
        interval = _interval(event, guess, window, log_tail, direction)
        losses = _distribution(event, Grid(interval, tilt, log_tail, direction))
        yield Readout.around(losses, guess.value if tilt else 0.0)


def _distribution(event: Event, grid: Grid) -> Losses:
    factors: list[tuple[Losses, int]] = []
    rho = 0.0
    for part, count in parts(event):
        if isinstance(part, Bounded):
            rho += count * part.rho  # Gaussians compose exactly, so they enter as one
        elif isinstance(part, Mixture):
            factors.append((mix_losses(part.weights, [_distribution(inner, grid) for inner in part.events]), count))
        else:
            factors.append((discretize(part, grid), count))
    if rho:
        factors.append((discretize(Bounded(rho), grid), 1))
    return compose_losses(factors) if factors else nothing(grid)


def _rounds(event: Event) -> int:
    """How many distributions are put on the grid and added up."""
    found, gaussian = 0, 0
    for part, count in parts(event):
        if isinstance(part, Bounded):
            gaussian = 1
        else:
            found += count * (max(map(_rounds, part.events)) if isinstance(part, Mixture) else 1)
    return max(found + gaussian, 1)


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
            functions.append((discretize(part, Grid(interval, 0.0, log_tail, "remove")).log_moments, count))

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
    logs = np.log(part.weights)[:, None]
    return lambda tilts: logsumexp(logs + [each(tilts) for each in inner], axis=0)


def _renyi(moments: Moments) -> Moments:
    """The Renyi curve that belongs to logarithms of moments."""
    return lambda orders: moments(orders - 1) / (orders - 1)


def _tilt(moments: Moments, guess: Converted, allowed: float) -> float:
    """The least tilt that amplifies the error of the transform by at most exp(allowed) at the guess.

    The order of the guess would amplify it least, but the more tilt, the longer the tail of the tilted distribution.
    """
    if allowed >= 0:
        return 0.0
    tilts = (guess.order - 1) * np.geomspace(1e-4, 1.0, 33)
    amplified = moments(tilts) - tilts * guess.value
    enough = amplified <= allowed
    return float(tilts[np.argmax(enough)] if enough.any() else tilts[np.argmin(amplified)])


def _window(moments: Moments, tilt: float) -> float:
    """About how far the losses of the tilted composition spread."""

    def at(value: float) -> float:
        return float(moments(np.array([value]))[0])

    here, step = at(tilt), 1e-3 * max(tilt, 1.0)
    mean = (at(tilt + step) - at(tilt - step)) / (2 * step)
    deviation = math.sqrt(max(at(tilt + step) - 2 * here + at(tilt - step), 1e-18)) / step
    above = reach(lambda order: at(tilt + order) - here - order * mean, deviation)
    below = reach(lambda order: at(tilt - order) - here + order * mean, deviation)
    return above + below


def _grid_error(event: Event, guess: Converted, relative: float) -> float:
    """The distance of grid points that makes this relative error of epsilon.

    Connecting dots leaves the moments of order 0 and -1 as they are and adds (tilt + 1) tilt interval^2 / 12 to the
    logarithm of the moment of order tilt, in every round; epsilon moves by that over tilt.
    """
    return math.sqrt(relative * 12 * max(guess.value, 1e-12) / (min(guess.order, _MOST_ORDER) * _rounds(event)))


def _interval(event: Event, guess: Converted, window: float, log_tail: float, direction: Direction) -> float:
    """Distance of the grid points: as fine as is cheap, as coarse as the sizes of arrays ask for."""
    fine, coarse = _grid_error(event, guess, _FINE), _grid_error(event, guess, _COARSE)
    leaves = list(_leaves(event))
    widest = len(leaves) * max(_width(part, log_tail, direction) for part in leaves)
    interval = min(max(widest / _CHEAP_SIZE, window / _CHEAP_SIZE, fine), coarse)
    interval = max(interval, widest / _MOST_PART_SIZE, window / _MOST_SIZE)
    atoms = {_atom(part, log_tail, direction) for part in leaves} - {0.0}
    if len(atoms) != 1:
        return interval
    # One kind of atom: put it on the grid, where it costs nothing.
    (atom,) = atoms
    if all(isinstance(part, Pure) for part in leaves):
        return atom
    return atom / max(math.ceil(atom / interval), 1)


def _leaves(event: Event) -> Iterator[Event]:
    for part, _ in parts(event):
        if isinstance(part, Mixture):
            for inner in part.events:
                yield from _leaves(inner)
        else:
            yield part


def _width(part: Event, log_tail: float, direction: Direction) -> float:
    limits = span(part, log_tail, direction)
    return limits.high - limits.low


def _atom(part: Event, log_tail: float, direction: Direction) -> float:
    """The largest loss of a mechanism that has one with positive probability."""
    limits = span(part, log_tail, direction)
    return limits.high if limits.has_top else 0.0
