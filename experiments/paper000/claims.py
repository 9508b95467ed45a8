"""Bounds as printed by Cyffers, Bellet and Basu 2023, as zCDP (their RDP at order alpha is alpha times this).

For comparison only. Theorem 3's local part is sound and tight; the others are not sound for the algorithms as printed,
see docs/privacy.md. Symbols: rounds K, lipschitz L, step gamma, parties n, std sigma.
"""

from __future__ import annotations

import math

# The relaxation that the proof of Theorem 1 arrives at, by contraction tau, with all blocks active.
PROOF_RELAXATION = {0.5: 2.56, 0.9: 18.5}


def printed_theorem_2(*, rounds: int, lipschitz: float, step: float, parties: int, std: float) -> float:
    """Centralized ADMM (Algorithm 2), only the final z shown."""
    return 8 * rounds * lipschitz**2 * step**2 / (parties**2 * std**2)


def printed_theorem_3_local(*, participations: int, lipschitz: float, step: float, std: float) -> float:
    """Federated ADMM (Algorithm 3), the server sees every update."""
    return 8 * participations * lipschitz**2 * step**2 / std**2


def printed_theorem_3_central(*, rounds: int, lipschitz: float, step: float, parties: int, std: float) -> float:
    """Federated ADMM (Algorithm 3), only sums over the sampled users shown."""
    return 16 * rounds * lipschitz**2 * step**2 / (parties**2 * std**2)


def printed_theorem_4(*, participations: int, lipschitz: float, step: float, parties: int, std: float) -> float:
    """Fully decentralized ADMM (Algorithm 4), what another user on the walk learns."""
    return 8 * participations * lipschitz**2 * step**2 * math.log(parties) / (parties * std**2)


def printed_theorem_7(
    *,
    rounds: int,
    lipschitz: float,
    step: float,
    parties: int,
    std: float,
    matrix_norm: float,
    smallest_singular_value: float,
) -> float:
    """General constraint matrix (Algorithm 5)."""
    return 8 * rounds * matrix_norm**2 * lipschitz**2 * step**2 / (parties**2 * smallest_singular_value**2 * std**2)


def code_budget(epsilon: float, delta: float) -> float:
    """The zCDP budget that the public code derives from (epsilon, delta): epsilon = rho + 2 sqrt(rho log 1/delta)."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def code_noise(*, rho: float, clip: float, rounds: int, users: int) -> float:
    """What the public code multiplies a standard normal with; it is the variance that it wants, for a mean over n."""
    return 2 * clip**2 * rounds / (rho * users**2)
