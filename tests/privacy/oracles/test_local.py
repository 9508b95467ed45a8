"""The local view: one prox moves by at most 2 step lipschitz, and that is all that one update can tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.local import LocalView

from consenso.errors import PreconditionError
from consenso.privacy.events import Gaussian, Repeated
from consenso.privacy.theorems.inexact import prox_gap

numbers = st.floats(0.05, 20)


def rho(event) -> float:
    parts = [(event.event, event.count)] if isinstance(event, Repeated) else [(event, 1)]
    return sum(count * (part.sensitivity / part.std) ** 2 / 2 for part, count in parts)


def prox_piecewise(v, slopes, offsets, step):
    """Prox of max_k(slopes_k x + offsets_k) on the line, by the best of all pieces and kinks."""
    candidates = [v - step * s for s in slopes]
    for i, (s, a) in enumerate(zip(slopes, offsets, strict=True)):
        for t, b in list(zip(slopes, offsets, strict=True))[i + 1 :]:
            if abs(s - t) > 1e-6:  # kinks of nearly parallel pieces are far outside
                candidates.append((b - a) / (s - t))
    x = np.array(candidates)
    values = np.max(np.outer(x, slopes) + offsets, axis=1) + (x - v) ** 2 / (2 * step)
    return x[np.argmin(values)]


def test_one_participation_costs_eight_step_squared_lipschitz_squared_over_variance():
    view = LocalView(participations=5, step=0.3, lipschitz=2.0, std=1.7)
    assert rho(view.event()) == pytest.approx(8 * 5 * 0.3**2 * 2.0**2 / 1.7**2)


def test_the_cost_is_that_of_the_printed_update_for_a_linear_loss():
    # u+ - u = 2 lam (prox(2z - u) - z) + lam eta; for f = <g, x> the prox is a translation by -step g.
    step, lam, std, z, u = 0.4, 0.3, 1.1, 0.7, -0.2
    means = [2 * lam * ((2 * z - u - step * g) - z) for g in (2.0, -2.0)]
    exact = (means[0] - means[1]) ** 2 / (2 * (lam * std) ** 2)
    assert rho(LocalView(participations=1, step=step, lipschitz=2.0, std=std).event()) == pytest.approx(exact)


def test_noise_on_the_residual_is_half_of_the_noise_on_the_update():
    # delta = 2 lam (residual + noise): the noise enters the update as lam * (2 noise).
    on_residual = LocalView.on_residual(participations=1, step=1.0, lipschitz=1.0, residual_std=0.5)
    assert rho(on_residual.event()) == pytest.approx((2 * 1.0) ** 2 / (2 * 0.5**2))


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_clipped_residuals(adjacency):
    # A removed party has no records: its prox is the identity, and its clipped residual may point away from the other.
    view = LocalView(participations=3, clip=0.6, std=1.3, adjacency=adjacency)
    assert rho(view.event()) == pytest.approx(8 * 3 * 0.6**2 / 1.3**2)


def test_a_removed_party_is_half_as_far_away_as_a_replaced_one():
    # Linear loss: the prox moves by step times the gradient; without records it does not move.
    step, lipschitz, z, u = 0.4, 2.0, 0.7, -0.2
    moved = 2 * abs((2 * z - u - step * lipschitz) - (2 * z - u))
    view = LocalView(participations=1, step=step, lipschitz=lipschitz, std=1.0, adjacency="add-remove")
    assert view.sensitivity == pytest.approx(moved)
    inexact = LocalView(
        participations=1, step=step, lipschitz=lipschitz, tolerance=0.1, std=1.0, adjacency="add-remove"
    )
    assert inexact.sensitivity == pytest.approx(moved + 4 * 0.1)


def test_clip_and_lipschitz_together_give_the_smaller():
    loose = LocalView(participations=1, step=1.0, lipschitz=1.0, clip=5.0, std=1.0)
    tight = LocalView(participations=1, step=1.0, lipschitz=1.0, clip=0.2, std=1.0)
    assert loose.sensitivity == pytest.approx(4.0)
    assert tight.sensitivity == pytest.approx(0.8)


@given(
    v=st.floats(-10, 10),
    step=st.floats(0.05, 5),
    a=st.lists(st.tuples(st.floats(-1, 1), st.floats(-3, 3)), min_size=1, max_size=4),
    b=st.lists(st.tuples(st.floats(-1, 1), st.floats(-3, 3)), min_size=1, max_size=4),
)
def test_no_pair_of_lipschitz_convex_functions_beats_the_prox_gap(v, step, a, b):
    first = prox_piecewise(v, *map(np.array, zip(*a, strict=True)), step)
    second = prox_piecewise(v, *map(np.array, zip(*b, strict=True)), step)
    assert abs(first - second) <= prox_gap(step=step, lipschitz=1.0) + 1e-9


def test_inexact_proxes_add_twice_the_tolerance():
    view = LocalView(participations=1, step=0.5, lipschitz=1.0, tolerance=0.1, std=1.0)
    assert view.sensitivity == pytest.approx(2 * (2 * 0.5 * 1.0 + 2 * 0.1))
    # A solver that errs towards the outside in both worlds attains it on linear losses.
    worst = (-0.5 * 1.0 - 0.1) - (0.5 * 1.0 + 0.1)
    assert 2 * abs(worst) == pytest.approx(view.sensitivity)


def test_the_certificate_bounds_the_distance_to_the_exact_prox():
    # F(x) = |x| + (x - v)^2 / (2 step), smooth away from 0: the exact prox of v > step is v - step.
    step, v = 0.7, 3.0
    for x in np.linspace(0.2, 5, 49):
        gradient = abs(1 + (x - v) / step)
        assert abs(x - (v - step)) <= step * gradient + 1e-12


@given(std=numbers, more=st.floats(1.01, 10), step=numbers, lipschitz=numbers)
def test_more_noise_costs_less_and_longer_steps_cost_more(std, more, step, lipschitz):
    base = rho(LocalView(participations=2, step=step, lipschitz=lipschitz, std=std).event())
    assert rho(LocalView(participations=2, step=step, lipschitz=lipschitz, std=std * more).event()) < base
    assert rho(LocalView(participations=2, step=step * more, lipschitz=lipschitz, std=std).event()) > base
    assert rho(LocalView(participations=3, step=step, lipschitz=lipschitz, std=std).event()) > base


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "lipschitz"),
        ({"lipschitz": 1.0}, "step"),
        ({"step": 1.0, "lipschitz": np.inf}, "Huber"),
        ({"clip": 1.0, "std": 0.0}, "std"),
        ({"clip": 1.0, "participations": 0}, "participations"),
        ({"clip": 1.0, "tolerance": -1.0}, "tolerance"),
    ],
)
def test_refusals(arguments, named):
    with pytest.raises(PreconditionError, match=named):
        LocalView(**{"participations": 1, "std": 1.0, **arguments})


def test_a_single_participation_is_a_plain_gaussian():
    assert LocalView(participations=1, clip=1.0, std=2.0).event() == Gaussian(2.0, 4.0)
