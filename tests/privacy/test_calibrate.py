"""Calibrating: never beyond the target, hardly below it, and an explanation when there is no way."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consenso.errors import InputError
from consenso.privacy import accountants
from consenso.privacy.accountants import epsilon, gdp, pure, zcdp
from consenso.privacy.calibrate import (
    EpsilonDelta,
    Mu,
    PureEpsilon,
    Rho,
    Target,
    calibrate_noise,
)
from consenso.privacy.events import (
    Composed,
    Event,
    Gaussian,
    Laplace,
    Mixture,
    Nothing,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Sampled,
    SampledFixedSize,
    TokenWalk,
    Unbounded,
    repeat,
    reveal_coin,
)

TARGET = EpsilonDelta(epsilon=1.0, delta=1e-5)

noisy: dict[str, Callable[[float], Event]] = {
    "gaussian": lambda z: repeat(Gaussian(z, 1.0), 100),
    "laplace": lambda z: repeat(Laplace(z, 1.0), 50),
    "sampled": lambda z: repeat(Sampled(z, 1.0, 0.05, "add-remove"), 500),
    "sampled both": lambda z: repeat(Sampled(z, 1.0, 0.05, "replace-one"), 500),
    "revealed": lambda z: repeat(reveal_coin(Gaussian(z, 1.0), 0.05), 200),
    "fixed size": lambda z: repeat(SampledFixedSize(z, 1.0, 5, 100), 20),
    "walk": lambda z: TokenWalk(1 / z**2, 50, 60, 1, True),
    "objective": lambda z: ObjectivePerturbation(1 / z, 0.1),
    "objective with output noise": lambda z: Composed((ObjectivePerturbation(1 / z, 0.1), Gaussian(30 * z, 1.0))),
    "inexact sampler": lambda z: repeat(Gaussian(z, 1.0, 1e-12), 100),
}


@pytest.mark.parametrize("kind", noisy)
def test_noise_spends_the_target_and_no_more(kind: str) -> None:
    found = calibrate_noise(noisy[kind], TARGET)
    assert 0.999 <= epsilon(noisy[kind](found), TARGET.delta) <= 1.0
    assert epsilon(noisy[kind](found * (1 - 1e-4)), TARGET.delta) > 1.0


@given(st.floats(0.05, 30.0), st.floats(-12, -3), st.integers(1, 10_000))
def test_gaussian_noise_is_found_to_a_millionth(target: float, power: float, rounds: int) -> None:
    goal = EpsilonDelta(epsilon=target, delta=10.0**power)
    found = calibrate_noise(lambda z: repeat(Gaussian(z, 1.0), rounds), goal)
    assert epsilon(repeat(Gaussian(found, 1.0), rounds), goal.delta) <= target
    assert epsilon(repeat(Gaussian(found * (1 - 2e-6), 1.0), rounds), goal.delta) > target


@settings(max_examples=3)
@given(st.floats(0.2, 8.0), st.sampled_from([1e-6, 1e-9]), st.floats(0.005, 0.3), st.integers(10, 3000))
def test_noise_of_sampled_rounds_is_found(target: float, delta: float, rate: float, rounds: int) -> None:
    goal = EpsilonDelta(epsilon=target, delta=delta)
    build = lambda z: repeat(Sampled(z, 1.0, rate, "add-remove"), rounds)
    found = calibrate_noise(build, goal)
    assert 0.999 * target <= epsilon(build(found), delta) <= target


def test_other_currencies_are_met_too() -> None:
    gaussians = lambda z: repeat(Gaussian(z, 1.0), 40)
    rho = zcdp(gaussians(calibrate_noise(gaussians, Rho(rho=0.3))))
    mu = gdp(gaussians(calibrate_noise(gaussians, Mu(mu=0.7))))
    laplaces = lambda z: repeat(Laplace(z, 1.0), 40)
    eps = pure(laplaces(calibrate_noise(laplaces, PureEpsilon(epsilon=2.0))))
    for spent, target in ((rho, 0.3), (mu, 0.7), (eps, 2.0)):
        assert spent is not None
        assert target * (1 - 2e-6) <= spent <= target


def test_the_tight_cost_is_asked_for_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    tight = accountants.epsilon

    def counting(event: Event, delta: float) -> float:
        asked.append(event)
        return tight(event, delta)

    monkeypatch.setattr("consenso.privacy.calibrate.epsilon", counting)
    calibrate_noise(noisy["sampled"], TARGET)
    assert len(asked) <= 9


@pytest.mark.parametrize(
    ("calibrate", "build", "target", "reason"),
    [
        (calibrate_noise, lambda z: ObjectivePerturbation(1 / z, 0.9), TARGET, "at least 2.30259 with any noise"),
        (calibrate_noise, lambda z: Unbounded("nothing is clipped"), TARGET, "nothing is clipped"),
        (calibrate_noise, lambda z: Mixture((0.5, 0.5), (Gaussian(z, 1.0), Unbounded("x"))), TARGET, "may leave"),
        (
            calibrate_noise,
            lambda z: Gaussian(z, 1.0),
            PureEpsilon(epsilon=1.0),
            "no finite cost of the kind PureEpsilon",
        ),
        (calibrate_noise, lambda z: Laplace(z, 1.0), Mu(mu=1.0), "no finite cost of the kind Mu"),
        (calibrate_noise, lambda z: Composed((Pure(3.0), Gaussian(z, 1.0))), TARGET, "does not depend"),
        (calibrate_noise, lambda z: Nothing(), TARGET, "met without noise"),
    ],
)
def test_what_cannot_be_met_is_explained(
    calibrate: Callable[[Callable[[float], Event], Target], float],
    build: Callable[[float], Event],
    target: Target,
    reason: str,
) -> None:
    with pytest.raises(InputError, match=reason):
        calibrate(build, target)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize(
    "target",
    [
        lambda bad: EpsilonDelta(epsilon=bad, delta=1e-5),
        lambda bad: Rho(rho=bad),
        lambda bad: PureEpsilon(epsilon=bad),
        lambda bad: Mu(mu=bad),
    ],
)
def test_targets_are_positive_and_finite(target: Callable[[float], Target], bad: float) -> None:
    with pytest.raises(InputError, match="positive and finite"):
        target(bad)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, math.nan])
def test_a_target_has_a_proper_delta(bad: float) -> None:
    with pytest.raises(InputError, match="delta"):
        EpsilonDelta(epsilon=1.0, delta=bad)


def test_repeats_of_a_repeat_are_calibrated_like_any_event() -> None:
    build = lambda z: Repeated(Composed((Repeated(Gaussian(z, 1.0), 10), Gaussian(2 * z, 1.0))), 7)
    found = calibrate_noise(build, Mu(mu=1.0))
    assert found == pytest.approx(math.sqrt(70 + 7 / 4), rel=2e-6)
