"""What a budget is in zCDP."""

from __future__ import annotations

import math

from consenso.errors import InputError
from consenso.privacy.calibrate import EpsilonDelta, Mu, Rho, Target


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
