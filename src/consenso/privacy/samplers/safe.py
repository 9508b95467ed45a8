"""Noise for deployment: exact discrete samplers of OpenDP, fed by the operating system, on a public grid.

Adding floating-point noise to a floating-point value leaks the value through its low bits, whatever the generator.
Here a value is clamped to a public range, rounded to a multiple of a power of two g, and discrete noise is added *in
integers*; what follows is a function of the integers. Three things have to be shown (b, s: scale and std over g).

**Rounding.** |round(v) - round(v')| <= |v - v'| + g in each coordinate: `widening` a side. Clamping is 1-Lipschitz
and costs nothing; it is preferred to an error, since an error that depends on a value tells something of the value.

**Laplace.** Noise of pmf proportional to exp(-|k|/c), c = b + 1/4, is drawn. For every whole shift d >= 1 this pair
of laws is dominated (every hockey-stick divergence, so every Renyi curve and every privacy loss distribution) by
Laplace(b) with the same shift, so the excess is 0.
  Proof. The likelihood ratio is monotone, so half lines are the best tests: with F the CDF of the noise,
  H(x) = sup_t F(t) - x F(t - d). With p = exp(-1/c), F(t) = p^-t / (1+p) for t < 0 and 1 - p^(t+1) / (1+p) for t >= 0.
  So F(t) = L(s(t)), L the CDF of Laplace(c), with s(t) = t + a for t < 0, t + 1 - a for t >= 0, a = c log(2/(1+p)).
  Hence s(t) - s(t-d) <= d + 1 - 2a = d + 2c log cosh(1/2c) <= d + 1/4c, and F(t) - x F(t-d) is at most the value of
  the test {<= s(t)} between Laplace(c) laws d + 1/4c apart. Last, (d + 1/4c)/c <= d/b as d (c - b) = d/4 >= b/4c.
Coordinates are independent and domination survives products, mixtures and adaptive composition.

**Gaussian.** Noise of pmf proportional to exp(-k^2/2c^2), c^2 = s^2 + t^2 with t = `SMOOTHING`, is drawn. *For all
whole means at once*, this is N(mean, s^2) followed by one random map, up to total variation `smoothing_excess(t)`.
So it stands for the Gaussian of the event wherever noise is added to the value that is released: composition,
sampling of either adjacency, mixtures, sums.
  Proof. Let r(x) = exp(-x^2/2t^2) and let the map send a real x to the whole number j with probability r(j-x)/T(x),
  T(x) = sum_j r(j-x). Poisson summation: T(x) = t sqrt(2 pi) (1 + e(x)), |e(x)| <= eta = 2 sum_{n>=1} exp(-2 pi^2 t^2
  n^2). Applied to x ~ N(mean, s^2), P(j) = E r(j-x)/T(x) lies within the factors 1/(1+eta) and 1/(1-eta) of the
  density of N(mean, s^2 + t^2) at j. The normaliser of the discrete Gaussian lies within 1 -+ eta likewise. So the
  ratio of the two pmfs lies within (1+eta)/(1-eta) and its inverse, and their total variation is at most eta/(1-eta).
  *Sums* of n shares on the same grid: the pmfs of a sum of discrete Gaussians of variances u, w and of one of variance
  u + w have a ratio within ((1+eta')/(1-eta'))^2 and its inverse (the same summation, at t^2 = uw/(u+w)). As c >= 2^10,
  t^2 >= 2^19 there, and up to 2^64 shares stay within the tenth that is added to the excess of one release.

**What this does not cover.** Noise inside a minimisation (objective perturbation): there the grid is not that of the
output, and who knows the data can see whether a minimiser belongs to a noise vector on the grid. The discrete vector is
a continuous one that the random map has moved by at most `displacement`, so the minimiser is that of continuous noise
with a gradient error of that size: add it to the solver's tolerance, for which output noise is due anyway. Nor does it
cover amplification by iteration, whose maps must not expand: rounding does, by up to the grid.
"""

from __future__ import annotations

import importlib.util
import math
import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, PreconditionError, PrivacyError
from consenso.privacy.samplers.contract import Key, Kind, check_draw, per_party
from consenso.version import find_version

# The random map of the proof, in grid steps: its excess is 1e-214, and 5 steps are nothing beside the noise.
SMOOTHING = 5.0
# The random map moves an entry further than this with a probability of exp(-512), a part in a million of the excess.
_FARTHEST = 160.0
# Whole numbers that enter the sampler; the noise has the rest of 64 bits.
_LARGEST = 2.0**61
# The step of the grid, as a share of the sensitivity and of the scale: so that values of 2^15 sensitivities with their
# noise stay below 2^53 steps, where a double is exact and can be summed as an integer, and 2^24 sensitivities fit.
_SENSITIVITY_SHARE = 2.0**-36
_SMALLEST_SCALE_SHARE = 2.0**-44
_LARGEST_SCALE_SHARE = 2.0**-10
# Scales are rounded up by more than double arithmetic rounds down.
_UP = 1.0 + 2.0**-50
_SMALLEST_PITCH, _LARGEST_PITCH = 2.0**-900, 2.0**900


@dataclass(frozen=True, kw_only=True)
class Safe:
    """OpenDP's discrete Gaussian and Laplace, with entropy of the operating system: takes no seed, ignores keys."""

    seed: None = field(default=None, repr=False)

    private: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.seed is not None:
            raise PrivacyError(
                "Safe(seed=...): noise that protects cannot be drawn twice, so no seed is taken; "
                "use Seeded(seed) for a simulation."
            )
        if importlib.util.find_spec("opendp") is None:
            raise InputError("Safe(): the package opendp must be installed; run pip install 'consenso[safe]'.")

    @property
    def name(self) -> str:
        """The library with its version, and where the entropy comes from."""
        return f"OpenDP {find_version('opendp')} discrete Gaussian and Laplace, operating-system entropy"

    def gaussian(self, values: Array, std: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values on the grid plus a discrete Gaussian that stands for N(0, std^2)."""
        return self._release("gaussian", values, std, key, sensitivity)

    def laplace(self, values: Array, scale: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values on the grid plus a discrete Laplace that is dominated by Laplace(scale)."""
        return self._release("laplace", values, scale, key, sensitivity)

    def gamma_norm(self, values: Array, scale: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Refused: no exact sampler is known."""
        raise _no_gamma_norm()

    def uniform(self, key: Key, count: int) -> Array:
        """Uniforms of 53 bits in (0, 1) from the operating system, shape (parties, count)."""
        shape = (key.parties.size, count)
        words = np.frombuffer(os.urandom(8 * shape[0] * shape[1]), dtype=np.uint64).reshape(shape)
        return np.maximum((words >> np.uint64(11)).astype(np.float64), 0.5) * 2.0**-53

    def grid(self, scale: float, sensitivity: float, dim: int) -> float:
        """A power of two, whatever `dim` is: for multipliers to 256 a million entries move by 1e-8 (1-norm: 1e-5)."""
        pitch = _pitch(scale, sensitivity)
        return math.ldexp(1.0, math.frexp(pitch)[1] - 1) if pitch else 0.0

    def reach(self, scale: float, sensitivity: float, dim: int) -> float:
        """Entries are clamped to this size before noise is added: more than ten million sensitivities.

        (Where the scale is below 2^-26 of the sensitivity, which protects nobody, it is 2^50 scales or more.)
        """
        return _LARGEST * self.grid(scale, sensitivity, dim)

    def widening(self, scale: float, sensitivity: float, dim: int, norm: Literal[1, 2]) -> float:
        """Half a step in each entry, for the largest step that a grid for this scale and sensitivity may have.

        It grows in proportion when both do, so that the cost of a release with an adaptive bound is known before.
        """
        return (dim if norm == 1 else math.sqrt(dim)) * _pitch(scale, sensitivity) / 2.0

    def displacement(self, scale: float, sensitivity: float, dim: int) -> float:
        """How far, in the 2-norm, discrete Gaussian noise lies from continuous noise that it is made of.

        Failure is part of the excess. For noise that is not added to what is released; see the text of this module.
        """
        return math.sqrt(dim) * _FARTHEST * _pitch(scale, sensitivity)

    def excess(self, scale: float, sensitivity: float, dim: int, kind: Kind) -> float:
        """Proved in the text of this module; 0 for Laplace."""
        if kind == "gamma-norm":
            raise _no_gamma_norm()
        return 1.1 * dim * smoothing_excess(SMOOTHING) if kind == "gaussian" and scale > 0.0 else 0.0

    def _release(self, kind: Kind, values: Array, scale: Array | float, key: Key, sensitivity: Array | float) -> Array:
        values, scales = check_draw(values, scale, key, "std" if kind == "gaussian" else "scale")
        sensitivities = per_party(sensitivity, values.shape[0], "sensitivity")
        out = values.copy()
        if not values.size:
            return out
        # Parties that share a scale and a grid are drawn in one call.
        settings, group = np.unique(np.stack([scales, sensitivities]), axis=1, return_inverse=True)
        for index, (each_scale, each_sensitivity) in enumerate(settings.T):
            step = self.grid(float(each_scale), float(each_sensitivity), values.shape[1])
            if step:
                rows = group.ravel() == index
                out[rows] = _noisy(kind, values[rows], float(each_scale) / step, step)
        return out


def smoothing_excess(smoothing: float) -> float:
    """eta/(1 - eta) of the proof, the sum for eta being bounded by a geometric one."""
    first = math.exp(-2.0 * (math.pi * smoothing) ** 2)
    eta = 2.0 * first / (1.0 - first**3)
    return eta / (1.0 - eta)


def scale_to_draw(kind: Kind, scale: float) -> float:
    """The scale of the discrete noise that stands for continuous noise of `scale`, both in grid steps."""
    return _UP * (math.hypot(scale, SMOOTHING) if kind == "gaussian" else scale + 0.25)


def add_discrete(kind: Kind, integers: IntArray, scale: float) -> IntArray:
    """Integers (any shape) plus exact discrete noise; past 64 bits the sum saturates, which is post-processing."""
    noisy = _measurement(kind, scale)(integers.ravel())
    return np.asarray(noisy, dtype=np.int64).reshape(integers.shape)


def _noisy(kind: Kind, values: Array, scale: float, step: float) -> Array:
    reach = _LARGEST * step
    integers = np.rint(np.clip(values, -reach, reach) / step).astype(np.int64)
    return add_discrete(kind, integers, scale_to_draw(kind, scale)).astype(np.float64) * step


def _pitch(scale: float, sensitivity: float) -> float:
    """The grid before it is rounded down to a power of two."""
    if not scale:
        return 0.0
    finest = max(sensitivity * _SENSITIVITY_SHARE, scale * _SMALLEST_SCALE_SHARE)
    pitch = min(finest, scale * _LARGEST_SCALE_SHARE)
    if not _SMALLEST_PITCH <= pitch <= _LARGEST_PITCH:
        raise InputError(
            f"scale={scale!r}, sensitivity={sensitivity!r}: discrete noise needs scales between about 1e-250 and "
            "1e250; rescale the values."
        )
    return pitch


def _no_gamma_norm() -> PreconditionError:
    return PreconditionError(
        "GammaNormNoise: no exact discrete sampler is known, so this noise is for simulation only; "
        "use GaussianNoise or LaplaceNoise with Safe()."
    )


@lru_cache(maxsize=256)
def _measurement(kind: Kind, scale: float) -> Any:
    from opendp import domains, measurements, metrics, mod  # the prelude would import Polars and scikit-learn too

    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T="i64"))
    if kind == "gaussian":
        return measurements.make_gaussian(space, metrics.l2_distance(T=float), scale=scale)
    return measurements.make_laplace(space, metrics.l1_distance(T="i64"), scale=scale)
