"""Sums of small tables without a compiler are those of the compiled loops, bit for bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from consenso import row_products, whole_steps
from consenso import rows as module
from consenso.errors import StepError
from consenso.rows import Layout, Rows, moment_step, sum_step


@pytest.mark.parametrize("kept", ["dense", "single", "sparse"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_both_ways_agree_also_for_parties_without_rows(
    kept: str, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.5)
    matrix = {"dense": X, "single": X.astype(np.float32), "sparse": sparse.csr_array(X)}[kept]
    weights = rng.normal(size=(40, outputs)) if outputs > 1 else rng.normal(size=40)
    table = Rows(matrix, Layout(np.array([0, 0, 7, 7, 30, 40, 40])), outputs)
    step = sum_step(20.0, 40)
    small = table.exact_sums(weights, step)
    assert small.any()
    monkeypatch.setattr(module.whole_steps, "FEW_PRODUCTS", 0)
    np.testing.assert_array_equal(small, table.exact_sums(weights, step))


@pytest.mark.parametrize("kept", ["dense", "single"])
@pytest.mark.parametrize("features", [1, 7, 8, 21])
def test_residuals_of_small_tables_give_the_sums_of_the_compiled_loop(
    kept: str, features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the rows beside them: the coarsest bits of a score decide to which step of the grid it is rounded."""
    rng = np.random.default_rng(features)
    X, x, targets = rng.normal(size=(60, features)), rng.normal(size=features), rng.normal(size=60)
    matrix, factors = X if kept == "dense" else X.astype(np.float32), rng.random(60)
    table = Rows(matrix, Layout(np.array([0, 0, 7, 7, 30, 60, 60])))
    step = 2.0**-46
    small = table.exact_residual_sums(x, targets, factors, 0.7, step)
    wide = np.asarray(matrix, dtype=np.float64)
    expected = factors * np.clip(wide @ x - targets, -0.7, 0.7)
    np.testing.assert_allclose(small * step, table.rmatvec(expected), atol=1e-12)
    monkeypatch.setattr(whole_steps, "FEW_PRODUCTS", 0)
    np.testing.assert_array_equal(small, table.exact_residual_sums(x, targets, factors, 0.7, step))
    alone = [Rows(matrix[i : i + 1], Layout(np.array([0, 1]))) for i in range(60)]
    each = [
        one.exact_residual_sums(x, targets[i : i + 1], factors[i : i + 1], 0.7, step) for i, one in enumerate(alone)
    ]
    np.testing.assert_array_equal(np.sum(each, axis=(0, 1)), small.sum(axis=0))


@pytest.mark.parametrize("products", [0, whole_steps.FEW_PRODUCTS])
def test_a_residual_that_is_no_number_gives_no_sum(products: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_steps, "FEW_PRODUCTS", products)
    table = Rows(np.array([[1.0, 1.0], [1e9, -1e9]]), Layout(np.array([0, 2])))
    with np.errstate(all="ignore"), pytest.raises(StepError, match="finite"):
        table.exact_residual_sums(np.full(2, 1e300), np.zeros(2), np.ones(2), 1.0, 2.0**-30)


def test_halves_are_rounded_as_the_compiled_loops_round_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the even neighbour: what is added and subtracted again does not know of signs."""
    values = np.array([[-2.5], [-1.5], [-0.5], [0.5], [1.5], [2.5], [3.5]])
    table = Rows(values, Layout(np.arange(8)))
    small = table.exact_sums(np.ones(7), 1.0)
    np.testing.assert_array_equal(small[:, 0], [-2, -2, 0, 0, 2, 2, 4])
    monkeypatch.setattr(whole_steps, "FEW_PRODUCTS", 0)
    np.testing.assert_array_equal(small, table.exact_sums(np.ones(7), 1.0))


@pytest.mark.parametrize("kept", ["dense", "single"])
@pytest.mark.parametrize(("features", "outputs"), [(1, 1), (5, 3), (8, 8), (21, 21), (33, 40)])
def test_rows_times_a_matrix_are_those_of_the_compiled_loop(
    kept: str, features: int, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, for every number of rows beside a row, and in the order that is stated."""
    rng = np.random.default_rng(features)
    X = rng.normal(size=(71, features)).astype(np.float32 if kept == "single" else np.float64)
    x = rng.normal(size=(features, outputs))
    moved, squares = np.empty((71, outputs)), np.empty(71)
    whole_steps.transform(X, x, squares, moved)
    expected = np.zeros((71, outputs))
    for feature in range(features):
        expected += X[:, feature, None].astype(np.float64) * x[feature]
    np.testing.assert_array_equal(moved, expected)
    np.testing.assert_allclose(squares, np.square(expected).sum(axis=1), rtol=1e-13)
    monkeypatch.setattr(whole_steps, "FEW_TRANSFORMED", 0)
    for rows in (1, 3, 4, 32, 33, 71):
        compiled = row_products.transform(X[:rows], x)
        np.testing.assert_array_equal(compiled[0], moved[:rows])
        np.testing.assert_array_equal(compiled[1], squares[:rows])
        np.testing.assert_array_equal(row_products.transformed_squares(X[-rows:], x), squares[-rows:])
    in_columns = np.asfortranarray(X)
    np.testing.assert_array_equal(row_products.transformed_squares(in_columns, x), squares)


@pytest.mark.parametrize("kept", ["dense", "single", "sparse"])
@pytest.mark.parametrize("features", [1, 4, 7, 30])
def test_second_moments_of_small_tables_are_those_of_the_compiled_loop(kept: str, features: int) -> None:
    """For parties without rows, for more rows than are taken at once, and for negative entries between two steps."""
    from consenso.kernels.moments import dense_exact_moments  # loading a compiler is slow

    rng = np.random.default_rng(features)
    X = rng.normal(size=(700, features)) * (rng.random((700, features)) < 0.7)
    matrix = {"dense": X, "single": X.astype(np.float32), "sparse": sparse.csr_array(X)}[kept]
    offsets, step = np.array([0, 0, 3, 3, 650, 700, 700]), moment_step(10.0, 700)
    table = Rows(matrix, Layout(offsets))
    values = X.astype(matrix.dtype).astype(np.float64)

    def add_up(rows: np.ndarray) -> list[np.ndarray]:
        cut = np.trunc(rows / step).astype(np.int64)
        return [cut[first:last].T @ cut[first:last] for first, last in pairwise(offsets)]

    small, compiled = np.zeros((2, 6, features, features), dtype=np.int64)
    whole_steps.add_moments(values, table.layout.chunks, step, small)
    dense_exact_moments(values, np.empty(0), table.layout.chunks, step, compiled)
    for found in (small, compiled, table.exact_moments(step)):
        np.testing.assert_array_equal(found, add_up(values))
    weights = rng.random(700)
    np.testing.assert_array_equal(table.exact_moments(step, weights), add_up(values * weights[:, None]))


@pytest.mark.parametrize("kept", ["dense", "single", "sparse"])
@pytest.mark.parametrize("features", [1, 7, 8, 21])
@pytest.mark.parametrize("weighed", [False, True])
def test_whitened_moments_of_small_tables_are_those_of_the_compiled_loop(
    kept: str, features: int, weighed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows times a matrix, shortened where they are longer: a row of zeros and an empty party among them."""
    rng = np.random.default_rng(features)
    X = rng.normal(size=(150, features)) * (rng.random((150, features)) < 0.7)
    X[5] = 0.0
    matrix = {"dense": X, "single": X.astype(np.float32), "sparse": sparse.csr_array(X)}[kept]
    table = Rows(matrix, Layout(np.array([0, 0, 3, 70, 150])))
    root, longest, step = rng.normal(size=(features, features)), 0.8 * features**0.5, moment_step(3.0, 150)
    factors = rng.random(150) if weighed else None
    monkeypatch.setattr(Rows, "_is_small", lambda self, work: True)
    small = table.exact_moments(step, factors, (root, longest))
    moved = X.astype(matrix.dtype).astype(np.float64) @ root
    lengths = np.linalg.norm(moved, axis=1)
    moved *= (np.minimum(1.0, longest / np.maximum(lengths, 1e-300)) * (1.0 if factors is None else factors))[:, None]
    assert 0 < np.count_nonzero(lengths > longest) < 150
    expected = [moved[first:last].T @ moved[first:last] for first, last in pairwise((0, 0, 3, 70, 150))]
    np.testing.assert_allclose(small * step**2, expected, atol=150 * 6 * step)
    monkeypatch.setattr(Rows, "_is_small", lambda self, work: False)
    np.testing.assert_array_equal(small, table.exact_moments(step, factors, (root, longest)))
