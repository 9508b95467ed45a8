"""Metrics: powers, proxes against their optimality conditions, and what a noisy second moment shows."""

from __future__ import annotations

import numpy as np
import pytest

from consenso.metric import (
    Metric,
    NoisyMetric,
    denoise,
    estimate_metric,
    lower_to,
    measure_signal,
    pack_symmetric,
    refine_metric,
    unpack_symmetric,
)
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty, Regularizer, Unpenalized


def matrix_of(features: int, condition: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(features, features)))
    return (basis * np.geomspace(1.0, 1.0 / condition, features)) @ basis.T


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("strength", [1e-8, 0.3, 1e9])
@pytest.mark.parametrize("free", [0, 1, 2])
def test_the_prox_of_a_square_solves_its_equations(free: int, strength: float, outputs: int) -> None:
    features, step = 7, 0.4
    matrix, v = matrix_of(features, 1e4), np.random.default_rng(1).normal(size=features * outputs)
    square: Regularizer = L2(strength=strength)
    regularizer = Unpenalized(inner=square, last=free * outputs) if free else square
    x = Metric.of(matrix).prox(regularizer, v, step).reshape(features, outputs)
    penalty = strength * (np.arange(features) < features - free)
    expected = np.linalg.solve(matrix / step + np.diag(penalty), matrix @ v.reshape(features, outputs) / step)
    assert x == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    "regularizer",
    [
        L1(strength=0.05),
        ElasticNet(l1=0.05, l2=0.2),
        Box(low=-0.3, high=0.2),
        Unpenalized(inner=L1(strength=0.05), last=1),
        Unpenalized(inner=L2(strength=0.3), last=1),
    ],
    ids=repr,
)
def test_no_point_near_a_prox_is_better(regularizer: Regularizer) -> None:
    rng, step = np.random.default_rng(2), 0.7
    matrix, v = matrix_of(6, 50.0), rng.normal(size=6)

    def objective(x: np.ndarray) -> float:
        inside = regularizer.prox(x, 1.0) if regularizer.is_constraint else x
        return float(regularizer.value(inside) + (inside - v) @ matrix @ (inside - v) / (2 * step))

    x = Metric.of(matrix).prox(regularizer, v, step)
    for scale in (1e-4, 1e-2, 1.0):
        for move in rng.normal(size=(200, 6)) * scale:
            assert objective(x + move) >= objective(x) - 1e-9


def test_a_round_metric_is_the_ordinary_prox() -> None:
    v = np.array([1.0, -0.2, 3.0])
    assert Metric.round(2.0).prox(L1(strength=0.5), v, 1.0) == pytest.approx(L1(strength=0.5).prox(v, 0.5))
    assert Metric.round(2.0).prox(Unpenalized(inner=NoPenalty(), last=1), v, 1.0) == pytest.approx(v)


def test_powers_undo_each_other() -> None:
    matrix, x = matrix_of(5, 100.0), np.arange(10.0)
    metric = Metric.of(matrix)
    assert metric.apply(metric.apply(x, -0.5), 0.5) == pytest.approx(x)
    assert metric.apply(x, 1.0) == pytest.approx((matrix @ x.reshape(5, 2)).ravel())
    assert metric.power(0.5) @ metric.power(0.5) == pytest.approx(matrix)


def test_packing_keeps_lengths_and_can_be_undone() -> None:
    matrix = matrix_of(6, 10.0)
    upper = pack_symmetric(matrix[None])
    assert float(np.linalg.norm(upper)) == pytest.approx(float(np.linalg.norm(matrix)))
    assert unpack_symmetric(upper[0], 6) == pytest.approx(matrix)


def test_two_looks_see_the_matrix_that_one_exact_look_sees() -> None:
    matrix = matrix_of(8, 1e3)
    first = estimate_metric(matrix, 0.0, 0.3, 1e-12)
    assert first.metric.power(1.0) == pytest.approx(matrix, abs=1e-9)
    assert first.effective == pytest.approx(8.0)
    # A first release whose noise hides small directions is mended by a second one in its coordinates.
    hidden = estimate_metric(matrix, 0.05, 0.3, 1e-12).metric
    whitened = hidden.power(-0.5) @ matrix @ hidden.power(-0.5)
    assert refine_metric(hidden, whitened, 0.0, 0.3, 1e-12).metric.power(1.0) == pytest.approx(matrix, abs=1e-9)


def test_eigenvalues_are_cleaned_of_noise() -> None:
    """A direction that stands out, many that hide below the noise, all alike."""
    p, noise, rng = 120, 0.02, np.random.default_rng(0)
    direction = np.linalg.qr(rng.normal(size=(p, p)))[0][0]
    matrix = 0.05 * np.eye(p) + 0.9 * np.outer(direction, direction)
    upper = pack_symmetric(matrix[None])[0]
    noisy = unpack_symmetric(upper + noise * rng.normal(size=len(upper)), p)
    seen = estimate_metric(noisy, noise, 0.5, 1e-9)
    truth = np.sum(seen.metric.vectors * (matrix @ seen.metric.vectors), axis=0)
    found = seen.metric.values - seen.lift
    assert np.abs(found - truth).max() < 0.1
    spectrum = np.linalg.eigvalsh(noisy)
    assert np.abs(np.maximum(spectrum, 0) - np.sort(truth)).max() > 0.2
    assert denoise(spectrum, noise).sum() == pytest.approx(spectrum.sum())
    assert seen.shares == pytest.approx(found / seen.metric.values)
    # In the coordinates of the first release a second one tells what rows fill of the final metric.
    whitened = seen.metric.power(-0.5) @ matrix @ seen.metric.power(-0.5)
    second = refine_metric(seen.metric, whitened, 1e-3, 0.5, 1e-9)
    filled = np.sum(second.metric.vectors * (matrix @ second.metric.vectors), axis=0) / second.metric.values
    assert second.shares == pytest.approx(filled, abs=0.05)


def test_columns_tell_what_noise_hides_of_directions() -> None:
    """Squares of columns have the noise of one entry, directions that of all of them together."""
    p, noise, rng = 100, 0.02, np.random.default_rng(1)
    sizes = np.where(np.arange(p) < 10, 0.15, 0.01)
    noises = noise * rng.normal(size=p * (p + 1) // 2)
    # The largest column is hidden below the spectral norm of the noise, 0.28.
    seen = estimate_metric(unpack_symmetric(pack_symmetric(np.diag(sizes)[None])[0] + noises, p), noise, 0.5, 1e-9)
    found = seen.metric.power(1.0) - seen.lift * np.eye(p)
    assert np.mean((np.diag(found) - sizes) ** 2) < 0.7 * noise**2
    # Columns that are alike tell nothing.
    assert measure_signal(np.diag(unpack_symmetric(noises, p))[:50], noise) < 0.3
    assert measure_signal(np.ones(1), noise) == 0


def test_what_noise_made_negative_is_not_added_to_what_rows_fill() -> None:
    """Rows that fill all of many directions alike: next to the noise of a direction that is nothing."""
    rng, p, noise = np.random.default_rng(0), 300, 0.01
    upper = noise * rng.normal(size=p * (p + 1) // 2)
    moment = unpack_symmetric(upper + pack_symmetric(np.eye(p)[None] * 0.002)[0], p)
    plain, kept = (estimate_metric(moment, noise, 0.5, 1e-9, keeps_trace=keeps) for keeps in (False, True))

    def filled(seen: NoisyMetric) -> float:
        return float(seen.shares @ seen.metric.values)

    # The trace is 0.6, and known to noise * sqrt(p) = 0.17.
    assert filled(plain) > 1.2
    assert filled(kept) == pytest.approx(np.trace(moment)) == pytest.approx(0.6, abs=3 * 0.17)
    # Where noise hides nothing there is nothing to lower.
    clear = [
        estimate_metric(moment + np.eye(p), noise, 0.5, 1e-9, keeps_trace=keeps).metric.values
        for keeps in (False, True)
    ]
    np.testing.assert_allclose(*clear, rtol=1e-12)


def test_numbers_are_lowered_to_a_sum_by_as_little_as_can_be() -> None:
    values = np.array([0.0, 3.0, 1.0, 0.2, 5.0])
    lowered = lower_to(values, 4.0)
    assert lowered.sum() == pytest.approx(4.0)
    assert (lowered >= 0).all()
    # The nearest point of the simplex: what is left is lowered alike, and what is not was smaller than that.
    by = values[lowered > 0] - lowered[lowered > 0]
    np.testing.assert_allclose(by, by[0])
    assert (values[lowered == 0] <= by[0]).all()
    np.testing.assert_array_equal(lower_to(values, 10.0), values)


@pytest.mark.parametrize("is_round", [False, True])
@pytest.mark.parametrize("regularizer", [L1(strength=0.1), ElasticNet(l1=0.1, l2=0.3), L2(strength=0.2)])
def test_a_prox_among_some_coordinates_is_the_best_of_those(regularizer: Regularizer, *, is_round: bool) -> None:
    rng = np.random.default_rng(3)
    matrix = 2.0 * np.eye(6) if is_round else matrix_of(6, 50.0)
    metric = Metric.round(2.0) if is_round else Metric.of(matrix)
    v, step, kept = rng.normal(size=6), 0.7, np.array([True, False, True, True, False, False])

    def cost(x: np.ndarray) -> float:
        return float(outer.value(x[None])[0]) + float((x - v) @ matrix @ (x - v)) / (2 * step)

    for outer in (regularizer, Unpenalized(inner=regularizer, last=1)):
        allowed = kept | (np.arange(6) >= 5) if isinstance(outer, Unpenalized) else kept
        x = metric.prox_among(outer, v, step, kept)
        assert not x[~allowed].any()
        for _ in range(50):
            assert cost(x) <= cost(x + 1e-4 * rng.normal(size=6) * allowed) + 1e-12
        # All of them are the prox, and none are zeros.
        np.testing.assert_allclose(
            metric.prox_among(outer, v, step, np.ones(6, dtype=bool)), metric.prox(outer, v, step)
        )
        nothing = metric.prox_among(outer, v, step, np.zeros(6, dtype=bool))
        assert not nothing[: 5 if isinstance(outer, Unpenalized) else 6].any()
