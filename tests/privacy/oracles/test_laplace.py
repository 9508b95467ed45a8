"""Laplace iterations: global sensitivities by search, totals by their own formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from tests.privacy.oracles.laplace import LaplaceTotal, row_bound_1, softmax_gradient_gap, softmax_gradient_gap_2

from consenso.errors import PreconditionError
from consenso.privacy.accountants import epsilon, rdp
from consenso.privacy.events import Laplace, Repeated


def total(epsilon_per_iteration, iterations) -> LaplaceTotal:
    return LaplaceTotal(scale=1 / epsilon_per_iteration, sensitivity=1.0, iterations=iterations)


def renyi_total(e, iterations, delta):
    """Epsilon of the total by the closed form of one iteration and the standard conversion, minimised over orders."""
    a = 1 + np.exp(np.linspace(np.log(1e-3), np.log(1e5), 20001))
    one = np.logaddexp(np.log(a / (2 * a - 1)) + (a - 1) * e, np.log((a - 1) / (2 * a - 1)) - a * e) / (a - 1)
    return float(np.min(iterations * one + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1)))


@pytest.mark.parametrize(
    ("per_iteration", "iterations", "pure", "figure"),
    [
        (0.05, 20_000, 1000, 59.8),
        (0.1, 20_000, 2000, 167.6),
        (1.0, 20_000, 20_000, 7953),
        (5.0, 20_000, 100_000, 81_367),
        (0.01, 20_000, 200, 7.75),
        (0.01, 1_000_000, 10_000, 100.4),
    ],
)
def test_totals(per_iteration, iterations, pure, figure):
    theorem = total(per_iteration, iterations)
    assert per_iteration * iterations == pytest.approx(pure)
    assert renyi_total(per_iteration, iterations, 1e-6) == pytest.approx(figure, rel=2e-3)
    assert epsilon(theorem.event(), 1e-6) <= figure * 1.002


@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
def test_one_iteration_by_quadrature(order):
    e = 0.8
    x = np.linspace(-60, 60, 2_400_001)
    p, q = np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x - e)) / 2
    integral = np.log(np.sum(p**order * q ** (1 - order)) * (x[1] - x[0])) / (order - 1)
    assert rdp(total(e, 1).event(), order) == pytest.approx(integral, rel=1e-6)


@given(shares=st.lists(st.floats(0.01, 1), min_size=2, max_size=5), order=st.floats(1.1, 20), e=st.floats(0.05, 5))
def test_one_coordinate_is_the_worst_place_for_a_shift(shares, order, e):
    parts = np.array(shares) / np.sum(shares) * e
    spread = sum(rdp(total(float(part), 1).event(), order) for part in parts)
    assert spread <= rdp(total(e, 1).event(), order) * (1 + 1e-9)


@pytest.mark.parametrize(("target", "figure"), [(1.0, 0.00156), (10.0, 0.0124)])
def test_what_one_iteration_may_cost(target, figure):
    needed = brentq(lambda e: renyi_total(e, 20_000, 1e-6) - target, 1e-4, 0.1)
    assert needed == pytest.approx(figure, rel=5e-3)


def softmax_gradient(x, label, weights):
    scores = x @ weights
    h = np.exp(scores - scores.max())
    h /= h.sum()
    h[label] -= 1
    return np.outer(x, h)


def test_global_sensitivity_holds_and_is_approached():
    rng = np.random.default_rng(0)
    features, classes, records, bound = 4, 3, 7, 1.3
    worst = {"add-remove": 0.0, "replace-one": 0.0, "labels": 0.0}
    worst_2 = {"add-remove": 0.0, "replace-one": 0.0}
    for trial in range(4000):
        # Large weights saturate the softmax, where one record's gradient is the largest. The worst pair of records is
        # almost opposite, and both are given class 0 with certainty while their label is 1.
        weights = rng.normal(size=(features, classes)) * 10 ** rng.uniform(-1, 3)
        x, y = rng.normal(size=(2, features)) * (rng.random((2, features)) < 0.5)
        labels = rng.integers(classes, size=2)
        if trial == 0:
            weights = np.outer(np.eye(features)[0], 1e6 * np.array([1.0, -1.0, -1.0]))
            x, y = np.array([[1e-3, 1.0, 0.0, 0.0], [1e-3, -1.0, 0.0, 0.0]])
            labels = np.array([1, 1])
        one, two = (
            softmax_gradient(v * bound / max(np.abs(v).sum(), 1e-9), label, weights)
            for v, label in zip((x, y), labels, strict=True)
        )
        worst["add-remove"] = max(worst["add-remove"], np.abs(one).sum() / records)
        worst["replace-one"] = max(worst["replace-one"], np.abs(one - two).sum() / records)
        row = x * bound / max(np.abs(x).sum(), 1e-9)
        gap = softmax_gradient(row, 0, weights) - softmax_gradient(row, 1, weights)
        worst["labels"] = max(worst["labels"], np.abs(gap).sum() / records)
        one, two = (
            softmax_gradient(v * bound / max(np.linalg.norm(v), 1e-9), label, weights)
            for v, label in zip((x, y), labels, strict=True)
        )
        worst_2["add-remove"] = max(worst_2["add-remove"], np.linalg.norm(one) / records)
        worst_2["replace-one"] = max(worst_2["replace-one"], np.linalg.norm(one - two) / records)
    for adjacency, factor in (("add-remove", 2), ("replace-one", 4)):
        declared = softmax_gradient_gap(row_bound_1=bound, records=records, adjacency=adjacency)
        assert declared == pytest.approx(factor * bound / records)
        assert 0.99 * declared < worst[adjacency] <= declared * (1 + 1e-12)
        declared = softmax_gradient_gap_2(row_bound=bound, records=records, adjacency=adjacency)
        assert 0.99 * declared < worst_2[adjacency] <= declared * (1 + 1e-12)
    labels = softmax_gradient_gap(row_bound_1=bound, records=records, adjacency="replace-one", labels_only=True)
    assert 0.99 * labels < worst["labels"] <= labels * (1 + 1e-12)


def test_row_bounds():
    assert row_bound_1(features=784, entry_bound=1.0) == 784
    assert row_bound_1(features=16, row_bound=2.0) == 8.0
    assert row_bound_1(features=16, row_bound=2.0, entry_bound=0.1) == pytest.approx(1.6)
    with pytest.raises(PreconditionError, match="bounded"):
        row_bound_1(features=16)


def test_event_and_refusals():
    assert total(0.5, 11).event() == Repeated(Laplace(2.0, 1.0), 11)
    with pytest.raises(PreconditionError, match="global bound"):
        LaplaceTotal(scale=1.0, sensitivity=1.0, iterations=1, scale_from="data")
    with pytest.raises(PreconditionError, match="scale"):
        LaplaceTotal(scale=0.0, sensitivity=1.0, iterations=1)
    with pytest.raises(PreconditionError, match="iterations"):
        LaplaceTotal(scale=1.0, sensitivity=1.0, iterations=0)


def test_why_a_scale_from_the_data_is_refused():
    # In many dimensions even a one per cent change of scale tells the worlds apart: d (s - 1 - log s) nats of KL.
    features = 7840
    ratio = 1.01
    assert features * np.log(ratio) == pytest.approx(78, abs=0.1)  # log of the density ratio at the origin
    assert features * (1 / ratio - 1 + np.log(ratio)) > 0.3
