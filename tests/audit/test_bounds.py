"""Lower bounds: known values, honesty over repetitions, and power."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, laplace, norm

from consenso.audit.bounds import GRID, Curve, ErrorCounts, area, evidence, lower_rate, upper_rate
from consenso.audit.families import curve_of, rule_out
from consenso.errors import InputError
from consenso.privacy.accountants import epsilon
from consenso.privacy.accountants.gaussian import epsilon as gaussian_epsilon
from consenso.privacy.accountants.gaussian import fnr
from consenso.privacy.events import (
    ZCDP,
    Bounded,
    Gaussian,
    Laplace,
    Mixture,
    Nothing,
    Pure,
    Repeated,
    Sampled,
)

DELTA = 1e-5


def gaussians(mu: float, trials: int, seed: int):
    rng = np.random.default_rng(seed)
    return rng.normal(size=trials), mu + rng.normal(size=trials)


def test_clopper_pearson() -> None:
    assert upper_rate(0, 20, 0.95) == pytest.approx(1 - 0.05 ** (1 / 20))
    assert upper_rate(20, 20, 0.95) == 1.0
    assert upper_rate(3, 50, 0.975) == pytest.approx(beta.ppf(0.975, 4, 47))
    assert lower_rate(3, 50, 0.975) == pytest.approx(beta.ppf(0.025, 3, 48))
    assert lower_rate(0, 50, 0.9) == 0.0
    # The bound fails with at most the stated probability, whatever the rate is.
    for rate in (0.01, 0.2, 0.5):
        failures = [upper_rate(k, 60, 0.9) < rate for k in range(61)]
        assert binom.pmf(np.flatnonzero(failures), 60, rate).sum() <= 0.1


def test_errors_rule_out_an_epsilon() -> None:
    errors = ErrorCounts(false_positives=0, negatives=1000, false_negatives=0, positives=1000, confidence=0.95)
    a, b = errors.upper
    assert a == b == pytest.approx(1 - 0.025 ** (1 / 1000))
    assert errors.epsilon(DELTA) == pytest.approx(math.log((1 - DELTA - b) / a))
    useless = ErrorCounts(false_positives=500, negatives=1000, false_negatives=500, positives=1000, confidence=0.95)
    assert (useless.epsilon(DELTA), useless.mu()) == (0.0, 0.0)


def test_the_area_allowed_by_epsilon_and_delta() -> None:
    for e, delta in ((0.5, 0.0), (2.0, 0.01)):
        values = np.maximum.reduce([1 - delta - math.exp(e) * GRID, math.exp(-e) * (1 - delta - GRID), 0 * GRID])
        assert Curve(values).area == pytest.approx(1 - (1 - delta) ** 2 / (1 + math.exp(e)), abs=2e-3)
        assert Curve(values).area >= 1 - (1 - delta) ** 2 / (1 + math.exp(e))


def test_the_area_allowed_by_gdp() -> None:
    for mu in (0.3, 1.0, 3.0):
        assert curve_of(Bounded(mu**2 / 2)).area == pytest.approx(norm.cdf(mu / math.sqrt(2)), abs=2e-3)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_the_area_is_estimated_with_its_confidence(mu: float) -> None:
    # 300 repetitions at 90 %: the number of failures exceeds 60 with probability below 1e-7.
    truth = norm.cdf(mu / math.sqrt(2))
    failures = sum(area(*gaussians(mu, 300, seed), 0.9).lower > truth for seed in range(300))
    assert failures <= 60
    assert area(*gaussians(mu, 300, 0), 0.9).estimate == pytest.approx(truth, abs=0.1)


def test_a_perfect_attack_proves_something_finite() -> None:
    zero, one = np.zeros(500), np.ones(500)
    found = area(zero, one, 0.95)
    assert found.estimate == 1.0
    assert found.lower == pytest.approx(0.05 ** (1 / 500))
    assert 3 < evidence(zero, one, delta=DELTA, confidence=0.95).epsilon(DELTA)[0] < 10


def test_power_at_epsilon_one() -> None:
    """Gaussian mechanism, epsilon 1, 20,000 trials: at least 85 % of it, in the mean and in nine of ten repetitions."""
    mu = 0.26805
    assert gaussian_epsilon(mu, DELTA) == pytest.approx(1.0, abs=1e-3)
    lower = []
    for seed in range(20):
        shown = evidence(*gaussians(mu, 20_000, seed), delta=DELTA, confidence=0.95)
        lower.append(rule_out(Bounded(mu**2 / 2), shown, DELTA))
    assert np.mean(lower) >= 0.88
    assert np.mean(np.array(lower) >= 0.85) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.26805, 1.5])
def test_honesty_over_a_hundred_repetitions(mu: float) -> None:
    """The bound exceeds the truth in at most 5 % of repetitions; 14 of 100 happen by chance with probability 3e-4."""
    truth = gaussian_epsilon(mu, DELTA)
    over = refuted = 0
    for seed in range(100):
        shown = evidence(*gaussians(mu, 2000, seed), delta=DELTA, confidence=0.95)
        over += max(shown.epsilon(DELTA)[0], rule_out(Bounded(mu**2 / 2), shown, DELTA)) > truth
        refuted += shown.refutes(curve_of(Bounded(mu**2 / 2)))
    assert over <= 13
    assert refuted <= 13


@pytest.mark.slow
def test_honesty_for_pure_privacy() -> None:
    rng = np.random.default_rng(0)
    over = 0
    for _ in range(100):
        zero, one = (laplace.rvs(loc=shift, size=1000, random_state=rng) for shift in (0.0, 1.0))
        shown = evidence(zero, one, delta=0.0, confidence=0.95)
        over += shown.epsilon(0.0)[0] > 1.0 or shown.refutes(curve_of(Laplace(1.0, 1.0)))
    assert over <= 13


def test_a_claim_of_half_the_epsilon_is_refuted() -> None:
    shown = evidence(*gaussians(1.0, 3000, 1), delta=DELTA, confidence=0.999)
    assert not shown.refutes(curve_of(Bounded(0.5)))
    assert shown.refutes(curve_of(Bounded(0.25)))
    assert shown.refutes(curve_of(ZCDP(0.125)))


EVENTS = [
    Gaussian(1.0, 1.0),
    Laplace(1.0, 0.6),
    Pure(1.0),
    ZCDP(0.5),
    Repeated(Mixture((0.5, 0.5), (Nothing(), Gaussian(1.0, 1.0))), 3),
    Repeated(Sampled(1.0, 0.7, 0.5, "replace-one"), 3),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_the_bound_within_a_family_agrees_with_the_verdict(event) -> None:
    claimed = epsilon(event, DELTA)
    assert epsilon(event.magnify(1.0), DELTA) == pytest.approx(claimed)
    assert epsilon(event.magnify(1.5), DELTA) > claimed > epsilon(event.magnify(0.5), DELTA)
    for mu in (0.4, 2.5):
        shown = evidence(*gaussians(mu, 3000, 3), delta=DELTA, confidence=0.99)
        lower = rule_out(event, shown, DELTA)
        assert (lower > claimed) is shown.refutes(curve_of(event))


def test_a_gaussian_family_is_that_of_gdp() -> None:
    shown = evidence(*gaussians(1.0, 5000, 4), delta=DELTA, confidence=0.95)
    assert rule_out(Bounded(0.5), shown, DELTA) == gaussian_epsilon(shown.mu, DELTA)
    assert 0.9 < shown.mu < 1.0


def test_curves_are_rounded_to_the_safe_side() -> None:
    curve = curve_of(Bounded(0.5))
    rates = np.random.default_rng(0).uniform(size=200)
    assert all(curve.at(rate) <= fnr(1.0, np.array([rate]))[0] + 1e-12 for rate in rates)


@pytest.mark.parametrize(("trials", "confidence", "named"), [(10, 0.95, "20 trials"), (100, 1.0, "confidence")])
def test_refusals(trials: int, confidence: float, named: str) -> None:
    with pytest.raises(InputError, match=named):
        evidence(np.zeros(trials), np.ones(trials), delta=DELTA, confidence=confidence)
