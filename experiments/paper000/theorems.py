"""The paper's privacy theorems against exact values: linear losses, for which everything is Gaussian.

Each comparison satisfies the hypotheses that the paper states. All numbers are zCDP, or Renyi divergences of order 2.
"""

from __future__ import annotations

import math

import numpy as np

from consenso.privacy.accountants import rdp
from consenso.privacy.events import Gaussian, repeat, reveal_coin
from consenso.privacy.theorems import MeanOfNoisyStates, prox_gap
from experiments.paper000 import claims

ORDER = 2.0


def centralized(*, parties: int, rounds: int) -> dict[str, float]:
    """Theorem 2: with linear losses the mean is a Gaussian random walk with a drift, shown at the end only."""
    common = {"rounds": rounds, "lipschitz": 1.0, "step": 1.0, "parties": parties, "std": 1.0}
    relaxation = 0.5
    shift = rounds * 2 * relaxation * 2 / parties
    variance = rounds * parties * (relaxation / parties) ** 2
    ours = MeanOfNoisyStates(**common, relaxation=relaxation)
    return {"printed": claims.printed_theorem_2(**common), "exact": shift**2 / (2 * variance), "ours": ours.rho}


def federated(*, parties: int, sampled: int, std: float) -> dict[str, float]:
    """Theorem 3, sums only: one round of a sample, by quadrature."""
    printed = claims.printed_theorem_3_central(rounds=1, lipschitz=1.0, step=1.0, parties=parties, std=std)
    rate, shift = sampled / parties, 2 / (math.sqrt(sampled) * std)
    x = np.linspace(-12, 12, 40_001)
    worlds = []
    for sign in (1, -1):
        present, absent = np.exp(-((x - sign * shift) ** 2) / 2), np.exp(-(x**2) / 2)
        worlds.append(((1 - rate) * absent + rate * present) / math.sqrt(2 * math.pi))
    excess = float(np.sum((worlds[0] - worlds[1]) ** 2 / worlds[1]) * (x[1] - x[0]))  # chi squared: order 2
    ours = rdp(reveal_coin(_update(std), rate), ORDER)
    return {"printed": ORDER * printed, "exact": math.log1p(excess), "ours": ours}


def local(*, participations: int, std: float) -> dict[str, float]:
    """Theorem 3, every update seen: a Gaussian mechanism each time."""
    printed = claims.printed_theorem_3_local(participations=participations, lipschitz=1.0, step=1.0, std=std)
    shift, noise = 4 * 0.5, 0.5 * std
    seen = repeat(_update(std), participations)
    return {"printed": printed, "exact": participations * (shift / noise) ** 2 / 2, "ours": rdp(seen, 2.0) / 2}


def decentralized(*, std: float) -> dict[str, float]:
    """Theorem 4 with two users: what the other receives after one visit has the visited user's noise alone on it."""
    parties, relaxation = 2, 0.5
    printed = claims.printed_theorem_4(participations=1, lipschitz=1.0, step=1.0, parties=parties, std=std)
    shift, noise = 4 * relaxation / parties, relaxation * std / parties
    return {"printed": printed, "exact": shift**2 / (2 * noise**2), "ours": rdp(_update(std), 2.0) / 2}


def general(*, matrix: float, parties: int) -> dict[str, float]:
    """Theorem 7 with a constraint matrix that is a number below one."""
    common = {"rounds": 1, "lipschitz": 1.0, "step": 1.0, "parties": parties, "std": 1.0}
    printed = claims.printed_theorem_7(**common, matrix_norm=matrix, smallest_singular_value=matrix)
    moved = 2 * matrix * (2 / parties) / matrix**2  # u moves twice as far as A x
    ours = Gaussian(1.0, 2 * prox_gap(step=1.0, lipschitz=1.0) / (parties * matrix))
    return {"printed": printed, "exact": moved**2 / 2, "ours": rdp(ours, 2.0) / 2}


def _update(std: float) -> Gaussian:
    """One update of a party that is seen, in units of the relaxation, with step and Lipschitz constant 1."""
    return Gaussian(std, 2 * prox_gap(step=1.0, lipschitz=1.0))
