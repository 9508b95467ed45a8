"""One round of a sampled Gaussian mechanism: its Renyi divergences, and the pairs that dominate it.

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
from scipy.special import gammaln, log_ndtr, ndtr

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.privacy.accountants import costs, gaussian
from consenso.privacy.accountants.kinds.gaussian import simplify_rho
from consenso.privacy.accountants.logarithms import logsumexp
from consenso.privacy.accountants.series import exp_less_line
from consenso.privacy.events import Adjacency, Event, Sampled, SampledFixedSize

# Beyond these sizes the bound without sampling is used: orders this large only matter where sampling gains nothing.
_MOST_TERMS = 1 << 17
_MOST_NODES = 1 << 19
# Whole orders at which the bound for a fixed size is evaluated: its cost grows with the square of the last.
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
    moments = np.interp(orders, _FIXED_SIZE_ORDERS, _fixed_size_moments(2 * shift, size / population), right=np.inf)
    return np.asarray(np.minimum(moments / (orders - 1), plain), dtype=np.float64)


@lru_cache(maxsize=1024)
def _fixed_size_moments(shift: float, fraction: float) -> tuple[float, ...]:
    """(order - 1) times the divergence, at every one of the orders.

    The numbers of dp_accounting's `_compute_rdp_sample_wor_gaussian`, which goes through all differences, one after the
    other, for each of the orders anew: seconds for a calibration.
    """
    most = _FIXED_SIZE_ORDERS[-1]
    i = np.arange(2, most + 1)
    sigma = 1 / shift
    cumulants = np.arange(most + 2) * np.arange(1.0, most + 3) / (2.0 * sigma**2)
    differences = _log_differences(np.concatenate([[0.0], cumulants]))
    terms = math.log(4) + 0.5 * (differences[2 * (i // 2) - 1] + differences[2 * ((i + 1) // 2) - 1])
    once = 1 / sigma**2  # the divergence of order 2
    terms[0] = math.log(4) + once + math.log1p(-math.exp(-once))
    terms = np.minimum(terms, math.log(2) + cumulants[i - 1]) + i * math.log(fraction)
    return tuple(
        float(logsumexp(np.append(terms[: order - 1] + _log_choose(order, i[: order - 1]), 0.0))) if order > 1 else 0.0
        for order in _FIXED_SIZE_ORDERS
    )


def _log_choose(n: int, k: IntArray) -> Array:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _log_differences(logs: Array) -> Array:
    """Logarithms of the moduli of the first, second, ... differences of exp(logs), from its first number on."""
    positive, found = np.ones(len(logs), dtype=bool), []
    with np.errstate(divide="ignore", invalid="ignore"):
        while len(logs) > 1:
            here, there, sign = logs[:-1], logs[1:], positive[1:]
            alike, same = positive[:-1] == sign, here == there
            top, low = np.maximum(here, there), np.minimum(here, there)
            gap = np.exp(low - top)
            apart = np.where(same, -np.inf, top + np.log1p(-gap))
            # Of two numbers of one sign the second less the first; their sum, where the signs differ.
            logs = np.where(alike | (top == -np.inf), apart, top + np.log1p(gap))
            positive = np.where(alike, (there >= here) == sign, sign)
            found.append(logs[0])
    return np.array(found)


@costs.simplify.register
def _(event: Sampled) -> Event:
    shift = costs.ratio(event, "contribution", "std")
    if not 0 < event.rate <= 1:  # also refuses NaN
        raise InputError(
            f"Sampled(rate={event.rate}): a rate lies in (0, 1]; leave the event out where nothing is sampled."
        )
    if event.adjacency not in ("add-remove", "replace-one"):
        raise InputError(f"Sampled(adjacency={event.adjacency!r}): use 'add-remove' or 'replace-one'.")
    if event.rate == 1:
        seen = shift if event.adjacency == "add-remove" else 2 * shift
        return simplify_rho(0.5 * seen * seen)
    return costs.finite(Sampled(1.0, shift, float(event.rate), event.adjacency), shift)


@costs.simplify.register
def _(event: SampledFixedSize) -> Event:
    shift = costs.ratio(event, "contribution", "std")
    size, population = costs.whole(event, "size", least=1), costs.whole(event, "population", least=1)
    if size > population:
        raise InputError(
            f"SampledFixedSize(size={size}, population={population}): a sample is at most the population; lower it."
        )
    if size == population:
        return simplify_rho(2.0 * shift * shift)
    return costs.finite(SampledFixedSize(1.0, shift, size, population), shift)


@costs.find_rdp.register
def _(part: Sampled, orders: Array) -> Array:
    return poisson_rdp(part.contribution / part.std, part.rate, part.adjacency, orders)


@costs.find_rdp.register
def _(part: SampledFixedSize, orders: Array) -> Array:
    return fixed_size_rdp(part.contribution / part.std, part.size, part.population, orders)


@costs.find_rho.register
def _(part: Sampled) -> float | None:
    plain = 0.5 * (part.contribution / part.std) ** 2
    # Under replace-one, Q is at least (1 - rate) times the law without the unit.
    return plain if part.adjacency == "add-remove" else min(4 * plain, plain - math.log1p(-part.rate))


@costs.find_rho.register
def _(part: SampledFixedSize) -> float | None:
    return 0.5 * (2 * part.contribution / part.std) ** 2


@costs.is_lopsided.register
def _(part: Sampled) -> bool:
    return part.adjacency == "add-remove"


@costs.delta.register
def _(part: Sampled, epsilon: Array, direction: costs.Direction) -> Array:
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
    found = costs.certain_delta(epsilon)
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


@costs.span.register
def _(part: Sampled, log_tail: float, direction: costs.Direction) -> costs.Span:
    shift, reach = part.contribution / part.std, costs.normal_reach(log_tail)
    if part.adjacency == "replace-one":
        far = _loss(part, shift + reach) - _loss(part, -shift - reach)
        near = _loss(part, -reach) - _loss(part, reach)
        return costs.Span(min(near, 0.0), far)
    if direction == "remove":
        return costs.Span(_loss(part, -reach), _loss(part, shift + reach))
    return costs.Span(-_loss(part, reach), -_loss(part, -reach))


def _loss(part: Sampled, x: float) -> float:
    """log(1 - rate + rate L(x))."""
    shift = part.contribution / part.std
    return float(np.logaddexp(math.log1p(-part.rate), math.log(part.rate) + shift * x - shift**2 / 2))
