"""Noise of density proportional to exp(-|x|) in d dimensions, centres `shift` apart: the exact law of its loss.

    loss = |x - shift e| - |x| = shift sin(angle),  with the density in the angle, between -pi/2 and pi/2,

    g(angle) ~ exp(shift/2 sin(angle)) cos(angle)^(d-2) (1 + c cos(angle)^2),
    c = z/(d - 1) K_{d/2-1}(z)/K_{d/2}(z),  z = shift/2,

K the modified Bessel function (docs/privacy.md#gamma-norm-noise). In the other world the density of the loss is
exp(-loss) times that of this one.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import kve

from consenso.arrays import Array
from consenso.privacy.accountants import costs
from consenso.privacy.accountants.chords import Chords
from consenso.privacy.accountants.logarithms import logsumexp
from consenso.privacy.events import Event, GammaNorm, Laplace, Pure

# Panels of Gauss-Legendre quadrature: where the density is, and on either side of that.
_PANELS, _FAR_PANELS, _NODES = 1 << 13, 1 << 10, 4
_FIRST_LOOK = 1 << 14
_DEPTH = 60.0
# exp(z sin(angle)) cos(angle)^d is resolved by panels of equal width as long as z + d is at most this.
_EVEN_PANELS, _RESOLVED = 1 << 12, 4e5
MOST_DIM = 200_000
# Smaller shifts are too small for quadrature, and cost next to nothing as pure ones.
_LEAST_SHIFT = 1e-8
_ROUNDING = 1e-13


@lru_cache(maxsize=64)
def chords(shift: float, dim: int) -> Chords:
    """The curve of the pair, exact at its points."""
    edges = _edges(shift, dim)
    angles, weights = _nodes(edges)
    logs = _log_density(shift, dim, angles)
    masses = np.exp(logs - logs.max()) * weights
    masses /= masses.sum()
    tilted = masses * np.exp(-shift * np.sin(angles))
    # From the top, in extended precision: small tails keep their digits.
    above, other = (
        np.append(np.cumsum(each.sum(axis=1)[::-1], dtype=np.longdouble)[::-1], 0.0).astype(np.float64)
        for each in (masses, tilted)
    )
    losses = shift * np.sin(edges)
    deltas = np.clip(above - np.exp(losses) * other + _ROUNDING * above, 0.0, 1.0)
    strict = np.concatenate([[True], np.diff(losses) > 0])
    below = np.append(0.0, np.cumsum(masses.sum(axis=1)))
    return Chords(losses[strict], np.minimum.accumulate(deltas[strict]), above[strict], below[strict])


def rdp(shift: float, dim: int, orders: Array) -> Array:
    """The Renyi curve; the pure epsilon at orders that the quadrature does not resolve."""
    angles, weights = _nodes(np.linspace(-math.pi / 2, math.pi / 2, _EVEN_PANELS + 1))
    angles, weights = angles.ravel(), weights.ravel()
    logs = _log_density(shift, dim, angles) + np.log(weights)
    logs -= logsumexp(logs)
    losses = shift * np.sin(angles)
    found = np.full_like(orders, shift)
    for place in np.flatnonzero(shift * orders + dim <= _RESOLVED):
        less_one = orders[place] - 1
        found[place] = min((float(logsumexp(logs + less_one * losses)) + _ROUNDING) / less_one, shift)
    return found


def _edges(shift: float, dim: int) -> Array:
    """Edges of the panels."""
    coarse = np.linspace(-math.pi / 2, math.pi / 2, _FIRST_LOOK + 1)[1:-1]
    logs = _log_density(shift, dim, coarse)
    near = coarse[logs > logs.max() - _DEPTH]
    width = coarse[1] - coarse[0]
    low, high = max(near[0] - width, -math.pi / 2), min(near[-1] + width, math.pi / 2)
    parts = (
        np.linspace(-math.pi / 2, low, _FAR_PANELS),
        np.linspace(low, high, _PANELS + 1),
        np.linspace(high, math.pi / 2, _FAR_PANELS),
    )
    return np.unique(np.concatenate(parts))


def _nodes(edges: Array) -> tuple[Array, Array]:
    """Nodes and weights, (panels, nodes)."""
    places, weights = np.polynomial.legendre.leggauss(_NODES)
    half = np.diff(edges)[:, None] / 2
    return edges[:-1, None] + half * (1 + places), half * weights


def _log_density(shift: float, dim: int, angles: Array) -> Array:
    """Logarithm of g, up to a constant."""
    cosines = np.cos(angles)
    weight = shift / 2 / (dim - 1) / _bessel_ratio(dim, shift / 2)
    return np.asarray(
        shift / 2 * np.sin(angles) + (dim - 2) * np.log(cosines) + np.log1p(weight * cosines**2), dtype=np.float64
    )


@lru_cache(maxsize=1024)
def _bessel_ratio(dim: int, z: float) -> float:
    """K_{dim/2}(z) / K_{dim/2-1}(z), by the recurrence K_{n+1} = K_{n-1} + (2 n/z) K_n, which is stable upwards."""
    order = 0.0 if dim % 2 == 0 else 0.5
    ratio = float(kve(1.0, z) / kve(0.0, z)) if order == 0 else 1 + 1 / z
    while order < dim / 2 - 1:
        order += 1.0
        ratio = 2 * order / z + 1 / ratio
    return ratio


@costs.simplify.register
def _(event: GammaNorm) -> Event:
    shift, dim = costs.ratio(event, "sensitivity", "scale"), costs.whole(event, "dim", least=1)
    if dim == 1:
        return costs.finite(Laplace(scale=1.0, sensitivity=shift), shift)
    if dim > MOST_DIM or shift < _LEAST_SHIFT:
        return costs.finite(Pure(shift), shift)
    return costs.finite(GammaNorm(1.0, shift, dim), shift)


@costs.find_rdp.register
def _(part: GammaNorm, orders: Array) -> Array:
    shift = part.sensitivity / part.scale
    return np.minimum(rdp(shift, part.dim, orders), costs.find_rdp(Pure(shift), orders))


@costs.find_pure.register
def _(part: GammaNorm) -> float | None:
    return part.sensitivity / part.scale


@costs.find_rho.register
def _(part: GammaNorm) -> float | None:
    return costs.find_rho(Pure(part.sensitivity / part.scale))


@costs.delta.register
def _(part: GammaNorm, epsilon: Array, direction: costs.Direction) -> Array:
    return chords(part.sensitivity / part.scale, part.dim).at(epsilon)


@costs.span.register
def _(part: GammaNorm, log_tail: float, direction: costs.Direction) -> costs.Span:
    return costs.Span(*chords(part.sensitivity / part.scale, part.dim).span(log_tail))
