"""Renyi divergences of one round of a sampled Gaussian mechanism.

Everything is in units of the noise: `shift` is contribution / std. With L(x) = exp(shift x - shift^2 / 2), the ratio of
N(shift, 1) to N(0, 1), the worst pairs of docs/privacy.md (Theorem P) are

    add-remove:   P = (1 - rate + rate L(x)) N(0, 1),   Q = N(0, 1)
    replace-one:  P as above,                           Q = (1 - rate + rate L(-x)) N(0, 1)

The other direction of add-remove (P and Q exchanged) never costs more in Renyi divergence (Mironov, Talwar and
Zhang 2019). Both pairs integrate u^order - 1 - order (u - 1) >= 0 against Q, where u = P / Q, which gives the moment
less one without cancellation however small the rate is.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from consenso.arrays import Array
from consenso.privacy.accountants.logarithms import logsumexp
from consenso.privacy.accountants.series import exp_less_line
from consenso.privacy.events import Adjacency

# Beyond these sizes the bound without sampling is used: orders this large only matter where sampling gains nothing.
_MOST_TERMS = 1 << 17
_MOST_NODES = 1 << 19
# Whole orders at which the bound for a fixed size is evaluated: its cost grows with their square.
_FIXED_SIZE_ORDERS = (*range(1, 33), 40, 48, 64, 96, 128, 192, 256)
# Digits of the quadrature: its error is exp(-_DIGITS) of the result.
_DIGITS = 36.0
# Where N(0, 1) has nothing left.
_REACH = 13.0


def poisson_rdp(shift: float, rate: float, adjacency: Adjacency, orders: Array) -> Array:
    """RDP of one round with Poisson sampling, at real orders above 1."""
    sampled = np.array([_poisson_moment(shift, rate, adjacency, float(order)) for order in orders])
    # Sampling never costs more than taking part for sure (joint convexity), whatever the rounding.
    plain = 0.5 * orders * shift**2
    if adjacency == "replace-one":
        # Q is at least (1 - rate) N(0, 1), against which P costs what it does under add-remove.
        plain = np.minimum(4 * plain, plain - math.log1p(-rate))
    return np.minimum(sampled / (orders - 1), plain)


@lru_cache(maxsize=16384)
def _poisson_moment(shift: float, rate: float, adjacency: Adjacency, order: float) -> float:
    """(order - 1) times the divergence."""
    if adjacency == "add-remove" and order.is_integer():
        return _binomial_moment(shift, rate, int(order))
    return _integrated_moment(shift, rate, adjacency, order)


def _binomial_moment(shift: float, rate: float, order: int) -> float:
    """The moment of add-remove as a sum of non-negative terms: sum_j C(order, j) ... (exp(j(j-1) shift^2 / 2) - 1)."""
    if order > _MOST_TERMS:
        return math.inf
    j = np.arange(2, order + 1, dtype=np.float64)
    exponent = 0.5 * j * (j - 1) * shift**2
    terms = (
        gammaln(order + 1.0)
        - gammaln(j + 1)
        - gammaln(order - j + 1)
        + j * math.log(rate)
        + (order - j) * math.log1p(-rate)
        + exponent
        + np.log(-np.expm1(-exponent))
    )
    return float(np.logaddexp(0.0, logsumexp(terms)))


def _integrated_moment(shift: float, rate: float, adjacency: Adjacency, order: float) -> float:
    low, high = -_REACH - shift, _REACH + order * shift
    step = _node_distance(shift, order)
    if (high - low) / step > _MOST_NODES:
        return math.inf
    x = np.arange(low, high + step, step)
    log_p = _log_mixture(shift, rate, x)
    log_q = _log_mixture(shift, rate, -x) if adjacency == "replace-one" else np.zeros_like(x)
    log_u = log_p - log_q
    base = log_q - 0.5 * x**2 - 0.5 * math.log(2 * math.pi)
    # u^order overflows long before the integrand does: far from u = 1 only this term counts.
    large = order * log_u > 30
    logs = np.empty_like(x)
    logs[large] = base[large] + order * log_u[large]
    small = log_u[~large]
    gap = exp_less_line(order * small) - order * exp_less_line(small)
    with np.errstate(divide="ignore"):
        logs[~large] = base[~large] + np.log(np.maximum(gap, 0.0))
    return float(np.logaddexp(0.0, math.log(step) + logsumexp(logs)))


def _log_mixture(shift: float, rate: float, x: Array) -> Array:
    """log(1 - rate + rate L(x)), accurate where it is near 0."""
    log_ratio = shift * x - 0.5 * shift**2
    near = np.log1p(rate * np.expm1(np.minimum(log_ratio, 1.0)))
    far = np.logaddexp(math.log1p(-rate), math.log(rate) + log_ratio)
    return np.where(log_ratio <= 1.0, near, far)


def _node_distance(shift: float, order: float) -> float:
    """Distance of trapezoidal nodes that makes the error exp(-_DIGITS).

    The integrand is analytic for |Im x| < pi / shift, where the mixture in the denominator has its zeros. At height
    a = angle / shift it grows by at most cos(angle / 2)^(1 - order) exp(a^2 / 2), and the error is that times
    exp(-2 pi a / distance).
    """
    angle = min(2.5, math.sqrt(2 * _DIGITS / ((order - 1) / 4 + 1 / shift**2)))
    height = angle / shift
    growth = -(order - 1) * math.log(math.cos(angle / 2)) + 0.5 * height**2
    return 2 * math.pi * height / (_DIGITS + growth)


def fixed_size_rdp(shift: float, size: int, population: int, orders: Array) -> Array:
    """RDP of one round with `size` of `population` without replacement, replace-one.

    Wang, Balle and Kasiviswanathan 2019, Theorem 27, with the doubled contribution. Between whole orders
    (order - 1) RDP is interpolated: the true one is convex, so this is an upper bound.
    """
    plain = 0.5 * orders * (2 * shift) ** 2
    known = [_fixed_size_moment(2 * shift, size / population, order) for order in _FIXED_SIZE_ORDERS]
    moments = np.interp(orders, _FIXED_SIZE_ORDERS, known, right=np.inf)
    return np.asarray(np.minimum(moments / (orders - 1), plain), dtype=np.float64)


@lru_cache(maxsize=4096)
def _fixed_size_moment(shift: float, fraction: float, order: int) -> float:
    if order == 1:
        return 0.0
    from dp_accounting.rdp import rdp_privacy_accountant

    (rdp,) = rdp_privacy_accountant._compute_rdp_sample_wor_gaussian(fraction, 1 / shift, [order])
    return (order - 1) * float(rdp)
