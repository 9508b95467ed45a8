"""Noise: what is drawn has the scale that the event states, whatever the sampler, the round and the party."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from consenso.errors import InputError, PreconditionError
from consenso.privacy import accountants
from consenso.privacy.events import GammaNorm, Gaussian, Laplace, Nothing, Unbounded, sum_releases
from consenso.privacy.noise import (
    Constant,
    GammaNormNoise,
    GaussianNoise,
    Geometric,
    LaplaceNoise,
    NoNoise,
    PerRound,
    Polynomial,
)
from consenso.privacy.samplers import Key, Safe, Seeded

# The probability that a right sampler fails a statistical test: per seed for Seeded, per run for Safe().
FALSE_ALARM = 1e-9
SAMPLERS = [pytest.param(Seeded(17), id="seeded"), pytest.param(Safe(), id="safe")]


def key_of(parties, round=0):  # noqa: A002
    return Key(parties=np.arange(parties), round=round, release=0, repetition=0)


def within(statistic, expected, variance, count):
    """Whether a mean of `count` draws of this variance lies where it should, up to the false-alarm rate."""
    return abs(statistic - expected) < stats.norm.isf(FALSE_ALARM / 2) * math.sqrt(variance / count)


# --- the sample has the scale of the event ---------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("round", [0, 5])
def test_gaussian_sample_and_event_agree(sampler, round):  # noqa: A002
    noise = GaussianNoise(multiplier=Geometric(first=1.5, ratio=0.8))
    values = np.full((4, 5000), -3.0)
    event = noise.event(0.3, 0.3, round, sampler, 5000)
    assert isinstance(event, Gaussian)
    drawn = (noise.sample(values, 0.3, round, key_of(4, round), sampler) - values) / event.std
    assert stats.kstest(drawn.ravel(), "norm").pvalue > FALSE_ALARM
    assert within((drawn**2).mean(), 1.0, 2.0, drawn.size)
    assert event.std == pytest.approx(0.3 * 1.5 * 0.8 ** (round / 2), rel=1e-14)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_laplace_sample_and_event_agree(sampler):
    noise = LaplaceNoise(multiplier=Polynomial(first=4.0, power=-1.0))
    values = np.full((4, 5000), 7.0)
    event = noise.event(0.3, 0.3, 3, sampler, 5000)
    assert isinstance(event, Laplace)
    assert event.scale == pytest.approx(0.3)
    drawn = (noise.sample(values, 0.3, 3, key_of(4), sampler) - values) / event.scale
    assert stats.kstest(drawn.ravel(), "laplace").pvalue > FALSE_ALARM
    assert within(np.abs(drawn).mean(), 1.0, 1.0, drawn.size)


def test_gamma_norm_sample_and_event_agree():
    noise, dim = GammaNormNoise(multiplier=2.0), 5
    event = noise.event(0.3, 0.3, 0, Seeded(1), dim)
    assert event == GammaNorm(scale=0.6, sensitivity=0.3, dim=dim)
    assert accountants.pure(event) == pytest.approx(0.5)
    radius = np.linalg.norm(noise.sample(np.zeros((8000, dim)), 0.3, 0, key_of(8000), Seeded(1)), axis=1)
    scale = event.scale
    assert stats.kstest(radius, "gamma", args=(dim, 0.0, scale)).pvalue > FALSE_ALARM
    assert within(radius.mean() / scale, dim, dim, radius.size)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_party_gets_the_noise_of_its_own_sensitivity(sampler):
    noise, sensitivities = GaussianNoise(multiplier=2.0), np.array([0.0, 0.1, 1.0, 30.0])
    scales = noise.scale(sensitivities, 0)
    np.testing.assert_array_equal(scales, 2.0 * sensitivities)
    drawn = noise.sample(np.ones((4, 4000)), sensitivities, 0, key_of(4), sampler) - 1.0
    assert (drawn[0] == 0.0).all()
    for row, sensitivity in zip(drawn[1:], sensitivities[1:], strict=True):
        event = noise.event(float(sensitivity), float(sensitivity), 0, sampler, 4000)
        assert within((row**2).mean() / event.std**2, 1.0, 2.0, row.size)


@given(
    noise=st.sampled_from([GaussianNoise, LaplaceNoise, GammaNormNoise]),
    multiplier=st.floats(1e-3, 1e3),
    noise_sensitivity=st.floats(1e-3, 1e3),
    ratio=st.floats(0.1, 10.0),
    round=st.integers(0, 50),
)
def test_cost_depends_on_multiplier_and_ratio_of_sensitivities(noise, multiplier, noise_sensitivity, ratio, round):  # noqa: A002
    seen = ratio * noise_sensitivity
    made = noise(multiplier=Polynomial(first=multiplier, power=-0.5))
    event = made.event(noise_sensitivity, seen, round, Seeded(0), 3)
    now = multiplier / math.sqrt(round + 1)
    scale = event.std if isinstance(event, Gaussian) else event.scale
    assert scale == made.scale(noise_sensitivity, round)
    assert event.sensitivity == seen
    assert event.sensitivity / scale == pytest.approx(ratio / now)
    assert accountants.excess(event) == 0.0


# --- what a discrete sampler adds to the event -----------------------------------------------------------------------


def test_safe_events_carry_the_rounding_and_the_excess():
    safe, dim = Safe(), 400
    gaussian = GaussianNoise(multiplier=1.0).event(2.0, 3.0, 0, safe, dim)
    step = safe.grid(2.0, 2.0, dim)
    # Both worlds are rounded, each entry by half a step at most.
    assert gaussian.sensitivity >= 3.0 + math.sqrt(dim) * step
    assert gaussian.sensitivity == pytest.approx(3.0, rel=1e-6)
    assert gaussian.sensitivity > 3.0
    assert gaussian.excess == safe.excess(2.0, 2.0, dim, "gaussian") > 0.0
    laplace = LaplaceNoise(multiplier=1.0).event(2.0, 3.0, 0, safe, dim)
    assert laplace.sensitivity >= 3.0 + dim * step
    assert laplace.sensitivity == pytest.approx(3.0, rel=1e-6)
    assert laplace.excess == 0.0


def test_the_event_covers_two_worlds_that_are_rounded_apart():
    # Without noise to hide it: the integers that enter the sampler differ by no more than the event says.
    safe, dim, rng = Safe(), 50, np.random.default_rng(3)
    event = GaussianNoise(multiplier=1.0).event(1.0, 1.0, 0, safe, dim)
    step = safe.grid(1.0, 1.0, dim)
    for _ in range(200):
        one = rng.normal(size=dim) * 1e3
        move = rng.normal(size=dim)
        other = one + move / np.linalg.norm(move)
        apart = np.linalg.norm(np.rint(one / step) * step - np.rint(other / step) * step)
        # `other` itself is rounded to doubles of size 1e3.
        assert apart <= event.sensitivity + math.sqrt(dim) * np.spacing(4e3)
    halves = (np.arange(dim) % 2) * 2.0 - 1.0
    apart = np.linalg.norm(np.rint(0.51 * halves) - np.rint(-0.49 * halves)) * step
    assert apart == pytest.approx(math.sqrt(dim) * step)


@pytest.mark.parametrize(
    "noise", [GaussianNoise(multiplier=1.0), LaplaceNoise(multiplier=1.0), GammaNormNoise(multiplier=1.0)]
)
def test_events_are_plain_numbers(noise):
    event = noise.event(np.float64(2.0), np.float64(3.0), 0, Seeded(0), 3)
    assert {type(value) for value in dataclasses.astuple(event)} <= {float, int}


def test_safe_refuses_gamma_norm_before_anything_is_released():
    with pytest.raises(PreconditionError, match="simulation only"):
        GammaNormNoise(multiplier=1.0).event(1.0, 1.0, 0, Safe(), 3)
    with pytest.raises(PreconditionError, match="simulation only"):
        GammaNormNoise(multiplier=1.0).sample(np.zeros((1, 3)), 1.0, 0, key_of(1), Safe())


# --- bounds that are zero, infinite or wrong -------------------------------------------------------------------------

NOISES = [GaussianNoise(multiplier=1.0), LaplaceNoise(multiplier=1.0), GammaNormNoise(multiplier=1.0)]


@pytest.mark.parametrize("noise", [*NOISES, NoNoise()])
def test_a_value_that_does_not_depend_on_the_unit_costs_nothing(noise):
    assert noise.event(1.0, 0.0, 0, Seeded(0), 3) == Nothing()
    assert noise.event(0.0, 0.0, 0, Seeded(0), 3) == Nothing()


@pytest.mark.parametrize("noise", [*NOISES, NoNoise()])
def test_an_unbounded_unit_has_no_guarantee(noise):
    event = noise.event(1.0, math.inf, 0, Seeded(0), 3)
    assert isinstance(event, Unbounded)
    assert event.reason


@pytest.mark.parametrize("noise", NOISES)
def test_noise_scaled_with_zero_protects_nobody(noise):
    assert noise.event(0.0, 1.0, 0, Seeded(0), 3) == Unbounded("released without noise")
    values = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(noise.sample(values, 0.0, 0, key_of(2), Seeded(0)), values)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sensitivity", [math.inf, math.nan, -1.0, np.array([1.0, math.inf])])
def test_noise_needs_a_finite_sensitivity(noise, sensitivity):
    with pytest.raises(PreconditionError, match="finite sensitivity"):
        noise.scale(sensitivity, 0)
    with pytest.raises(PreconditionError, match="finite sensitivity"):
        noise.sample(np.zeros((2, 3)), sensitivity, 0, key_of(2), Seeded(0))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("seen", [math.nan, -1.0])
def test_a_seen_sensitivity_is_a_number(noise, seen):
    with pytest.raises(InputError, match="seen_sensitivity"):
        noise.event(1.0, seen, 0, Seeded(0), 3)


@pytest.mark.parametrize("noise", [*NOISES, NoNoise()])
def test_nan_is_refused(noise):
    with pytest.raises(InputError, match="NaN"):
        noise.sample(np.array([[math.nan]]), 1.0, 0, key_of(1), Seeded(0))


def test_no_noise_returns_the_value_and_claims_nothing():
    values = np.arange(4.0).reshape(2, 2)
    released = NoNoise().sample(values, 1.0, 0, key_of(2), Seeded(0))
    np.testing.assert_array_equal(released, values)
    assert released is not values
    assert NoNoise().scale(1.0, 0) == 0.0
    np.testing.assert_array_equal(NoNoise().scale(np.ones(3), 0), np.zeros(3))
    assert NoNoise().event(1.0, 1.0, 0, Seeded(0), 2) == Unbounded("released without noise")


@pytest.mark.parametrize("make", [GaussianNoise, LaplaceNoise, GammaNormNoise])
@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.inf, math.nan, "1", True, None])
def test_multipliers_are_positive(make, multiplier):
    with pytest.raises(InputError, match="multiplier="):
        make(multiplier=multiplier)


# --- schedules -------------------------------------------------------------------------------------------------------


def test_schedules_say_what_they_are():
    assert [Constant(value=2.0).at(k) for k in (0, 9)] == [2.0, 2.0]
    assert [Geometric(first=2.0, ratio=0.25).at(k) for k in range(3)] == [2.0, 1.0, 0.5]
    assert [Polynomial(first=6.0, power=-1.0).at(k) for k in range(3)] == [6.0, 3.0, 2.0]
    assert [PerRound(values=[3.0, 1.0]).at(k) for k in range(2)] == [3.0, 1.0]
    variances = [GaussianNoise(multiplier=Geometric(first=3.0, ratio=0.9)).scale(1.0, k) ** 2 for k in range(20)]
    np.testing.assert_allclose(np.divide(variances[1:], variances[:-1]), 0.9)


@pytest.mark.parametrize(
    "schedule", [Constant(value=1.0), Geometric(first=1.0, ratio=0.5), PerRound(values=(1.0, 2.0))]
)
def test_schedules_are_data(schedule):
    assert dataclasses.replace(schedule) == schedule
    assert hash(schedule) == hash(dataclasses.replace(schedule))
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.first = 2.0


def test_a_schedule_that_runs_out_is_refused():
    with pytest.raises(InputError, match="2 rounds"):
        PerRound(values=(1.0, 2.0)).at(2)
    with pytest.raises(InputError, match="2 rounds"):
        PerRound(values=(1.0, 2.0)).at(-1)
    with pytest.raises(PreconditionError, match="round 5000"):
        GaussianNoise(multiplier=Geometric(first=1.0, ratio=0.5)).event(1.0, 1.0, 5000, Seeded(0), 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(value=0.0),
        lambda: Geometric(first=1.0, ratio=0.0),
        lambda: Geometric(first=-1.0, ratio=0.5),
        lambda: Polynomial(first=0.0, power=1.0),
        lambda: Polynomial(first=1.0, power=math.inf),
        lambda: PerRound(values=(1.0, 0.0)),
    ],
)
def test_bad_schedules_are_refused(make):
    with pytest.raises(InputError):
        make()


# --- shares of a secure sum ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_shares_add_up_to_the_whole(sampler):
    whole = GaussianNoise(multiplier=PerRound(values=(3.0,)))
    share = whole.split(25)
    assert share.scale(0.2, 0) == pytest.approx(whole.scale(0.2, 0) / 5.0)
    assert share.split(4).scale(0.2, 0) == pytest.approx(whole.scale(0.2, 0) / 10.0)
    total = share.sample(np.zeros((25, 800)), 0.2, 0, key_of(25), sampler).sum(axis=0)
    stated = sum_releases(share.event(0.2, 0.2, 0, sampler, 800), 25)
    assert stated.std == pytest.approx(whole.event(0.2, 0.2, 0, sampler, 800).std)
    assert within((total**2).mean() / stated.std**2, 1.0, 2.0, total.size)


@pytest.mark.parametrize("noise", [LaplaceNoise(multiplier=1.0), GammaNormNoise(multiplier=1.0)])
def test_laws_that_are_no_sums_have_no_shares(noise):
    assert noise.split(1) == noise
    with pytest.raises(PreconditionError, match="do not add up"):
        noise.split(2)


@pytest.mark.parametrize("noise", [*NOISES, NoNoise()])
@pytest.mark.parametrize("count", [0, -1, 2.0, True])
def test_shares_are_counted(noise, count):
    with pytest.raises(InputError, match="count="):
        noise.split(count)


def test_no_noise_is_its_own_share():
    assert NoNoise().split(3) == NoNoise()
