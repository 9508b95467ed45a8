"""A trusted curator: objective perturbation against exact one-dimensional laws, and second-moment sensitivities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.curator import (
    PreconditionedSteps,
    SecondMoment,
    second_moment_sensitivity,
    whitened_sum_sensitivity,
)

from consenso.errors import PreconditionError
from consenso.privacy.accountants import delta, epsilon, rdp
from consenso.privacy.events import Composed, Gaussian, ObjectivePerturbation, Repeated
from consenso.privacy.theorems.curator import PerturbedObjective


def theorem(**changes) -> PerturbedObjective:
    defaults = {"lipschitz": 1.0, "smoothness": 0.25, "strong_convexity": 1.0, "std": 2.0}
    return PerturbedObjective(**{**defaults, **changes})


def minimiser_density(rows, w, strong_convexity, std):
    """Log density of the minimiser of sum log(1 + exp(-a w)) + c w^2 / 2 + b w, b ~ N(0, std^2), on a grid of w."""
    slope, bend = strong_convexity * w, np.full_like(w, strong_convexity)
    for a in rows:
        p = 1 / (1 + np.exp(a * w))
        slope, bend = slope - a * p, bend + a * a * p * (1 - p)
    return -(slope**2) / (2 * std**2) - np.log(np.sqrt(2 * np.pi) * std) + np.log(bend)


@pytest.mark.parametrize("rows", [(), (1.0, 1.0, -1.0), (-1.0,) * 5])
@pytest.mark.parametrize(("strong_convexity", "std"), [(1.0, 2.0), (0.5, 1.0), (4.0, 3.0)])
def test_exact_laws_stay_within_the_bounds(rows, strong_convexity, std):
    w = np.linspace(-14 * std / strong_convexity - 12, 14 * std / strong_convexity + 12, 40_001)
    cell = w[1] - w[0]
    without = minimiser_density(rows, w, strong_convexity, std)
    with_one = minimiser_density((*rows, 1.0), w, strong_convexity, std)
    assert np.exp(without).sum() * cell == pytest.approx(1.0, abs=1e-8)
    event = theorem(strong_convexity=strong_convexity, std=std).event()
    for p, q in ((without, with_one), (with_one, without)):
        for order in (1.5, 2.0, 4.0):
            exact = np.log(np.sum(np.exp(order * p + (1 - order) * q)) * cell) / (order - 1)
            assert exact <= rdp(event, order) * (1 + 1e-9)
        for e in (0.1, 0.5, 1.0, 2.0):
            exact = np.sum(np.maximum(np.exp(p) - np.exp(e + q), 0.0)) * cell
            assert exact <= delta(event, e) * (1 + 1e-9) + 1e-12


def test_event_and_output_noise():
    assert theorem().event() == ObjectivePerturbation(0.5, 0.25)
    inexact = theorem(gradient_tolerance=0.01, output_std=0.3)
    assert inexact.event() == Composed((ObjectivePerturbation(0.5, 0.25), Gaussian(0.3, 2 * 0.01 / 1.0)))
    assert epsilon(inexact.event(), 1e-5) > epsilon(theorem().event(), 1e-5)


def test_a_small_gradient_is_close_to_the_minimiser():
    # J strongly convex with c: |w - w*| <= |grad J(w)| / c, so two worlds' errors differ by at most 2 tau / c.
    w, c = np.linspace(-5, 5, 2001), 0.7
    gradient = c * w - 1 / (1 + np.exp(w))
    best = w[np.argmin(np.abs(gradient))]
    assert np.all(np.abs(w - best) <= np.abs(gradient) / c + 1e-2)


def test_softmax_is_refused_because_its_hessian_is_not_of_rank_one():
    classes, smoothness, strong_convexity = 100, 0.5, 5.0
    p = np.full(classes, 1 / classes)
    hessian = np.diag(p) - np.outer(p, p)  # one record with |a| = 1
    log_determinant = np.linalg.slogdet(np.eye(classes) + hessian / strong_convexity)[1]
    assert log_determinant == pytest.approx(0.198, abs=1e-3)
    assert -np.log(1 - smoothness / strong_convexity) == pytest.approx(0.105, abs=1e-3)
    with pytest.raises(PreconditionError, match="rank one"):
        theorem(outputs=classes)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"adjacency": "replace-one"}, "add-remove"),
        ({"strong_convexity": 0.25}, "strong_convexity"),
        ({"smoothness": np.inf}, "SmoothedHinge"),
        ({"lipschitz": np.inf}, "Huber"),
        ({"gradient_tolerance": 0.1}, "output_std"),
    ],
)
def test_refusals(changes, named):
    with pytest.raises(PreconditionError, match=named):
        theorem(**changes)


def svec(matrix):
    upper = np.triu_indices(len(matrix), 1)
    return np.concatenate([np.diag(matrix), np.sqrt(2) * matrix[upper]])


def test_second_moment_sensitivities_hold_and_are_attained():
    rng = np.random.default_rng(0)
    bound, dim = 1.4, 4
    worst = {"add-remove": 0.0, "replace-one": 0.0}
    for _ in range(3000):
        a, b = rng.normal(size=(2, dim))
        if rng.random() < 0.5:
            b -= a * (a @ b) / (a @ a)
        a, b = (v * bound / np.linalg.norm(v) for v in (a, b))
        worst["add-remove"] = max(worst["add-remove"], np.linalg.norm(svec(np.outer(a, a))))
        worst["replace-one"] = max(worst["replace-one"], np.linalg.norm(svec(np.outer(a, a)) - svec(np.outer(b, b))))
    for adjacency, factor in (("add-remove", 1.0), ("replace-one", np.sqrt(2))):
        declared = second_moment_sensitivity(row_bound=bound, adjacency=adjacency)
        assert declared == pytest.approx(factor * bound**2)
        assert worst[adjacency] == pytest.approx(declared)
        assert SecondMoment(row_bound=bound, std=2.0, adjacency=adjacency).event() == Gaussian(2.0, declared)


@given(seed=st.integers(0, 2**32 - 1), clip=st.floats(0.1, 3))
def test_whitened_sums(seed, clip):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(2, 3)) * 3
    rows *= np.minimum(1, clip / np.linalg.norm(rows, axis=1))[:, None]
    slopes = rng.uniform(-1, 1, size=2)
    alone = np.linalg.norm(slopes[0] * rows[0])
    both = np.linalg.norm(slopes[0] * rows[0] - slopes[1] * rows[1])
    assert alone <= whitened_sum_sensitivity(slope_bound=1.0, clip=clip, adjacency="add-remove") * (1 + 1e-12)
    assert both <= whitened_sum_sensitivity(slope_bound=1.0, clip=clip, adjacency="replace-one") * (1 + 1e-12)


def test_preconditioned_steps_compose_as_gaussians():
    run = PreconditionedSteps(matrix_multiplier=10.0, step_multiplier=20.0, steps=80, adjacency="add-remove")
    assert run.event() == Composed((Gaussian(10.0, 1.0), Repeated(Gaussian(20.0, 1.0), 80)))
    mu_squared = 1 / 10.0**2 + 80 / 20.0**2
    assert rdp(run.event(), 2.0) == pytest.approx(2.0 * mu_squared / 2)
