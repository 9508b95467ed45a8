"""Noise shares: what remains against a coalition, rounding, and sums of discrete Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.shares import NoiseShares, discreteness, encoded_sensitivity, share_std

from consenso.errors import PreconditionError
from consenso.privacy.events import ZCDP, Gaussian, Repeated


def theorem(**changes) -> NoiseShares:
    defaults = {
        "parties": 10,
        "absent": 3,
        "std": 6.0,
        "contribution": 1.0,
        "rounds": 5,
        "adjacency": "add-remove",
    }
    return NoiseShares(**{**defaults, **changes})


@given(parties=st.integers(2, 100), data=st.data())
def test_the_honest_others_alone_reach_the_planned_noise(parties, data):
    absent = data.draw(st.integers(0, parties - 2))
    share = share_std(std=2.0, parties=parties, absent=absent)
    assert (parties - absent - 1) * share**2 == pytest.approx(4.0)
    planned = theorem(parties=parties, absent=absent, std=2.0, colluders=absent)
    assert planned.remaining_std == pytest.approx(2.0)
    assert theorem(parties=parties, absent=absent, std=2.0).remaining_std >= 2.0 * (1 - 1e-12)


def test_a_coalition_beyond_the_plan_is_charged_what_it_really_learns():
    within = theorem(colluders=1, dropped=2)
    beyond = theorem(colluders=4, dropped=2)
    assert within.event() == Repeated(Gaussian(6.0, 1.0), 5)
    assert beyond.remaining == 3
    assert beyond.remaining_std == pytest.approx(6.0 * np.sqrt(3 / 6))
    with pytest.raises(PreconditionError, match="discard the round"):
        theorem(colluders=7, dropped=2)


def test_a_plan_needs_an_honest_other():
    with pytest.raises(PreconditionError, match="honest"):
        theorem(absent=9)
    assert theorem(absent=8, colluders=8).remaining == 1


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_rounding_before_summing(adjacency):
    rng = np.random.default_rng(0)
    dim, grid, bound = 6, 0.3, 1.0
    declared = encoded_sensitivity(contribution=bound, dim=dim, grid=grid, adjacency=adjacency)
    worst = 0.0
    for _ in range(3000):
        a, b = rng.normal(size=(2, dim))
        a, b = a * bound / np.linalg.norm(a), b * bound / np.linalg.norm(b)
        rounded = [np.round(v / grid) * grid for v in (a, b)]
        other = rounded[1] if adjacency == "replace-one" else np.zeros(dim)
        worst = max(worst, np.linalg.norm(rounded[0] - other))
    assert worst > bound  # rounding can lengthen a contribution
    assert worst <= declared
    assert declared == pytest.approx((1 + np.sqrt(6) * 0.15) * (2 if adjacency == "replace-one" else 1))


@pytest.mark.parametrize("share", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_the_bound_on_sums_of_discrete_gaussians(share, count):
    support = np.arange(-60, 61)
    one = np.exp(-(support**2) / (2 * share**2))
    one /= one.sum()
    many = one
    for _ in range(count - 1):
        many = np.convolve(many, one)
    wide = np.arange(-(len(many) // 2), len(many) // 2 + 1)
    target = np.exp(-(wide**2) / (2 * count * share**2))
    target /= target.sum()
    seen = np.abs(wide) <= 6 * np.sqrt(count) * share  # beyond, the convolution is below rounding error
    ratio = np.abs(np.log(many[seen]) - np.log(target[seen])).max()
    assert ratio <= discreteness(share=share, count=count) + 1e-9


def test_discrete_shares_cost_a_little_more_than_gaussian_ones():
    continuous = theorem()
    coarse = theorem(grid=1.0, dim=4)
    fine = theorem(grid=1e-6, dim=4)
    event = fine.event()
    assert isinstance(event, Repeated)
    assert isinstance(event.event, ZCDP)
    gaussian_rho = (continuous.sensitivity / continuous.remaining_std) ** 2 / 2
    assert event.event.rho == pytest.approx(gaussian_rho, rel=1e-5)
    assert event.event.rho > gaussian_rho
    assert coarse.event().event.rho > 3 * gaussian_rho  # rounding by half a step in four coordinates
    stated = theorem(grid=1e-9, dim=4, excess=1e-12)
    assert stated.event().event == Gaussian(stated.remaining_std, stated.sensitivity, 1e-12)


def test_shares_narrower_than_half_a_grid_step_are_refused():
    with pytest.raises(PreconditionError, match="finer grid"):
        theorem(grid=10.0)


@given(colluders=st.integers(0, 7), dropped=st.integers(0, 7))
def test_more_missing_shares_leave_less_noise(colluders, dropped):
    if colluders + dropped <= 7:
        fewer, more = theorem(colluders=colluders, dropped=dropped), theorem(colluders=colluders, dropped=dropped + 1)
        assert more.remaining_std < fewer.remaining_std
