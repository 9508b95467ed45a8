"""MNIST and FEMNIST: counts, ranges, writers, and the known error without privacy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from consenso.datasets import Dataset, load_femnist, load_mnist


@pytest.fixture(scope="module")
def mnist(data_dir: Path) -> Dataset:
    return load_mnist(data_dir)


def test_mnist_counts(mnist: Dataset) -> None:
    assert mnist.X.shape == (60_000, 784)
    assert mnist.X_test.shape == (10_000, 784)
    assert mnist.X.dtype == np.float32
    assert mnist.X.min() == 0
    assert mnist.X.max() == 1
    np.testing.assert_array_equal(np.unique(mnist.y), np.arange(10))
    np.testing.assert_array_equal(np.bincount(mnist.y)[:2], [5923, 6742])


@pytest.mark.slow
def test_mnist_error_of_softmax_regression(mnist: Dataset) -> None:
    X, y = mnist.X, mnist.y
    every, strength = np.arange(y.size), 1e-6

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        scores = X @ flat.reshape(784, 10).astype(np.float32)
        scores -= scores.max(axis=1, keepdims=True)
        weights = np.exp(scores)
        sums = weights.sum(axis=1)
        value = np.mean(np.log(sums) - scores[every, y], dtype=np.float64) + strength * flat @ flat
        slopes = weights / sums[:, None]
        slopes[every, y] -= 1
        return float(value), (X.T @ slopes).astype(np.float64).ravel() / y.size + 2 * strength * flat

    # One thread: threads that wait for each other on busy cores take several times as long.
    with threadpool_limits(1):
        found = minimize(objective, np.zeros(7840), jac=True, method="L-BFGS-B", options={"maxiter": 40})
    error = np.mean((mnist.X_test @ found.x.reshape(784, 10)).argmax(axis=1) != mnist.y_test)
    assert 100 * error == pytest.approx(7.54, abs=0.5)  # the minimum's error; 40 iterations come near it


def test_femnist_counts_and_writers(data_dir: Path) -> None:
    data = load_femnist(data_dir)
    assert data.X.shape == (15_440, 784)
    assert data.X_test.shape == (4_167, 784)
    assert data.users is not None
    assert data.users_test is not None
    assert np.unique(data.users).size == 114
    assert np.unique(data.users_test).size == 195
    assert data.y.min() >= 0
    assert data.y.max() <= 61
    assert np.unique(data.y_test).size == 62
    # Paper is 0 and ink is 1, so most of an image is 0.
    assert np.median(data.X[:1000]) == 0
    assert data.X.min() == 0
    assert data.X.max() == 1
    for told in ("INCOMPLETE", "15,440", "36,708"):
        assert told in data.notes


def test_femnist_extra_writers_are_others(data_dir: Path) -> None:
    small, more = load_femnist(data_dir), load_femnist(data_dir, extra=True)
    assert more.X.shape == (45_743, 784)
    assert more.users is not None
    assert small.users is not None
    added = more.users[small.y.size :]
    assert np.unique(added).size == 787
    assert not np.isin(added, small.users).any()
    np.testing.assert_array_equal(more.X[: small.y.size], small.X)
