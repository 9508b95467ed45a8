"""Networked steps: exact sums of per-step costs, and gradients that must really be bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.networked import NetworkedSteps, projected_gradient_bound, stds_of_growing_budget

from consenso.errors import PreconditionError
from consenso.privacy.accountants import rdp
from consenso.privacy.events import Composed, Gaussian, Repeated


def theorem(**changes) -> NetworkedSteps:
    defaults = {
        "gradient_bound": 1.0,
        "bounded_by": "clipping",
        "records": 50,
        "penalty": 0.5,
        "degree": 3,
        "proximity": 1.0,
        "std": 0.1,
        "iterations": 10,
    }
    return NetworkedSteps(**{**defaults, **changes})


def update(gradient, *, w, heard, dual, penalty, proximity):
    """w+ = [proximity w + penalty sum_l (w + w_l) - dual - grad] / (2 penalty degree + proximity)."""
    pull = proximity * w + penalty * sum(w + other for other in heard) - dual - gradient
    return pull / (2 * penalty * len(heard) + proximity)


@pytest.mark.parametrize(("adjacency", "other"), [("replace-one", -1.0), ("add-remove", 0.0)])
def test_sensitivity_of_the_update(adjacency, other):
    state = {"w": 0.2, "heard": [0.1, -0.4, 0.3], "dual": 0.05, "penalty": 0.5, "proximity": 2.0}
    moved = update(1.0 / 50, **state) - update(other / 50, **state)
    assert theorem(proximity=2.0, adjacency=adjacency).sensitivities[0] == pytest.approx(abs(moved))


def test_constant_steps_are_grouped_and_varying_ones_summed():
    gap = 2 * 1.0 / (50 * (2 * 0.5 * 3 + 1.0))
    assert theorem().event() == Repeated(Gaussian(0.1, gap), 10)
    proximity = tuple(1 / n for n in range(1, 5))
    varying = theorem(proximity=proximity, std=(0.1, 0.2, 0.3, 0.4), iterations=4)
    event = varying.event()
    assert isinstance(event, Composed)
    expected = sum((2 / (50 * (3 + p))) ** 2 / (2 * s**2) for p, s in zip(proximity, (0.1, 0.2, 0.3, 0.4), strict=True))
    assert rdp(event, 2.0) == pytest.approx(2 * expected)


@given(first=st.floats(1e-4, 1e-1), decay=st.floats(0.8, 0.999), iterations=st.integers(1, 60))
def test_growing_budgets_sum_to_the_geometric_series(first, decay, iterations):
    base = theorem(iterations=iterations)
    stds = stds_of_growing_budget(base.sensitivities, first_rho=first, decay=decay)
    run = theorem(iterations=iterations, std=stds)
    by_hand = sum(first * decay ** -(n - 1) for n in range(1, iterations + 1))
    assert rdp(run.event(), 3.0) == pytest.approx(3.0 * by_hand, rel=1e-9)


def test_a_squared_loss_is_not_bounded():
    # (x, 1) -> (x, -10) at w = 0, loss (<x, w> - y)^2: the gradient moves by 22 instead of 2 c1 = 2.
    x, w = np.array([1.0]), np.array([0.0])
    gradient = lambda y: 2 * (x @ w - y) * x
    moved = np.linalg.norm(gradient(1.0) - gradient(-10.0))
    nominal = theorem(gradient_bound=1.0, records=1).sensitivities[0]
    really = moved / (2 * 0.5 * 3 + 1.0)
    std = stds_of_growing_budget([nominal], first_rho=0.01, decay=1.0)[0]
    assert (really / std) ** 2 / 2 == pytest.approx(1.21)
    with pytest.raises(PreconditionError, match="clip each record"):
        theorem(bounded_by="nothing")


@given(seed=st.integers(0, 2**32 - 1), radius=st.floats(0.1, 10), row=st.floats(0.1, 3), target=st.floats(0, 5))
def test_projection_bounds_the_gradient(seed, radius, row, target):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(2, 3))
    x *= row / np.linalg.norm(x)
    w *= radius / np.linalg.norm(w)
    gradient = 2 * (x @ w - target * np.sign(rng.normal())) * x
    bound = projected_gradient_bound(row_bound=row, radius=radius, target_bound=target)
    assert np.linalg.norm(gradient) <= bound * (1 + 1e-12)
    # Attained when the row points along the model and the target against it.
    aligned = x * (radius / row)
    assert np.linalg.norm(2 * (x @ aligned + target) * x) == pytest.approx(bound)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"noisy_history": False}, "noisy"),
        ({"gradient_bound": np.inf}, "gradient_bound"),
        ({"std": (0.1,) * 9}, "std"),
        ({"proximity": (1.0,) * 11}, "proximity"),
        ({"std": 0.0}, "std"),
        ({"penalty": 0.0, "proximity": 0.0}, "denominator"),
    ],
)
def test_refusals(changes, named):
    with pytest.raises(PreconditionError, match=named):
        theorem(**changes)


def test_an_unnoised_regulariser_adds_to_the_sensitivity():
    # R'(w) of the l1 norm at an un-noised iterate can flip all its signs.
    strength, dim = 0.01, 8
    signs = strength * np.ones(dim)
    moved = np.linalg.norm(signs - (-signs)) / (2 * 0.5 * 3 + 1.0)
    assert moved == pytest.approx(2 * strength * np.sqrt(dim) / 4.0)
    assert moved > theorem(records=1000).sensitivities[0]
