"""The paper's privacy theorems against exact values: linear losses, for which everything is Gaussian.

Each comparison satisfies the hypotheses that the paper states. All numbers are zCDP, or Renyi divergences of order 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.privacy.accountants import rdp
from consenso.privacy.events import Gaussian, repeat, reveal_coin
from consenso.privacy.theorems.inexact import prox_gap
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates
from experiments.paper000 import claims

ORDER = 2.0
RELAXATION = 0.5
LOOKED = 30  # visits among which the first that break Theorem 4 are looked for


def centralized(*, parties: int, rounds: int) -> dict[str, float]:
    """Theorem 2: Algorithm 2 as printed, linear losses. z_K is made from u_{K-1}, so it holds K - 1 noisy updates."""
    common: dict[str, Any] = {"lipschitz": 1.0, "step": 1.0, "parties": parties, "std": 1.0}
    ours = MeanOfNoisyStates(**common, rounds=rounds - 1, relaxation=RELAXATION)
    return {
        "printed": claims.printed_theorem_2(**common, rounds=rounds),
        "exact": _released(parties, rounds, step=1.0),
        "ours": ours.rho,
        # The reading with which the theorem is true: the prox has the step over n.
        "exact, step over n": _released(parties, rounds, step=1 / parties),
    }


def _released(parties: int, rounds: int, *, step: float) -> float:
    """Exact zCDP of z_K between gradients +1 and -1 of the first user: shift and noise of the printed lines themselves.

    Everything is linear, so z_K moves by the sum of its responses to each single draw of the noise.
    """
    draws = np.eye((rounds - 1) * parties).reshape(-1, rounds - 1, parties)
    silent = np.zeros((1, rounds - 1, parties))
    one, other = (_algorithm_2(silent, slope, step)[0] for slope in (1.0, -1.0))
    responses = _algorithm_2(draws, 0.0, step)
    return float((one - other) ** 2 / (2 * (responses @ responses)))


def _algorithm_2(noise: Array, slope: float, step: float) -> Array:
    """z_K of each of several runs with noise (runs, K - 1, users); the first user's loss is slope x, others have 0."""
    runs, updates, users = noise.shape
    u, slopes = np.zeros((runs, users)), np.zeros(users)
    slopes[0] = slope
    for k in range(updates):
        z = u.mean(axis=1, keepdims=True)  # no regularizer: its prox is the identity
        x = 2 * z - u - step * slopes
        u = u + 2 * RELAXATION * (x - z + noise[:, k] / 2)
    return np.asarray(u.mean(axis=1))


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
    # With the step over n even whoever sees every update learns less than is printed for the sums.
    seen = claims.printed_theorem_3_local(participations=1, lipschitz=1.0, step=1 / parties, std=std)
    return {
        "printed": ORDER * printed,
        "exact": math.log1p(excess),
        "ours": ours,
        "local, step over n": ORDER * seen,
    }


def local(*, participations: int, std: float) -> dict[str, float]:
    """Theorem 3, every update seen: a Gaussian mechanism each time."""
    printed = claims.printed_theorem_3_local(participations=participations, lipschitz=1.0, step=1.0, std=std)
    shift, noise = 4 * 0.5, 0.5 * std
    seen = repeat(_update(std), participations)
    return {"printed": printed, "exact": participations * (shift / noise) ** 2 / 2, "ours": rdp(seen, 2.0) / 2}


def decentralized(*, std: float, visits: int) -> dict[str, float]:
    """Theorem 4 with two users, over the random path: what the other user learns in so many visits, z_K not counted.

    User 2 knows its own state. After m visits of user 1 in a row it receives z, moved by s_m between the worlds, with
    the variance v_m of user 1's noise: s <- (s + 2 step L) / 2, v <- (v + std^2 / 4) / 4. It then knows user 1's state,
    so that every stretch starts anew, and the expectation over the next user is a recursion.
    """
    common: dict[str, Any] = {"lipschitz": 1.0, "step": 1.0, "parties": 2, "std": std}
    costs = _stretches(std, visits)
    exact = _averaged(costs, visits)
    printed = [ORDER * claims.printed_theorem_4(participations=1, **common) * k for k in range(visits + 1)]
    averages = [_averaged(costs, k) for k in range(1, min(visits, LOOKED) + 1)]

    def first(most: Callable[[int], float]) -> int:
        """The fewest visits with which the exact value is above the bound, 0 if none."""
        return next((k for k, cost in enumerate(averages, 1) if cost > most(k)), 0)

    return {
        "printed": printed[visits // 2],
        "printed, all visits": printed[visits],
        "exact": exact,
        "fails from": first(lambda k: printed[1] * k / 2),
        "fails from, all visits": first(lambda k: printed[k]),
        "ours": rdp(repeat(reveal_coin(_update(std), 1 / 2), visits), ORDER),
        "local, step over n": ORDER
        * claims.printed_theorem_3_local(participations=visits, lipschitz=1.0, step=0.5, std=std),
        "condition": std / (2 * math.sqrt(ORDER * (ORDER - 1))),  # above 1 where the theorem applies
    }


def _stretches(std: float, most: int) -> list[float]:
    """Renyi divergence of order 2 of what is received after m visits in a row, m = 0 .. most."""
    shift = variance = 0.0
    found = [0.0]
    for _ in range(most):
        shift, variance = (shift + 2) / 2, (variance + std**2 / 4) / 4
        found.append(ORDER * shift**2 / (2 * variance))
    return found


def _averaged(costs: list[float], visits: int) -> float:
    """Divergence of path and view: the next user is either with probability 1/2."""
    grown = np.exp((ORDER - 1) * np.array(costs[: visits + 1]))
    left = np.ones(visits + 1)  # by the length of the stretch under way
    for _ in range(visits):
        after = np.append(left[1:], left[-1])
        left = (after + grown * left[0]) / 2
    return math.log(left[0]) / (ORDER - 1)


def general(*, matrix: float, parties: int) -> dict[str, float]:
    """Theorem 7 with a constraint matrix that is a number below one."""
    common: dict[str, Any] = {"rounds": 1, "lipschitz": 1.0, "step": 1.0, "parties": parties, "std": 1.0}
    printed = claims.printed_theorem_7(**common, matrix_norm=matrix, smallest_singular_value=matrix)
    moved = 2 * matrix * (2 / parties) / matrix**2  # u moves twice as far as A x
    ours = Gaussian(1.0, 2 * prox_gap(step=1.0, lipschitz=1.0) / (parties * matrix))
    return {"printed": printed, "exact": moved**2 / 2, "ours": rdp(ours, 2.0) / 2}


def relaxed(*, contraction: float, relaxation: float) -> dict[str, float]:
    """Theorem 1: u <- u + relaxation (R(u) - u) with R(u) = -contraction u, with the proof's relaxation and with 1."""
    return {
        "factor": abs(1 - relaxation * (1 + contraction)),
        "factor at 1": abs(1 - 1.0 * (1 + contraction)),
        "largest": 2 / (1 + contraction),  # relaxation beyond which it diverges
    }


def recursion(*, parties: int, rounds: int) -> dict[str, float]:
    """Algorithm 3 without noise on a lasso of one feature, with z fed back as printed, and with the mean of the u."""
    targets, kappa = np.linspace(0.5, 1.5, parties), 0.1
    free = [_end(targets, 0.0, rounds, fed_back=fed_back) for fed_back in (True, False)]
    return {
        "minimiser": float(targets.mean() - kappa),  # of mean (x - b)^2 / 2 + kappa |x|
        "printed": _end(targets, kappa, rounds, fed_back=True),
        "ours": _end(targets, kappa, rounds, fed_back=False),
        "apart, r = 0": abs(free[0] - free[1]),
    }


def _end(targets: Array, kappa: float, rounds: int, *, fed_back: bool) -> float:
    """The last z, which is fed back into the mean, or not."""
    step = 0.5
    u, mean, z = np.zeros(len(targets)), 0.0, 0.0
    for _ in range(rounds):
        x = (2 * z - u + step * targets) / (1 + step)
        change = x - z  # relaxation 1/2
        u = u + change
        mean = (z if fed_back else mean) + float(change.mean())
        z = _shrunk(mean, step * kappa)
    return z


def _shrunk(value: float, threshold: float) -> float:
    return math.copysign(max(abs(value) - threshold, 0.0), value)


def _update(std: float) -> Gaussian:
    """One update of a party that is seen, in units of the relaxation, with step and Lipschitz constant 1."""
    return Gaussian(std, 2 * prox_gap(step=1.0, lipschitz=1.0))
