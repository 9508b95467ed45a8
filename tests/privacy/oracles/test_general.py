"""General splittings: only the smallest singular value of A enters, and A must be injective."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.general import GeneralSplitting

from consenso.errors import PreconditionError
from consenso.privacy.events import Gaussian, Repeated


def theorem(**changes) -> GeneralSplitting:
    defaults = {
        "parties": 10,
        "step": 1.0,
        "lipschitz": 1.0,
        "smallest_singular_value": 1.0,
        "std": 1.0,
        "rounds": 1,
    }
    return GeneralSplitting(**{**defaults, **changes})


def moved(matrix, step, gap):
    """|A dx| for x = argmin <g, x> + |A x - v|^2 / (2 step), when g changes by `gap` (linear losses, exact)."""
    return np.linalg.norm(matrix @ np.linalg.solve(matrix.T @ matrix, step * gap))


@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0])
def test_scalar_matrices_are_exact(scale):
    parties, step, lipschitz = 10, 1.0, 1.0
    exact = 4 * 0.5 * moved(scale * np.eye(1), step, np.array([lipschitz / parties])) / 0.5
    bound = theorem(parties=parties, smallest_singular_value=scale)
    assert bound.sensitivity == pytest.approx(exact)
    # The bound with an extra |A| in front is too small for a small matrix.
    assert bool(scale * bound.sensitivity < 0.99 * exact) is (scale < 1)


def test_figure_of_a_small_matrix():
    bound = theorem(parties=10, smallest_singular_value=0.1)
    assert bound.sensitivity == pytest.approx(4.0)
    assert 0.1 * bound.sensitivity == pytest.approx(0.4)


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(2, 5), columns=st.integers(1, 5))
def test_random_matrices(seed, rows, columns):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(max(rows, columns), columns)) * 10 ** rng.uniform(-2, 2)
    bound = GeneralSplitting.of_matrix(matrix, parties=5, step=0.7, lipschitz=1.5, std=1.0, rounds=1)
    worst = 0.0
    for direction in np.linalg.svd(matrix)[2]:
        worst = max(worst, 2 * moved(matrix, 0.7, 2 * 1.5 / 5 * direction))
    assert worst <= bound.sensitivity * (1 + 1e-9)
    assert worst >= bound.sensitivity * (1 - 1e-6)  # attained along the smallest singular vector


def test_event():
    bound = theorem(parties=4, step=0.5, lipschitz=2.0, smallest_singular_value=0.25, std=3.0, rounds=6)
    assert bound.event() == Repeated(Gaussian(3.0, 4 * 2.0 * 0.5 / (4 * 0.25)), 6)
    rho = 6 * (bound.sensitivity / 3.0) ** 2 / 2
    assert rho == pytest.approx(8 * 6 * 2.0**2 * 0.5**2 / (4**2 * 0.25**2 * 3.0**2))


@pytest.mark.parametrize("matrix", [np.array([[1.0, 0.0]]), np.ones((3, 2)), np.zeros((2, 2))])
def test_matrices_that_are_not_injective_are_refused(matrix):
    with pytest.raises(PreconditionError, match="full column rank"):
        GeneralSplitting.of_matrix(matrix, parties=100, step=1.0, lipschitz=1.0, std=1.0, rounds=1)


def test_one_record_moves_a_matrix_with_a_kernel_ten_times_the_bound():
    # A = [1 0]: 99 parties tie x_2 to 10 x_1, which A does not see, and one party pulls at x_2 with slope +1 or -1.
    parties, step, lever, v = 100, 1.0, 10.0, 0.3

    def objective(x, sign):
        tie = np.abs(x[..., 1] - lever * x[..., 0]) / np.hypot(1, lever)
        return ((parties - 1) * tie + sign * x[..., 1]) / parties + (x[..., 0] - v) ** 2 / (2 * step)

    rng = np.random.default_rng(0)
    minimisers = []
    for sign in (1, -1):
        x = v - sign * lever * step / parties
        minimiser = np.array([x, lever * x])
        # The objective is convex: no better point nearby, no better point at all.
        nearby = minimiser + rng.normal(size=(20_000, 2)) * 10 ** rng.uniform(-4, 0, size=(20_000, 1))
        assert np.all(objective(nearby, sign) >= objective(minimiser, sign) - 1e-15)
        minimisers.append(minimiser)
    moved_by = abs(minimisers[0][0] - minimisers[1][0])
    assert moved_by == pytest.approx(10 * 2 * step / parties)  # ten times 2 L g / (n w) for the singular value w = 1
