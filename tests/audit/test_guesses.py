"""What right guesses prove about a trade-off curve: valid as stated, and more than (epsilon, delta) can."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, ndtr
from scipy.stats import binom

from consenso.audit.families import curve_of
from consenso.audit.guesses import bound_mu, bound_within, invert_curve, invert_gaussian, is_refuted, plan_guesses
from consenso.audit.one_run import lower_bound, weigh
from consenso.audit.one_run_table import draw_coupled
from consenso.errors import InputError
from consenso.privacy.accountants import gaussian
from consenso.privacy.events import Gaussian, Pure

DELTA = 1e-5


def guess(mu: float, count: int, seed: int):
    """Independent canaries, each of which is released with Gaussian noise: exchanging one is mu-GDP."""
    rng = np.random.default_rng(seed)
    coins = rng.integers(2, size=count).astype(bool)
    return (coins - 0.5) * mu + rng.normal(size=count), coins


def test_epsilon_eight_with_two_thousand_canaries() -> None:
    mu = brentq(lambda mu: gaussian.epsilon(mu, DELTA) - 8.0, 0.5, 4.0)
    claim = Gaussian(std=1.0, sensitivity=mu)
    runs = [weigh(*guess(mu, 2000, seed), delta=DELTA, claim=claim) for seed in range(8)]
    assert all(run.within > 1.4 * run.lower > 0.0 for run in runs)
    assert np.mean([run.within for run in runs]) >= 0.6 * 8.0
    assert not any(run.refutes(8.0) for run in runs)
    # A leak that is planted, noise of half the scale, raises both; were a quarter of it claimed, it would be refuted.
    louder = weigh(*guess(2 * mu, 2000, seed=1), delta=DELTA, claim=claim)
    assert louder.lower > max(run.lower for run in runs)
    assert louder.within > max(run.within for run in runs)
    assert weigh(*guess(mu, 2000, seed=1), delta=DELTA, claim=Gaussian(std=1.0, sensitivity=mu / 4)).refutes(2.0)


def test_the_bound_holds_as_often_as_it_says() -> None:
    """At confidence 0.95 more than 7 of 40 bounds are wrong by chance less than once in 1e3."""
    guesses, over = plan_guesses(None, 100, delta=DELTA, confidence=0.95), 0
    for seed in range(40):
        scores, coins = guess(1.0, 100, seed)
        taken = np.argsort(-np.abs(scores))[:guesses]
        over += bound_mu(100, guesses, int(np.sum((scores[taken] > 0) == coins[taken])), confidence=0.95) > 1.0
    assert over <= 7


@pytest.mark.slow
def test_canaries_that_show_much_or_little_together_refute_no_true_claim() -> None:
    """Each canary is mu-GDP, whatever the others are. More than 7 of 40 bounds are wrong by chance once in 1e3.

    The number of right guesses then varies by much more than those of independent canaries do.
    """
    claim, over = Gaussian(std=1.0, sensitivity=1.0), 0
    epsilon, shown = gaussian.epsilon(1.0, DELTA), []
    for seed in range(40):
        scores, coins = draw_coupled(1.0, 400, seed)
        over += weigh(scores, coins, delta=DELTA, claim=claim).refutes(epsilon)
        shown.append(np.mean((scores > 0) == coins))
    assert over <= 7
    assert np.std(shown) > 4 * 0.5 / np.sqrt(400)


def test_without_a_difference_right_guesses_are_tosses_of_a_coin() -> None:
    """At mu = 0 a number of right guesses that is refuted must have a binomial tail below the level."""
    for right in range(50, 101):
        if is_refuted(invert_gaussian(0.0), 100, 100, right, 0.05):
            assert binom.sf(right - 1, 100, 0.5) < 0.05
    assert is_refuted(invert_gaussian(0.0), 100, 100, 75, 0.05)
    assert not is_refuted(invert_gaussian(0.0), 100, 100, 50, 0.05)


@pytest.mark.parametrize(("canaries", "guesses"), [(200, 200), (200, 40)])
def test_independent_canaries_never_refute_their_own_curve_too_often(canaries: int, guesses: int) -> None:
    """Guessing the first ones, right guesses are binomial with chance Phi(mu / 2): their tail is below the level."""
    chance = float(ndtr(0.6))
    for level in (0.05, 0.005):
        refuted = [r for r in range(guesses + 1) if is_refuted(invert_gaussian(1.2), canaries, guesses, r, level)]
        assert not refuted or binom.sf(refuted[0] - 1, guesses, chance) <= level
        assert refuted or guesses < canaries  # where all are guessed, it refutes something, too


def test_the_curve_on_its_grid_proves_a_little_less_than_the_formula() -> None:
    event = Gaussian(std=1.0, sensitivity=1.2)
    on_grid, exact = invert_curve(curve_of(event)), invert_gaussian(1.2)
    for power in (1e-4, 0.01, 0.3, 0.9, 0.999):
        assert exact(power) * 0.97 - 1e-9 <= on_grid(power) <= exact(power) + 1e-12


def test_a_claim_that_is_not_gaussian_is_attacked_by_its_own_shape() -> None:
    """Of pure privacy it is the binomial tail that decides, of which the recursion is an upper bound."""
    pure = Pure(1.0)
    for right in (200, 219, 240, 290):
        if is_refuted(invert_curve(curve_of(pure)), 300, 300, right, 0.05):
            assert binom.sf(right - 1, 300, expit(1.0)) < 0.05
    found = bound_within(pure, 300, 300, 290, delta=DELTA, confidence=0.95)
    assert 1.0 < found < lower_bound(300, 300, 290, delta=0.0, confidence=0.95) * 1.01


def test_more_right_guesses_prove_more() -> None:
    found = [bound_mu(500, 100, right, confidence=0.95) for right in (50, 70, 90, 100)]
    assert found == sorted(found)
    assert found[0] == 0.0 < found[1]


def test_refusals() -> None:
    with pytest.raises(InputError, match="at most all"):
        is_refuted(invert_gaussian(1.0), 10, 11, 3, 0.05)
