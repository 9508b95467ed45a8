"""Squares of columns that noise hides are estimated by what all columns have in common."""

from __future__ import annotations

import numpy as np
import pytest

from consenso.algorithms.averaging.noisy_squares import expect


def draw(squares: np.ndarray, noise: float) -> np.ndarray:
    return squares + noise * np.random.default_rng(1).normal(size=squares.shape)


@pytest.mark.parametrize("size", [0.0, 0.3, 1.0, 4.0])
def test_columns_that_are_alike_are_told_alike(size: float) -> None:
    found = expect(draw(np.full(4000, size), 1.0), 1.0)
    # Of twenty seeds at most .06 away on average, and .25 each.
    assert abs(found.mean() - size) < 0.1
    assert np.sqrt(np.mean(np.square(found - size))) < 0.4


def test_hidden_squares_are_right_on_average_where_sizes_differ() -> None:
    squares = 30.0 / np.arange(1, 3001)  # words by Zipf's law: a hundredth of them stands out
    found = expect(draw(squares, 1.0), 1.0)
    assert found[100:].mean() == pytest.approx(squares[100:].mean(), abs=0.03)
    # A floor of one standard deviation, or what was released, is further away.
    for other in (np.maximum(draw(squares, 1.0), 1.0), draw(squares, 1.0)):
        assert np.mean(np.square(found - squares)) < 0.2 * np.mean(np.square(other - squares))


def test_squares_that_stand_out_are_left_alone_in_any_unit() -> None:
    noisy = draw(np.linspace(0, 50, 2000), 1.0)
    found = expect(noisy, 1.0)
    np.testing.assert_array_equal(found[noisy > 6], noisy[noisy > 6])
    assert (found >= 0).all()
    np.testing.assert_allclose(expect(1e-9 * noisy, 1e-9), 1e-9 * found, rtol=1e-9)


def test_without_noise_nothing_changes() -> None:
    np.testing.assert_array_equal(expect(np.array([0.0, 1.0, 5.0]), 0.0), [0.0, 1.0, 5.0])
