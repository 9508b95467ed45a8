"""What the runs of the public code really cost: proved for every pair of data sets, and exact for one pair.

Granted here: that kappa, the start and the scaling are public, which they are not. A user's updates u are clipped, so
each draw of a user is a Gaussian mechanism of shift 4 relaxation clip and noise relaxation std, for whoever sees the
updates. The worst pair is a user whose label is huge and positive in one world, huge and negative in the other: each of
its updates is then clipped to +-clip along its row, whatever z and u are. When the other rows lie across that row, what
the user adds to the sums is

    draws N ~ Binomial(K m, 1/n),  sum of all rounds along the row: +-2 clip N + N(0, K m std^2)

so that this one-dimensional pair is a lower bound for whoever sees the sums (z before it is thresholded, each round).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom, norm

from consenso.arrays import Array
from consenso.privacy.accountants import epsilon as cheapest
from consenso.privacy.events import Gaussian, repeat, reveal_coin
from experiments.paper000.claims import code_budget, code_noise
from experiments.paper000.published import ADMM_CLIP, ASSUMED_USERS, DELTA, ITERATIONS, SAMPLE, SGD_CLIP

RARE = 1e-14  # more draws than this quantile are left out: in the wrong world they are the least likely explanation


def spending(*, method: Literal["admm", "sgd"], epsilon: float, users: int) -> dict[str, float]:
    """True totals of a run of the public code at a nominal epsilon, replace-one, by who looks."""
    clip = ADMM_CLIP if method == "admm" else SGD_CLIP
    std = code_noise(rho=code_budget(epsilon, DELTA), clip=clip, rounds=ITERATIONS, users=ASSUMED_USERS)
    if method == "admm":
        draws, chance, moved = ITERATIONS * SAMPLE, 1 / users, 4 * clip
    else:
        # The sum of a batch is shortened as a whole: whoever is in the batch can turn it round, once a round.
        draws, chance, moved = ITERATIONS, 1 - (1 - 1 / users) ** SAMPLE, 2 * clip
    ratio = moved / std
    return {
        "at most": cheapest(repeat(reveal_coin(Gaussian(std, moved), chance), draws), DELTA),
        "seen, at least": _when_seen(ratio, draws, chance),
        "sums, at least": _from_the_total(ratio / 2, draws, chance),
        "one draw": ratio**2 / 2,
        "budget": code_budget(epsilon, DELTA),
    }


def _draws(draws: int, chance: float) -> tuple[Array, Array]:
    """Numbers of draws of one user and the logarithms of their probabilities."""
    counts = np.arange(int(binom.isf(RARE, draws, chance)) + 1)
    return counts.astype(float), binom.logpmf(counts, draws, chance)


def _when_seen(ratio: float, draws: int, chance: float) -> float:
    """Exact epsilon of the pair when it is seen who was drawn: given N draws, Gaussian with ratio sqrt(N)."""
    counts, logs = _draws(draws, chance)
    size = ratio * np.sqrt(counts[counts > 0])
    weights = np.exp(logs[counts > 0])

    def excess(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        gaps = norm.cdf(size / 2 - epsilon / size) - np.exp(epsilon + norm.logcdf(-size / 2 - epsilon / size))
        return float(weights @ gaps) - DELTA

    most = math.log(size[-1] ** 2 / 2 + 10 * size[-1])
    return math.exp(brentq(excess, -20.0, most, xtol=1e-10))


def _from_the_total(half: float, draws: int, chance: float) -> float:
    """Epsilon from the total along the row alone: +-half N + N(0, draws), cut at the best place.

    For SGD the noise is drawn once a round and `draws` are rounds, so the same formula holds.
    """
    counts, logs = _draws(draws, chance)
    shifts = half * counts / math.sqrt(draws)
    cuts = np.linspace(shifts[0] - 8, shifts[-1] + 8, 4001)
    above = logsumexp(logs + norm.logsf(cuts[:, None] - shifts), axis=1)
    wrongly = logsumexp(logs + norm.logsf(cuts[:, None] + shifts), axis=1)
    likely = np.exp(above) > DELTA
    gained = np.log(np.exp(above[likely]) - DELTA) - wrongly[likely]
    return float(max(0.0, gained.max()))
