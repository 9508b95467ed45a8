"""Sums of small tables without a compiler are those of the compiled loops, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from consenso import rows as module
from consenso import whole_steps
from consenso.errors import StepError
from consenso.rows import Layout, Rows, sum_step


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
