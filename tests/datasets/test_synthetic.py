"""Synthetic data: the published draw, the laws, and reproducibility."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import LassoCV

from consenso.datasets import (
    Dataset,
    load_diabetes,
    make_generalised_lasso,
    make_graph,
    make_lasso,
    make_sphere_lasso,
)
from consenso.errors import InputError

MAKERS: list[Callable[..., Dataset]] = [make_lasso, make_sphere_lasso, make_generalised_lasso, make_graph]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_seed_is_a_data_set(make: Callable[..., Dataset]) -> None:
    first, again, other = make(seed=3), make(seed=3), make(seed=4)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    assert first.truth is not None
    # The residual of the true model is the label noise; 4 standard errors of its mean square, so a false alarm in
    # 16,000 draws, and the seed is fixed.
    noise = first.y - first.X @ first.truth
    assert np.mean(noise**2) == pytest.approx(0.01, abs=4 * 0.01 * np.sqrt(2 / noise.size))


def test_the_draw_of_the_published_lasso() -> None:
    data = make_lasso(seed=18)
    fitted = LassoCV().fit(data.X, data.y)

    def objective(model: np.ndarray) -> float:
        return float(np.mean((data.X_test @ model - data.y_test) ** 2) + fitted.alpha_ * np.abs(model).sum())

    # What the public code prints: strength 0.00416, zero model 1.671, LassoCV 0.0214.
    assert fitted.alpha_ == pytest.approx(0.00416, abs=5e-6)
    assert objective(np.zeros(64)) == pytest.approx(1.671, abs=5e-4)
    assert objective(fitted.coef_) == pytest.approx(0.0214, abs=5e-5)
    assert np.linalg.norm(data.X, axis=1).mean() == pytest.approx(8, abs=0.1)
    assert data.truth is not None
    assert np.count_nonzero(data.truth) == 8


def test_sphere_rows_have_norm_one() -> None:
    data = make_sphere_lasso(seed=0)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1, rtol=1e-12)
    assert data.truth is not None
    assert np.count_nonzero(data.truth) == 8
    assert 0 <= data.truth.min() <= data.truth.max() <= 1


def test_generalised_lasso_is_sparse_under_its_structure() -> None:
    data = make_generalised_lasso(seed=1, pieces=5)
    assert data.structure is not None
    assert data.truth is not None
    assert data.structure.shape == (49, 50)
    assert np.count_nonzero(data.structure @ data.truth) == 4
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1, rtol=1e-12)


def test_graph_has_equal_nodes() -> None:
    data = make_graph(seed=2)
    assert data.X.shape == (2_500, 8)
    assert data.users is not None
    np.testing.assert_array_equal(np.bincount(data.users), np.full(50, 50))


def test_sizes_are_checked() -> None:
    with pytest.raises(InputError, match=r"support=9"):
        make_lasso(seed=0, features=8, support=9)
    with pytest.raises(InputError, match=r"make_sphere_lasso\(support=0\)"):
        make_sphere_lasso(seed=0, support=0)
    with pytest.raises(InputError, match="pieces=51"):
        make_generalised_lasso(seed=0, pieces=51)


def test_raw_diabetes_has_natural_units() -> None:
    raw = load_diabetes(scaled=False)
    assert raw.X[:, 0].min() == 19
    assert raw.X[:, 0].max() == 79
