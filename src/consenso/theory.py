"""How close noisy fixed-point iterations come, and what privacy costs: planning aids, from public numbers only.

The iteration is u <- u + relaxation (R(u) - u + error + noise) on the blocks that act, each with probability q; R
contracts by tau, the noise is N(0, s^2 I) in p coordinates, D = |u_0 - u*|^2. With t = 1 - relaxation (1 - tau), v =
relaxation s:

    without errors       E|u_k - u*|^2 <= r^k D + (1 - r^k) p v^2 / (1 - t^2),              r = 1 - q (1 - t^2)
    errors of size z     E|u_k - u*|^2 <= r^k D + (1 - r^k) q (p v^2 + c) / (1 - r),        r = 1 - q (1 - t^2) / 2
                         with c = (relaxation z)^2 (1 + t^2) / (1 - t^2)

Proof. Given u, an active block contributes |(1 - relaxation)(u_b - u*_b) + relaxation (R_b(u) - u*_b)|^2 and its noise,
an idle one |u_b - u*_b|^2; the sum over blocks is t^2 |u - u*|^2 at most. With errors use |a + e|^2 <= (1 + x) |a|^2 +
(1 + 1/x) |e|^2 with (1 + x) t^2 = (1 + t^2)/2. The first is an equality for R(u) = tau u.

This replaces Theorem 1 of Cyffers, Bellet and Basu 2023, whose proof takes a relaxation above 1 for every tau that is
not small (2.56 at tau = 0.5), with which R(u) = -tau u diverges. A prox after the noise changes nothing: it does not
expand.

Trade-offs. A run of K rounds that costs rho-zCDP has noise of variance price * K / rho in R, with these prices:

    noise once on the sum of n parts of sensitivity S, R = step * mean    (step S / n)^2 / 2            trusted sum
    the same, each unit perturbs its own part                             (step S)^2 / (2 n)            local
    consensus ADMM with noise in the states, every message seen           8 (step L)^2                  local
    the same at relaxation 1/2, only the means seen                       32 n (step L)^2 / (n + 1)^2   Theorem F

so that the error after the best number of rounds is of the order p * price / (rho (1 - tau^2)^2) up to a logarithm:
n^-2 for a trusted sum. The paper claims n^-2 for noise in the states as well, which rests on its false Theorems 2 and
3. For these the error of the model is that of all states over n: |z - z*|^2 <= |mean u - mean u*|^2 <= |u - u*|^2 / n,
with n p coordinates of noise, hence p again; give D/n as the distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.calibrate import EpsilonDelta, Mu, Rho, Target


@dataclass(frozen=True, kw_only=True)
class Utility:
    """The bound on E|u_k - u*|^2 for an operator that contracts by `contraction`."""

    contraction: float  # tau
    dim: int  # p
    noise: float  # s, per coordinate, added to R
    chance: float = 1.0  # q
    relaxation: float = 1.0
    error: float = 0.0  # z

    def __post_init__(self) -> None:
        for name, value in (("chance", self.chance), ("relaxation", self.relaxation)):
            if not 0 < value <= 1:
                raise InputError(f"Utility({name}={value}): it lies in (0, 1]; the bound is proved there.")
        if not 0 <= self.contraction < 1:
            raise InputError(
                f"Utility(contraction={self.contraction}): the operator contracts, by a factor in [0, 1); add a "
                "squared penalty or shorten the step."
            )
        if self.dim < 1 or not (0 <= self.noise < math.inf and 0 <= self.error < math.inf):
            raise InputError(
                f"Utility(dim={self.dim}, noise={self.noise}, error={self.error}): a dimension of at least 1 and "
                "finite sizes of at least 0 are needed."
            )

    @property
    def factor(self) -> float:
        """By how much the squared distance shrinks in a round, the r above."""
        shrink = self.chance * (1 - self._moved**2)
        return 1 - (shrink if self.error == 0 else shrink / 2)

    @property
    def floor(self) -> float:
        """What is left of the bound after infinitely many rounds."""
        moved = self._moved
        noise = self.dim * (self.relaxation * self.noise) ** 2
        errors = (self.relaxation * self.error) ** 2 * (1 + moved**2) / (1 - moved**2)
        return self.chance * (noise + errors) / (1 - self.factor)

    def bound(self, rounds: int, distance: float) -> float:
        """The bound after `rounds`, from a squared distance of at most `distance` at the start."""
        left = self.factor**rounds
        return left * distance + (1 - left) * self.floor

    @property
    def _moved(self) -> float:
        return relax(self.contraction, self.relaxation)


def relax(contraction: float, relaxation: float) -> float:
    """The contraction of (1 - relaxation) I + relaxation R."""
    return 1 - relaxation * (1 - contraction)


def price_of_sum(*, step: float, sensitivity: float, units: int) -> float:
    """Noise once, on the sum of `units` parts; R moves by `step` times their mean."""
    return (step * sensitivity / units) ** 2 / 2


@dataclass(frozen=True, kw_only=True)
class Tradeoff:
    """Error against privacy for a method whose noise has the stated price."""

    price: float  # variance of the noise in R, times rho, over the number of rounds
    contraction: float
    dim: int
    distance: float  # bound on |u_0 - u*|^2
    chance: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.price < math.inf and 0 < self.distance < math.inf):
            raise InputError(f"Tradeoff(price={self.price}, distance={self.distance}): both are positive and finite.")
        _ = Utility(contraction=self.contraction, dim=self.dim, noise=0.0, chance=self.chance)

    def error(self, rho: float, rounds: int) -> float:
        """The bound on the expected squared error after `rounds` that cost rho-zCDP in all."""
        return float(self._errors(rho, np.array([rounds], dtype=np.float64))[0])

    def best_rounds(self, rho: float, *, most: int = 10_000) -> int:
        """The number of rounds with the least bound: more contract more, and each makes all of them noisier."""
        return int(np.argmin(self._errors(rho, np.arange(1.0, most + 1)))) + 1

    def _errors(self, rho: float, rounds: Array) -> Array:
        if not 0 < rho < math.inf:
            raise InputError(f"Tradeoff.error(rho={rho}): a budget is positive and finite; see budget(epsilon, delta).")
        unit = Utility(contraction=self.contraction, dim=self.dim, noise=1.0, chance=self.chance)
        left = unit.factor**rounds
        errors: Array = left * self.distance + (1 - left) * unit.floor * self.price * rounds / rho
        return errors


def budget(epsilon: float, delta: float) -> float:
    """The rho for which Gaussian releases of rho-zCDP in all are exactly (epsilon, delta)-DP."""
    from scipy.optimize import brentq

    from consenso.privacy import accountants
    from consenso.privacy.events import Bounded

    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise InputError(
            f"budget(epsilon={epsilon}, delta={delta}): epsilon is positive and finite, delta lies in (0, 1)."
        )

    def excess(log_rho: float) -> float:
        return math.log(max(accountants.epsilon(Bounded(math.exp(log_rho)), delta), 1e-300) / epsilon)

    # rho-zCDP is at most (rho + 2 sqrt(rho log 1/delta))-DP, and is more than epsilon-DP once rho exceeds it by far.
    root = math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))
    low, high = 2 * math.log(root), math.log(4 * epsilon + 4)
    while excess(high) < 0:
        high += 1
    return math.exp(brentq(excess, low, high, xtol=1e-13))


def zcdp_of(target: Target) -> float:
    """The budget of a target as that of Gaussian releases in zCDP."""
    if isinstance(target, Rho):
        return target.rho
    if isinstance(target, Mu):
        return target.mu**2 / 2
    if not isinstance(target, EpsilonDelta):
        raise InputError(f"zcdp_of({target}): Gaussian releases need a delta; state one.")
    return budget(target.epsilon, target.delta)
