"""Products with rows: what each row gives is its own, and sums move by no more than is declared."""

from __future__ import annotations

import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from consenso import row_products as products
from consenso.algorithms.record_sums import sum_bounds
from consenso.losses import Logistic
from consenso.privacy.release import sum_rounding
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import NoPenalty
from consenso.row_products import multiply
from consenso.rows import Layout, Rows


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("outputs", [1, 3, 10])
@pytest.mark.parametrize("features", [2, 7, 14, 33, 129])
def test_what_a_row_gives_does_not_depend_on_other_rows(features, outputs, dtype) -> None:
    rng = np.random.default_rng(features)
    transform = rng.normal(size=(features, 4))
    for rows in (*range(2, 35), 100, 1001, 1007):
        matrix = rng.normal(size=(rows, features)).astype(dtype)
        model = rng.normal(size=features * outputs)

        def given_by(table, model=model):
            made = Rows(table, Layout(np.array([0, len(table)])), outputs)
            scores = made.linear_predictor(model)
            return scores, made.transformed_squared_norms(transform), made.squared_norms()

        for left in (0, rows // 2, rows - 1):
            for whole, part in zip(given_by(matrix), given_by(np.delete(matrix, left, axis=0)), strict=True):
                np.testing.assert_array_equal(np.delete(whole, left, axis=0), part)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("outputs", [None, 1, 3, "features"])
@pytest.mark.parametrize("features", [5, 257, 513])
def test_nor_on_how_many_threads_share_a_product(features, outputs, threads) -> None:
    """Libraries cut products of more than 256 columns in other places when several threads share them."""
    rng = np.random.default_rng(features)
    shape = (features,) if outputs is None else (features, features if outputs == "features" else outputs)
    matrix, model = rng.normal(size=(1501, features)), rng.normal(size=shape)
    with threadpool_limits(threads, user_api="blas"):
        whole = multiply(matrix, model)
        np.testing.assert_array_equal(multiply(matrix[1:], model), whole[1:])
        for rows in (1, 8, 100, 1500):
            np.testing.assert_array_equal(multiply(matrix[:rows], model), whole[:rows])


def test_a_library_that_rounds_by_place_is_found_out_and_not_used(monkeypatch) -> None:
    """Its last rows are added up from the other end, as some processors' kernels do with a few columns."""
    rng = np.random.default_rng(1)
    matrix, model = rng.normal(size=(700, 40)), rng.normal(size=(40, 9))
    right = multiply(matrix, model)

    def multiply_by_place(left, x, out=None):
        made = np.asarray(left @ x)
        made[..., -3:, :] = left[..., -3:, ::-1] @ x[::-1]
        if out is None:
            return made
        out[...] = made
        return out

    products._is_the_same_everywhere.cache_clear()
    monkeypatch.setattr(products.np, "matmul", multiply_by_place)
    given = multiply(matrix, model)
    for start in (1, 2, 3):
        np.testing.assert_array_equal(multiply(matrix[start:], model), given[start:])
    np.testing.assert_allclose(given, right, rtol=0, atol=1e-12)
    monkeypatch.setattr(products, "_is_the_same_everywhere", lambda *_: True)
    assert np.any(multiply(matrix[1:], model) != multiply(matrix, model)[1:])
    monkeypatch.undo()
    products._is_the_same_everywhere.cache_clear()


@pytest.mark.parametrize("exponent", [12, 16, 20])
def test_sums_move_by_no_more_than_is_declared(exponent) -> None:
    """Rows that are rounded the same way in one world and the other way in its neighbour.

    A library may add in any order, and another processor's in another one: that rounding counts is shown by adding one
    by one, which every processor does alike.
    """
    rows = 2**exponent
    half = rows // 2
    problem = Problem(loss=Logistic(), regularizer=NoPenalty(), features=2, sizes=np.array([rows]), row_bound=1.0)
    facts = PublicFacts.everyone(problem, rounds=1)
    declared = float(sum_bounds(facts, 1.0).at("record", "replace-one"))
    layout, factors, one_by_one = Layout(np.array([0, rows])), np.full(rows, problem.scales[0]), 0.0
    for share in (0.3, -0.3, 0.26, -0.26, -0.74, -0.49, 0.51):  # above half the neighbour stays behind, one by one
        matrix = np.zeros((rows, 2))
        matrix[:half, 0], matrix[half:, 0] = 1.0, share * np.spacing(float(half))
        sums, chains = [], []
        for first in (1.0, -1.0):
            matrix[0, 0] = first
            sums.append(Rows(matrix, layout).total(factors))
            chains.append(np.cumsum(factors * matrix[:, 0])[-1])
        assert np.linalg.norm(sums[0] - sums[1]) <= declared
        one_by_one = max(one_by_one, abs(chains[0] - chains[1]))
        assert one_by_one <= declared
    exact = 2.0 * problem.scales[0]
    assert declared - exact == pytest.approx(2 * rows**2 * 2.0**-53 * problem.scales[0], rel=0.01)
    if exponent == 20:
        assert one_by_one > exact, "without the rounding the declaration would be wrong"


def test_the_rounding_is_that_of_any_order() -> None:
    """Against sums that are rounded once, in orders that are bad: random, sorted, from the small end, pairwise."""
    rng = np.random.default_rng(1)
    for rows in (10, 1000, 20_000):
        values = rng.uniform(-1, 1, size=rows) * 10.0 ** rng.integers(-8, 1, size=rows)
        allowed = sum_rounding(rows, float(np.abs(values).sum())) / 2
        for order in (np.arange(rows), np.argsort(values), np.argsort(np.abs(values)), rng.permutation(rows)):
            one_by_one = float(np.cumsum(values[order])[-1])
            assert abs(one_by_one - math.fsum(values)) <= allowed


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("features", [8_193, 9_000, 20_001])
def test_the_same_of_rows_with_many_columns(features, dtype) -> None:
    """NumPy adds up more than 8,192 columns in another order where a row is alone, as in the last batch of a table."""
    rng = np.random.default_rng(features)
    matrix = rng.normal(size=(13, features)).astype(dtype)
    model, scales, vectors = rng.normal(size=features), rng.uniform(size=features), rng.normal(size=(features, 3))

    def given_by(table):
        made = Rows(table, Layout(np.array([0, len(table)])))
        scaled = made.scaled_squared_norms(scales)
        return made.squared_norms(), made.norms_1(), scaled, made.linear_predictor(model), made.products(vectors)

    for kept in ([0], [6], [12], [5, 7], list(range(1, 13))):
        for whole, part in zip(given_by(matrix), given_by(matrix[kept]), strict=True):
            np.testing.assert_array_equal(whole[kept], part)
