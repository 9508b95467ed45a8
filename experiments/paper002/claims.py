"""The (epsilon, delta) of Huang and Gong's Theorem 6, with the constant c_0 that they leave open.

For comparison only. The exact guarantee is that of mu-GDP with mu = sqrt(t l) / sigma; `needed_constant` is the c_0
with which the printed formula would equal it, so the formula is valid exactly where c_0 is at least that.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.stats import norm


def printed_epsilon(*, multiplier: float, rounds: int, inner_steps: int, delta: float, constant: float = 1.0) -> float:
    """Theorem 6: epsilon = c_0 sqrt(2 t l ln(1.25/delta)) / sigma."""
    return constant * math.sqrt(2 * rounds * inner_steps * math.log(1.25 / delta)) / multiplier


def printed_mu(*, epsilon: float, delta: float, constant: float = 1.0) -> float:
    """The mu of Gaussian differential privacy that the noise of Theorem 6 has at this epsilon, whatever t and l."""
    return epsilon / (constant * math.sqrt(2 * math.log(1.25 / delta)))


def printed_proof_constant(delta: float) -> float:
    """The value of c_0 that the proof of Theorem 6 arrives at."""
    return math.sqrt(math.log(1 / delta) / math.log(1.25 / delta))


def exact_delta(*, epsilon: float, mu: float) -> float:
    """Delta of mu-GDP at epsilon."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu)))


def needed_constant(*, epsilon: float, delta: float) -> float:
    """Smallest c_0 with which the printed formula is valid at this epsilon, whatever t, l and sigma."""
    mu = brentq(lambda mu: exact_delta(epsilon=epsilon, mu=mu) - delta, 1e-3, 100.0, xtol=1e-14)
    return float(epsilon / (mu * math.sqrt(2 * math.log(1.25 / delta))))


def largest_valid_epsilon(*, delta: float, constant: float = 1.0) -> float:
    """Up to which epsilon the printed formula is valid with this c_0."""
    return float(brentq(lambda epsilon: needed_constant(epsilon=epsilon, delta=delta) - constant, 1.0, 40.0))
