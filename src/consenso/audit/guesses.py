"""What right guesses prove about a trade-off curve (Mahloujifar, Melis and Chaudhuri 2024, Algorithm 2).

Of m canaries, each in one of two versions by a fair coin, g are guessed and p_i is the chance that i guesses are right.
If exchanging the version of one canary is f-differentially private, then with

    r_i = sum over j >= i of p_j j / m,        h_i = sum over j >= i of p_j (g - j) / m,

it holds for every i that r_{i+1} <= 1 - f(h_i): were one right guess's canary exchanged, it would be wrong and i
others still right. If i or more guesses were right with chance t, then r_i >= t i / m at least; going down from there
the h and r that the inequality forces can only grow, and they must not exceed r_0 + h_0 = g / m. Where they do, t is
too large.

    h_i = max(h_{i+1}, inverse of 1 - f at r_{i+1}),        r_i = r_{i+1} + i / (g - i) (h_i - h_{i+1})

Unlike the bound for (epsilon, delta) this uses the whole curve, so a Gaussian claim is attacked as one. How many
canaries are guessed is settled before the coins are looked at: no part of the error probability is spent on the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtrinc, ndtri

from consenso.arrays import Array
from consenso.audit.bounds import GRID, Curve
from consenso.audit.families import find_loudest
from consenso.errors import InputError
from consenso.privacy import accountants
from consenso.privacy.accountants import gaussian
from consenso.privacy.events import Event

# The least false positive rate at which the power of a test can be r.
Inverse = Callable[[float], float]

LARGEST_MU = 32.0
# Shares of the canaries of which one is guessed: few are surer, many are more evidence.
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
# The mu for which guesses are planned where nothing is claimed.
USUAL_MU = 1.0
# Canaries of either version below which a spread is not estimated.
FEWEST_OF_A_VERSION = 10
_NORMAL = NormalDist()


def invert_gaussian(mu: float) -> Inverse:
    """The inverse of the power x -> Phi(Phi^-1(x) + mu) of the best test of a mu-GDP mechanism."""

    def inverse(power: float) -> float:
        if not 0.0 < power < 1.0:
            return 0.0 if power <= 0.0 else 1.0
        return 0.5 * math.erfc((mu - _NORMAL.inv_cdf(power)) / math.sqrt(2.0))

    return inverse


def invert_curve(curve: Curve) -> Inverse:
    """The inverse of the power that a trade-off curve allows, rounded down to the grid."""
    powers = 1.0 - curve.values

    def inverse(power: float) -> float:
        return float(GRID[max(0, int(np.searchsorted(powers, power)) - 1)])

    return inverse


def is_refuted(inverse: Inverse, canaries: int, guesses: int, right: int, level: float) -> bool:
    """Whether `right` or more right guesses have a chance below `level` under a trade-off curve."""
    if not 0 <= right <= guesses <= canaries:
        raise InputError(
            f"is_refuted(canaries={canaries}, guesses={guesses}, right={right}): at most all canaries are guessed, and "
            "at most all guesses are right."
        )
    whole = guesses / canaries
    wrong, good = level * (guesses - right) / canaries, level * right / canaries  # h and r of the head
    for count in range(right - 1, -1, -1):
        more = max(0.0, inverse(good) - wrong)
        wrong, good = wrong + more, good + count / (guesses - count) * more
        if good + wrong > whole:
            return True
    return False


def bound_mu(canaries: int, guesses: int, right: int, *, confidence: float) -> float:
    """The largest mu that this number of right guesses rules out for a mu-GDP run, 0 if it rules out none."""
    level = 1.0 - confidence

    def beaten(mu: float) -> bool:
        return is_refuted(invert_gaussian(mu), canaries, guesses, right, level)

    if not beaten(0.0):
        return 0.0
    low, high = 0.0, LARGEST_MU
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if beaten(middle) else (low, middle)
    return low


def bound_pair(scores: Array, coins: NDArray[np.bool_], *, confidence: float) -> float:
    """The largest mu that is ruled out if the scores of either version are independent and normal, alike in spread.

    The Gaussian pair of Andrew et al. 2023, with a confidence bound: the standardised difference of the two means has a
    non-central t distribution. It uses how large scores are and not only on which side of zero they lie. That canaries
    do not hide each other is taken for granted, so it says how loud a run is and refutes nothing.
    """
    heads = np.asarray(coins, dtype=np.bool_)
    one, zero = scores[heads], scores[~heads]
    if min(len(one), len(zero)) < FEWEST_OF_A_VERSION:
        return 0.0
    free = len(one) + len(zero) - 2
    spread = math.sqrt((np.square(one - one.mean()).sum() + np.square(zero - zero.mean()).sum()) / free)
    weight = math.sqrt(len(one) * len(zero) / (len(one) + len(zero)))
    gap = float(one.mean() - zero.mean())
    if gap <= 0.0 or spread == 0.0:
        return 0.0
    return max(0.0, float(nctdtrinc(free, confidence, weight * gap / spread)) / weight)


@lru_cache(maxsize=64)
def plan_guesses(event: Event | None, canaries: int, *, delta: float, confidence: float) -> int:
    """How many guesses would prove the most if the claim were exactly true and no canary hid another.

    As many as are considered where none of them would prove anything.
    """
    right = _count_right(event, canaries, delta)
    counts = sorted({max(1, int(share * canaries)) for share in SHARES})
    return max(counts, key=lambda count: (bound_mu(canaries, count, right[count - 1], confidence=confidence), count))


def bound_ideally(event: Event | None, canaries: int, *, delta: float, confidence: float) -> float:
    """The epsilon that this number of canaries proves if the claim is exactly true and no canary hides another."""
    guesses = plan_guesses(event, canaries, delta=delta, confidence=confidence)
    right = _count_right(event, canaries, delta)[guesses - 1]
    return bound_within(event, canaries, guesses, right, delta=delta, confidence=confidence)


def _count_right(event: Event | None, canaries: int, delta: float) -> list[int]:
    """How many of the surest guesses are right, by their number, where the claim is exactly true."""
    # Scores of version one, sorted; right where positive.
    ideal = mu_of_claim(event, delta) / 2 + ndtri((np.arange(canaries) + 0.5) / canaries)
    return [int(count) for count in np.cumsum(ideal[np.argsort(-np.abs(ideal))] > 0)]


def mu_of_claim(event: Event | None, delta: float) -> float:
    """The mu of the Gaussian mechanism that costs what is claimed: for planning only."""
    if event is None or delta == 0.0:
        return USUAL_MU
    claimed = accountants.epsilon(event, delta)
    low, high = 0.0, LARGEST_MU
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian.epsilon(middle, delta) <= claimed else (low, middle)
    return high


def bound_within(
    event: Event | None, canaries: int, guesses: int, right: int, *, delta: float, confidence: float
) -> float:
    """The epsilon of the loudest member of a claim's family that is ruled out; without a claim, of the Gaussian one."""
    if event is None or accountants.gdp(event) is not None:
        return gaussian.epsilon(bound_mu(canaries, guesses, right, confidence=confidence), delta)

    def refutes(claim: Curve) -> bool:
        return is_refuted(invert_curve(claim), canaries, guesses, right, 1.0 - confidence)

    return find_loudest(event, refutes, delta)
