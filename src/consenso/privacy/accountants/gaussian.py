"""Exact costs of Gaussian releases: mu-GDP, and the closed form of delta(epsilon).

delta(epsilon) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)   (Balle and Wang 2018)

In the tail both terms share the factor exp(-(mu/2 - epsilon/mu)^2 / 2); taking it out keeps the difference accurate for
any delta and any epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from consenso.arrays import Array

_ROOT_TWO = math.sqrt(2.0)


def log_delta(mu: float, epsilon: Array) -> Array:
    """Logarithm of delta at every real epsilon, never below the true one."""
    epsilon = np.asarray(epsilon, dtype=np.float64)
    upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    tail = upper <= 0
    result = np.empty_like(epsilon)
    near, far = erfcx(-upper[tail] / _ROOT_TWO), erfcx(-lower[tail] / _ROOT_TWO)
    # The last term covers the rounding of the difference, which matters when mu is tiny.
    result[tail] = -0.5 * upper[tail] ** 2 + np.log(0.5 * (near - far + 4 * np.finfo(float).eps * near))
    body = ~tail
    difference = ndtr(upper[body]) - np.exp(epsilon[body] + log_ndtr(lower[body]))
    result[body] = np.log(np.minimum(difference + 4 * np.finfo(float).eps, 1.0))
    return result


def epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon at which a mu-GDP mechanism has this delta, rounded up."""
    if mu == 0:
        return 0.0
    if delta == 0:
        return math.inf
    log_target = math.log(delta)
    return smallest_epsilon(
        lambda value: float(log_delta(mu, np.array([value]))[0]) - log_target,
        # A Gaussian tail bound: delta <= exp(-(epsilon/mu - mu/2)^2 / 2).
        mu * (mu / 2 + math.sqrt(-2 * log_target)) + 1e-300,
    )


def smallest_epsilon(function: Callable[[float], float], upper: float) -> float:
    """Root of a decreasing function of epsilon in [0, upper], rounded up until the function is not positive there."""
    if function(0.0) <= 0:
        return 0.0
    while function(upper) > 0:
        upper *= 2
    found = _find_root(function, 0.0, upper)
    nudge = 1e-15
    while function(found) > 0:
        found *= 1 + nudge
        nudge *= 2
    return found


def _find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """A root between points of different signs: inverse quadratic steps, or halves where they mislead.

    Reference: T. Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives", 1997. scipy.optimize has it, and importing that takes a tenth of a first fit.
    """
    new, other, at_new, at_other = high, low, function(high), function(low)
    step = 0.5
    while True:
        point = new + step * (other - new)
        value = function(point)
        if (value > 0) == (at_new > 0):
            third, at_third = new, at_new
        else:
            third, other, at_third, at_other = other, new, at_other, at_new
        new, at_new = point, value
        best = new if abs(at_new) < abs(at_other) else other
        shortest = 4 * np.finfo(float).eps * best / abs(other - new) if other != new else 1.0
        if shortest > 0.5 or at_new == 0:
            return float(best)
        place, height = (new - other) / (third - other), (at_new - at_other) / (at_third - at_other)
        step = 0.5
        if 1 - math.sqrt(1 - place) < height < math.sqrt(place):
            step = at_new / (at_new - at_other) * at_third / (at_third - at_other) - (third - new) / (
                other - new
            ) * at_new / (at_third - at_new) * at_other / (at_other - at_third)
        step = min(max(step, shortest), 1 - shortest)


def fnr(mu: float, fpr: Array) -> Array:
    """The smallest false negative rate of any test at these false positive rates (the trade-off curve)."""
    return np.asarray(ndtr(-ndtri(fpr) - mu), dtype=np.float64)
