"""Rows within their bound: in exact arithmetic, whatever their size."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from consenso.errors import InputError
from consenso.losses import Logistic
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND, Problem
from consenso.regularizers import NoPenalty
from consenso.shards import constant
from consenso.shards.constant import with_constant
from consenso.shards.intake import bound_rows, squared_norms

LARGEST = float(np.finfo(np.float64).max)
BOUNDS = (LEAST_ROW_BOUND, 1e-5, 0.1, 1.0, 3.0, math.pi, MOST_ROW_BOUND)


def squared(row) -> Fraction:
    return sum((Fraction(float(value)) ** 2 for value in row), Fraction(0))


def rows_of(bound: float, dtype) -> np.ndarray:
    """Rows around the bound by a few units of the last place, and as far away as numbers go."""
    rng = np.random.default_rng(0)
    top = float(np.finfo(dtype).max)
    near = rng.normal(size=(40, 5))
    near *= bound / np.linalg.norm(near, axis=1, keepdims=True)
    near *= 1 + rng.integers(-6, 7, size=(40, 1)) * np.finfo(dtype).eps
    with np.errstate(over="ignore", under="ignore"):
        far = rng.uniform(-1, 1, size=(40, 5)) * np.where(rng.random((40, 5)) < 0.5, top, bound)
        tiny = np.full((3, 5), [bound, 1e-200, 0, 0, 5e-324])
        axes = np.eye(5) * bound
        mixed = np.full((2, 5), [top, bound, 1e-300, top, 1.0])
        return np.concatenate([near, far, tiny, axes, mixed, np.full((1, 5), top)]).astype(dtype)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bound", BOUNDS)
def test_no_row_is_above_its_bound_in_exact_arithmetic(bound, dtype, kind) -> None:
    given_rows = rows_of(bound, dtype)
    out, lengths, _ = bound_rows(kind(given_rows), bound, "test")
    dense = out.toarray() if sparse.issparse(out) else out
    exact = Fraction(bound) ** 2
    for before, after, length in zip(given_rows, dense, lengths, strict=True):
        assert squared(after) <= exact
        assert float(squared(after)) == pytest.approx(length, rel=1e-14, abs=1e-300)
        if squared(before) <= exact * (1 - Fraction(1, 10**14)):
            np.testing.assert_array_equal(after, before)
        else:
            assert squared(after) >= exact * (1 - Fraction(1, 10**5 if dtype == np.float32 else 10**13))
    with_column = with_constant(given_rows, bound, bound / 2, "test")
    assert max(squared(row[:-1]) for row in with_column) <= exact


@pytest.mark.parametrize("few", [0, 1 << 17], ids=["compiled", "small"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_rows_in_single_precision_are_bounded_and_then_cut_towards_zero(bound, few, monkeypatch) -> None:
    """No entry is longer than it was, and none is shorter than by the bits that there is no room for."""
    monkeypatch.setattr(constant, "FEW_PRODUCTS", few)
    rows = rows_of(bound, np.float64)
    out = with_constant(rows, bound, bound / 3, "test", single=True)
    double = with_constant(rows, bound, bound / 3, "test")
    assert out.dtype == np.float32
    assert max(squared(row[:-1]) for row in out) <= Fraction(bound) ** 2
    assert (np.abs(out.astype(np.float64)) <= np.abs(double)).all()
    np.testing.assert_allclose(out, double, rtol=2.0**-23, atol=1e-37)
    compressed = with_constant(sparse.csr_array(rows), bound, bound / 3, "test", single=True).toarray()
    np.testing.assert_allclose(compressed, out, rtol=2.0**-23, atol=1e-37)
    for place in (0, len(rows) // 2, len(rows) - 1):
        alone = with_constant(rows[place : place + 1], bound, bound / 3, "test", single=True)
        np.testing.assert_array_equal(alone[0], out[place])


@pytest.mark.parametrize("few", [0, 1 << 17], ids=["compiled", "small"])
def test_an_entry_that_is_no_number_is_named_where_it_stands(few, monkeypatch) -> None:
    monkeypatch.setattr(constant, "FEW_PRODUCTS", few)
    rows = np.ones((9, 3))
    rows[:4], rows[6, 1] = 5.0, np.nan
    with pytest.raises(InputError, match=r"row 6 .*column 1"):
        with_constant(rows, 2.0, 1.0, "test", single=True)
    # A block of rows at a time.
    monkeypatch.setattr(constant, "BLOCK_NUMBERS", 6)
    for single in (False, True):
        with pytest.raises(InputError, match=r"row 6 .*column 1"):
            with_constant(rows, 2.0, 1.0, "test", single=single)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("single", [False, True])
def test_rows_are_changed_while_they_are_copied(dtype, single, monkeypatch) -> None:
    rows = np.arange(27).reshape(9, 3).astype(dtype)

    def change(part):
        return (part - 1) / np.asarray(4, dtype=dtype if dtype != np.int64 else np.float64)

    expected = with_constant(change(rows), 3.0, 1.0, "test", single=single)
    monkeypatch.setattr(constant, "BLOCK_NUMBERS", 6)
    found = with_constant(rows, 3.0, 1.0, "test", single=single, change=change)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@given(
    row=st.lists(st.floats(-LARGEST, LARGEST), min_size=1, max_size=6),
    bound=st.floats(LEAST_ROW_BOUND, MOST_ROW_BOUND),
)
def test_any_row_and_bound(row, bound) -> None:
    out, _, _ = bound_rows(np.array([row]), bound, "test")
    assert squared(out[0]) <= Fraction(bound) ** 2


@pytest.mark.parametrize("bound", [LEAST_ROW_BOUND / 2, 1e-12, 1e-300, 4 * MOST_ROW_BOUND, 1e100])
def test_bounds_to_which_rows_cannot_be_shortened_are_refused(bound) -> None:
    from consenso import PrivateLogisticRegression, PrivateScaler

    with pytest.raises(InputError, match="lies between 1e-09 and 1e"):
        Problem(loss=Logistic(), regularizer=NoPenalty(), features=1, sizes=np.array([1]), row_bound=bound)
    for kind in (PrivateLogisticRegression(row_bound=bound, classes=[0, 1]), PrivateScaler(row_bound=bound)):
        with pytest.raises(InputError, match=r"row_bound=.*lies between"):
            kind.fit(None, None)


def test_entries_in_any_order_stay_in_their_columns() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.6)
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-9) / 1.5
    sorted_ = sparse.csr_array(dense)
    order = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in itertools.pairwise(sorted_.indptr)])
    given = sparse.csr_array((sorted_.data[order], sorted_.indices[order], sorted_.indptr), shape=dense.shape)
    bounded = bound_rows(given, 1.0, "rows")[0]
    np.testing.assert_allclose(bounded.toarray(), bound_rows(dense, 1.0, "rows")[0], rtol=1e-12)
    np.testing.assert_array_equal(given.toarray(), dense)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_becomes_of_a_row_does_not_depend_on_other_rows(dtype) -> None:
    """Compressed rows have as many entries as they like: a long one that leaves changes no bit of the others."""
    rng = np.random.default_rng(3)
    full = rng.normal(size=(41, 300)) * (rng.random((41, 300)) < rng.uniform(0.01, 0.2, size=(41, 1)))
    full[:, 0] += 0.5
    full[0] = 1.0
    # Half of the rows are as long as the bound but for a few units of the last place.
    near = 1 + rng.integers(-3, 4, size=(20, 1)) * np.finfo(dtype).eps
    full[1:21] *= 2.0 * near / np.linalg.norm(full[1:21], axis=1, keepdims=True)
    whole, lengths, _ = bound_rows(sparse.csr_array(full.astype(dtype)), 2.0, "test")
    rest, others, _ = bound_rows(sparse.csr_array(full[1:].astype(dtype)), 2.0, "test")
    np.testing.assert_array_equal(whole.toarray()[1:], rest.toarray())
    np.testing.assert_array_equal(lengths[1:], others)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_length_of_a_row_does_not_depend_on_other_rows_in_whatever_order_a_table_lies(order, dtype) -> None:
    """Histograms of lengths are made of tables as they come: a frame's lie in columns, one row alone in both orders."""
    rows = np.random.default_rng(4).normal(size=(70, 39)).astype(dtype)
    whole = squared_norms(np.asarray(rows, order=order))
    for first, last in ((0, 1), (69, 70), (3, 5), (1, 70), (0, 69)):
        part = np.asarray(rows[first:last], order=order)
        np.testing.assert_array_equal(squared_norms(part), whole[first:last])
