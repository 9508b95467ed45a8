"""Objective perturbation in every round: densities of minimisers by brute force, Jacobians, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from consenso.errors import PreconditionError
from consenso.losses import Huber, Logistic, SmoothedHinge
from consenso.privacy.accountants import epsilon, pure
from consenso.privacy.events import Composed, Gaussian, ObjectivePerturbation, Pure, Repeated
from consenso.privacy.theorems.dual_perturbation import DualPerturbedRounds, jacobian_cost

LOSSES = [Logistic(), Huber(threshold=0.7), SmoothedHinge(smoothing=0.5)]
ROW_BOUND, WEIGHT = 1.5, 0.4


def theorem(**changes) -> DualPerturbedRounds:
    defaults = {"lipschitz": 1.0, "smoothness": 0.25, "strong_convexity": 0.5, "scale": 2.0, "rounds": 3}
    return DualPerturbedRounds(**{**defaults, **changes})


def of_loss(loss, *, strong_convexity, scale, **changes) -> DualPerturbedRounds:
    return theorem(
        lipschitz=WEIGHT * loss.lipschitz(ROW_BOUND),
        smoothness=WEIGHT * loss.smoothness(ROW_BOUND),
        strong_convexity=strong_convexity,
        scale=scale,
        rounds=1,
        **changes,
    )


def target(loss, rng) -> float:
    return float(rng.choice([-1.0, 1.0])) if loss.targets == "sign" else float(rng.uniform(-1, 1))


def log_density(loss, rows, targets, grid, *, strong_convexity, pull, scale):
    """Of the minimiser of sum WEIGHT phi(a w, y) + S/2 w^2 - pull w + b w, b of density exp(-|b|/scale)/(2 scale)."""
    scores, labels = np.outer(rows, grid), np.repeat(targets, len(grid))
    slopes = loss.slope(scores.ravel(), labels).reshape(scores.shape)
    curvatures = loss.curvature(scores.ravel(), labels).reshape(scores.shape)
    gradient = WEIGHT * (rows[:, None] * slopes).sum(axis=0)
    hessian = WEIGHT * (rows[:, None] ** 2 * curvatures).sum(axis=0)
    noise = pull - strong_convexity * grid - gradient
    return -np.abs(noise) / scale - math.log(2 * scale) + np.log(strong_convexity + hessian)


def world(loss, rng, count):
    rows = rng.choice([0.3, 0.8, 1.0], size=count) * rng.choice([-1, 1], size=count) * ROW_BOUND
    return rows, np.array([target(loss, rng) for _ in range(count)])


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_density_is_that_of_the_minimiser(loss):
    rng = np.random.default_rng(3)
    rows, targets = world(loss, rng, 4)
    strength, pull, scale = 0.6, 0.3, 0.8
    grid = np.linspace(-60, 60, 600001)
    density = np.exp(log_density(loss, rows, targets, grid, strong_convexity=strength, pull=pull, scale=scale))
    below = integrate.cumulative_trapezoid(density, grid, initial=0.0)
    assert below[-1] == pytest.approx(1.0, abs=1e-3)

    def minimiser(noise: float) -> float:
        slope = lambda w: WEIGHT * float(rows @ loss.slope(rows * w, targets)) + strength * w - pull + noise
        return optimize.brentq(slope, -1e3, 1e3, xtol=1e-12)

    drawn = [minimiser(noise) for noise in rng.laplace(scale=scale, size=2000)]
    # False alarm: 1e-4 for each of the three losses.
    assert stats.kstest(drawn, lambda w: np.interp(w, grid, below)).pvalue > 1e-4


@given(
    seed=st.integers(0, 2**32 - 1),
    which=st.integers(0, len(LOSSES) - 1),
    strength=st.floats(0.05, 3.0),
    scale=st.floats(0.2, 5.0),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
)
def test_no_density_ratio_exceeds_epsilon(seed, which, strength, scale, adjacency):
    loss, rng = LOSSES[which], np.random.default_rng(seed)
    rows, targets = world(loss, rng, 3)
    other_rows, other_targets = rows[1:], targets[1:]
    if adjacency == "replace-one":
        row, label = world(loss, rng, 1)
        other_rows, other_targets = np.append(other_rows, row), np.append(other_targets, label)
    settings_ = {"strong_convexity": strength, "pull": float(rng.normal()), "scale": scale}
    grid = np.linspace(-30, 30, 6001) + 1e-5
    ratio = log_density(loss, rows, targets, grid, **settings_) - log_density(
        loss, other_rows, other_targets, grid, **settings_
    )
    cost = of_loss(loss, strong_convexity=strength, scale=scale, adjacency=adjacency).event()
    assert isinstance(cost, Pure)
    assert np.abs(ratio).max() <= cost.epsilon + 1e-9


def test_epsilon_is_nearly_reached_and_the_jacobian_is_needed():
    # The hinge's parabola where it meets the line: slope and curvature are both full, and the pull aligns the noise.
    loss, strength, scale = SmoothedHinge(smoothing=0.02), 0.05, 1.0
    grid = np.linspace(-40, 40, 400001)
    settings_ = {"strong_convexity": strength, "pull": -2.0, "scale": scale}
    one = log_density(loss, np.array([ROW_BOUND]), np.array([1.0]), grid, **settings_)
    none = log_density(loss, np.zeros(0), np.zeros(0), grid, **settings_)
    event = of_loss(loss, strong_convexity=strength, scale=scale, adjacency="add-remove").event()
    assert isinstance(event, Pure)
    reached = np.abs(one - none).max()
    assert WEIGHT * ROW_BOUND / scale < 0.2 * reached, "noise alone would have to pay for it"
    assert 0.999 * event.epsilon < reached <= event.epsilon


@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 6), records=st.integers(1, 9), strength=st.floats(0.01, 3.0))
def test_jacobian_of_several_records(seed, dim, records, strength):
    rng = np.random.default_rng(seed)
    most = 0.3
    rows = rng.normal(size=(records, dim))
    # Half of the time on orthogonal axes at the bound, where the determinant is largest.
    if seed % 2:
        rows = np.eye(dim)[np.arange(records) % dim]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    curvatures = np.full(records, most) if seed % 2 else rng.uniform(0, most, size=records)
    others = rng.normal(size=(4, dim))
    ground = strength * np.eye(dim) + (others.T @ others if seed % 3 else 0.0)
    unit = rows.T @ (curvatures[:, None] * rows)
    cost = np.linalg.slogdet(ground + unit)[1] - np.linalg.slogdet(ground)[1]
    bound = jacobian_cost(smoothness=most, strong_convexity=strength, records=records, dim=dim)
    assert 0 <= cost <= bound * (1 + 1e-9) + 1e-12
    if seed % 2 and seed % 3 == 0 and records % dim == 0:
        assert cost == pytest.approx(bound)  # equal eigenvalues attain it
    assert bound <= records * math.log1p(most / strength) + 1e-12


def test_costs_by_hand():
    assert pure(theorem().event()) == pytest.approx(3 * (2 * 1.0 / 2.0 + math.log(1.5)))
    assert pure(theorem(adjacency="add-remove").event()) == pytest.approx(3 * (1.0 / 2.0 + math.log(1.5)))
    user = theorem(unit="party", records=8, dim=3)
    assert pure(user.event()) == pytest.approx(3 * (1.0 + 3 * math.log(1 + 8 * 0.25 / (3 * 0.5))))
    inexact = theorem(tolerance=1e-8, output_scale=1e-5)
    assert pure(inexact.event()) == pytest.approx(3 * (1.0 + math.log(1.5) + 2e-3))


def test_equal_rounds_are_grouped_and_others_listed():
    assert theorem().event() == Repeated(Pure(1.0 + math.log1p(0.5)), 3)
    falling = theorem(scale=(4.0, 2.0, 1.0)).event()
    assert isinstance(falling, Composed)
    assert pure(falling) == pytest.approx(0.5 + 1 + 2 + 3 * math.log(1.5))
    # Pure rounds compose better than they add up once a little delta is allowed.
    many = theorem(rounds=200, scale=100.0, smoothness=1e-4)
    assert epsilon(many.event(), 1e-5) < 0.5 * pure(many.event())


def test_gaussian_rounds_are_objective_perturbations_with_noise_on_the_output():
    run = theorem(law="gaussian", adjacency="add-remove", tolerance=1e-9, output_scale=1e-6, excess=1e-200)
    assert run.event() == Composed(
        (Repeated(ObjectivePerturbation(0.5, 0.5), 3), Repeated(Gaussian(1e-6, 2e-9, 1e-200), 3))
    )
    assert theorem(law="gaussian", adjacency="add-remove").event() == Repeated(ObjectivePerturbation(0.5, 0.5), 3)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"lipschitz": math.inf}, "Huber"),
        ({"smoothness": math.inf}, "SmoothedHinge"),
        ({"strong_convexity": 0.0}, "strong_convexity"),
        ({"scale": 0.0}, "scale"),
        ({"scale": (1.0, 2.0)}, "scale"),
        ({"rounds": 0}, "rounds"),
        ({"tolerance": 1e-9}, "output_scale"),
        ({"outputs": 3}, "rank one"),
        ({"records": 4}, "unit='party'"),
        ({"law": "gaussian"}, "add-remove"),
        ({"law": "gaussian", "adjacency": "add-remove", "smoothness": 0.5}, "outweigh"),
        ({"law": "gaussian", "adjacency": "add-remove", "unit": "party"}, "records under"),
        ({"excess": 1e-200}, "excess"),
    ],
)
def test_refusals(changes, named):
    with pytest.raises(PreconditionError, match=named):
        theorem(**changes)
