from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from consenso import splits
from consenso.errors import InputError
from consenso.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    SmoothedHinge,
    Softmax,
    Squared,
)
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.shards import Cohort, Shards

LOSSES: list[Loss] = [
    Logistic(),
    Softmax(classes=3),
    Squared(),
    Huber(threshold=0.5),
    Hinge(),
    SmoothedHinge(smoothing=0.5),
    Absolute(),
    EpsilonInsensitive(width=0.1),
]
SMOOTH = [loss for loss in LOSSES if np.isfinite(loss.curvature_bound)]
CANARY = 123456.789
RAGGED = [3, 1, 7, 2, 12, 1, 5]
FEATURES = 5


def by_name(loss: Loss) -> str:
    return loss.name


def make_problem(loss: Loss, sizes: Any, features: int = FEATURES, **changes: Any) -> Problem:
    bound = 10.0 if loss.targets == "real" else None
    facts: dict[str, Any] = {
        "loss": loss,
        "regularizer": NoPenalty(),
        "features": features,
        "sizes": sizes,
        "row_bound": 100.0,
        "target_bound": bound,
    }
    return Problem(**(facts | changes))


def make_targets(loss: Loss, rows: int, rng: np.random.Generator) -> Any:
    if loss.targets == "sign":
        return rng.choice([-1.0, 1.0], rows)
    return rng.integers(0, loss.outputs, rows) if loss.targets == "class" else rng.normal(size=rows)


def make(loss: Loss, sizes: Any = RAGGED, seed: int = 0, **changes: Any) -> tuple[Shards, Any, Any]:
    rng = np.random.default_rng(seed)
    rows = int(np.sum(sizes))
    X = rng.normal(size=(rows, FEATURES)) * (rng.random((rows, FEATURES)) < 0.7)
    y = make_targets(loss, rows, rng)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return Shards.build(make_problem(loss, sizes, **changes), X, y, offsets), X, y


def close(actual: Any, expected: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# What a cohort computes


@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
@pytest.mark.parametrize("shared", [True, False])
def test_batched_equals_a_loop_over_parties(loss: Loss, shared: bool) -> None:
    shards, X, y = make(loss)
    problem, cohort = shards.problem, shards.cohort()
    rng = np.random.default_rng(1)
    x = rng.normal(size=problem.dim if shared else (problem.parties, problem.dim))
    direction = rng.normal(size=x.shape)
    value, gradient, product = cohort.value(x), cohort.gradient(x), cohort.hessian_product(x, direction)
    offsets = np.concatenate(([0], np.cumsum(RAGGED)))
    for i in range(problem.parties):
        rows = slice(offsets[i], offsets[i + 1])
        A, b = X[rows], y[rows]
        shape = (FEATURES,) if loss.outputs == 1 else (FEATURES, loss.outputs)
        W, D = (x if shared else x[i]).reshape(shape), (direction if shared else direction[i]).reshape(shape)
        close(value[i], problem.scales[i] * loss.value(A @ W, b).sum())
        close(gradient[i], problem.scales[i] * (A.T @ loss.slope(A @ W, b)).reshape(-1))
        close(product[i], problem.scales[i] * (A.T @ loss.curvature_product(A @ W, b, A @ D)).reshape(-1))


@pytest.mark.parametrize("loss", SMOOTH, ids=by_name)
def test_gradient_and_hessian_are_derivatives(loss: Loss) -> None:
    shards, _, _ = make(loss)
    cohort, rng, h = shards.cohort(), np.random.default_rng(2), 1e-6
    x, d = rng.normal(size=(2, shards.problem.parties, shards.problem.dim))
    slope = (cohort.value(x + h * d) - cohort.value(x - h * d)) / (2 * h)
    np.testing.assert_allclose(np.sum(cohort.gradient(x) * d, axis=1), slope, rtol=1e-6, atol=1e-8)
    if loss.name in ("logistic", "softmax", "squared"):  # twice differentiable everywhere
        change = (cohort.gradient(x + h * d) - cohort.gradient(x - h * d)) / (2 * h)
        np.testing.assert_allclose(cohort.hessian_product(x, d), change, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
@pytest.mark.parametrize("clip", [0.05, 0.7, 50.0, np.inf])
def test_clipped_gradient_equals_an_explicit_loop(loss: Loss, clip: float) -> None:
    shards, X, y = make(loss)
    problem = shards.problem
    x = np.random.default_rng(3).normal(size=(problem.parties, problem.dim))
    found = shards.cohort().clipped_gradient(x, clip)
    offsets = np.concatenate(([0], np.cumsum(RAGGED)))
    for i in range(problem.parties):
        total = np.zeros(problem.dim)
        for row in range(offsets[i], offsets[i + 1]):
            W = x[i] if loss.outputs == 1 else x[i].reshape(FEATURES, -1)
            slope = loss.slope(np.atleast_2d(X[row]) @ W, y[row : row + 1])
            own = np.outer(X[row], slope).reshape(-1)
            length = np.linalg.norm(own)
            total += own * min(1.0, clip / length) if length > 0 else own
        close(found[i], problem.scales[i] * total)
    if clip == np.inf:
        close(found, shards.cohort().gradient(x))


@given(seed=st.integers(0, 1000), clip=st.floats(1e-6, 10.0), size=st.floats(1e-3, 1e3))
def test_a_clipped_gradient_is_never_longer_than_its_records_allow(seed: int, clip: float, size: float) -> None:
    for loss in (Squared(), Softmax(classes=3)):
        shards, _, _ = make(loss, seed=seed)
        problem = shards.problem
        x = size * np.random.default_rng(seed).normal(size=(problem.parties, problem.dim))
        lengths = np.linalg.norm(shards.cohort().clipped_gradient(x, clip), axis=1)
        assert np.all(lengths <= problem.scales * problem.sizes * clip * (1 + 1e-14))


def test_one_record_moves_a_clipped_gradient_by_at_most_its_weight_times_clip() -> None:
    loss = Squared()
    shards, X, y = make(loss)
    x = np.random.default_rng(4).normal(size=shards.problem.dim)
    other_X, other_y = X.copy(), y.copy()
    other_X[5], other_y[5] = -3 * X[5], 9.0  # a record of party 2
    other = Shards.build(shards.problem, other_X, other_y, np.concatenate(([0], np.cumsum(RAGGED))))
    moved = np.linalg.norm(shards.cohort().clipped_gradient(x, 0.1) - other.cohort().clipped_gradient(x, 0.1), axis=1)
    assert 0 < moved[2] <= 2 * 0.1 * shards.problem.scales[2]
    assert np.all(np.delete(moved, 2) == 0)


@pytest.mark.sweep
@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
@pytest.mark.parametrize("sizes", [RAGGED, [1] * 9, [20]])
def test_sparse_equals_dense(loss: Loss, sizes: list[int]) -> None:
    shards, X, y = make(loss, sizes)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    compressed = Shards.build(shards.problem, sparse.csr_array(X), y, offsets).cohort()
    cohort, rng = shards.cohort(), np.random.default_rng(5)
    close(compressed.squared_norms, cohort.squared_norms)
    for x in (rng.normal(size=shards.problem.dim), rng.normal(size=(len(sizes), shards.problem.dim))):
        close(compressed.linear_predictor(x), cohort.linear_predictor(x))
        close(compressed.value(x), cohort.value(x))
        close(compressed.gradient(x), cohort.gradient(x))
        close(compressed.prox(x, 3.0).x, cohort.prox(x, 3.0).x, 1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
@pytest.mark.parametrize("sizes", [RAGGED, [1] * 9, [20]])
@pytest.mark.parametrize("compress", [False, True])
def test_single_precision_is_kept_and_summed_in_double(loss: Loss, sizes: list[int], compress: bool) -> None:
    shards, X, y = make(loss, sizes)
    narrow = X.astype(np.float32)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    given_rows = sparse.csr_array(narrow) if compress else narrow
    cohort = Shards.build(shards.problem, given_rows, y, offsets).cohort()
    assert cohort._rows.matrix.dtype == np.float32
    # The same numbers in double precision give the same results to the rounding of double precision.
    wide = Shards.build(shards.problem, narrow.astype(np.float64), y, offsets).cohort()
    rng = np.random.default_rng(6)
    for x in (rng.normal(size=shards.problem.dim), rng.normal(size=(len(sizes), shards.problem.dim))):
        close(cohort.linear_predictor(x), wide.linear_predictor(x))
        close(cohort.gradient(x), wide.gradient(x))
        np.testing.assert_allclose(cohort.gradient(x), shards.cohort().gradient(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
def test_a_cohort_of_some_equals_slices_of_the_whole(loss: Loss) -> None:
    shards, _, _ = make(loss)
    whole, rng = shards.cohort(), np.random.default_rng(7)
    x = rng.normal(size=(shards.problem.parties, shards.problem.dim))
    prox = whole.prox(x, 2.0)
    for chosen in ([4], [0, 1, 2], [6, 0, 3], [2, 2]):
        cohort = shards.cohort(chosen)
        np.testing.assert_array_equal(cohort.parties, chosen)
        np.testing.assert_array_equal(cohort.scales, shards.problem.scales[chosen])
        close(cohort.value(x[chosen]), whole.value(x)[chosen])
        close(cohort.gradient(x[chosen]), whole.gradient(x)[chosen])
        close(cohort.clipped_gradient(x[chosen], 0.3), whole.clipped_gradient(x, 0.3)[chosen])
        close(cohort.prox(x[chosen], 2.0).x, prox.x[chosen], 1e-9)


def test_side_by_side_rows_are_shared_and_the_whole_is_kept() -> None:
    shards, X, _ = make(Logistic())
    assert shards.cohort() is shards.cohort()
    assert shards.cohort(np.arange(7)) is shards.cohort()
    assert shards.cohort().linear_predictor(np.ones(FEATURES)).shape == (31,)
    for chosen in (None, 4, [2, 3, 4]):
        assert np.shares_memory(shards.cohort(chosen)._rows.matrix, X)


@pytest.mark.sweep
@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
@pytest.mark.parametrize("kind", ["dense", "single", "sparse"])
def test_a_party_alone_gives_the_same_bits_wherever_it_comes_from(loss: Loss, kind: str) -> None:
    shards, X, y = make(loss, [9, 4, 23, 30, 1])
    cast = {"dense": np.array, "single": lambda t: t.astype(np.float32), "sparse": sparse.csr_array}[kind]
    offsets = np.concatenate(([0], np.cumsum(shards.problem.sizes)))
    together = Shards.build(shards.problem, cast(X), y, offsets)
    gathered = together.cohort([3, 2, 0])
    assert len(gathered.parties) == 3
    rng = np.random.default_rng(8)
    for party in range(5):
        rows = slice(offsets[party], offsets[party + 1])
        # Another address, and another alignment of it.
        room = np.empty(X[rows].size + 8)
        for shift in (0, 1, 3):
            own = room[shift : shift + X[rows].size].reshape(X[rows].shape)
            own[:] = X[rows]
            alone = Shards.from_parties(shards.problem, [(cast(own), y[rows].copy())], parties=[party]).cohort()
            taken = together.cohort(party)
            x = rng.normal(size=shards.problem.dim)
            assert np.array_equal(alone.squared_norms, taken.squared_norms)
            assert np.array_equal(alone.value(x), taken.value(x))
            assert np.array_equal(alone.gradient(x[None]), taken.gradient(x[None]))
            assert np.array_equal(alone.gradient(x), taken.gradient(x[None]))
            assert np.array_equal(alone.clipped_gradient(x, 0.2), taken.clipped_gradient(x, 0.2))
            one, two = alone.prox(x, 1.5), taken.prox(x[None], 1.5)
            assert np.array_equal(one.x, two.x)
            assert np.array_equal(one.residual, two.residual)


def test_primitives_of_rows() -> None:
    shards, X, y = make(Huber())
    cohort, rng = shards.cohort(), np.random.default_rng(9)
    coefficients, points = rng.normal(size=(2, 31))
    offsets = np.concatenate(([0], np.cumsum(RAGGED)))
    for i, total in enumerate(cohort.rmatvec(coefficients)):
        rows = slice(offsets[i], offsets[i + 1])
        close(total, coefficients[rows] @ X[rows])
    close(cohort.total(coefficients), coefficients @ X)
    close(cohort.squared_norms, np.sum(X**2, axis=1))
    close(cohort.slopes(points), Huber().slope(points, y))
    close(cohort.prox_slopes(points, 0.3), Huber().prox_slope(points, 0.3, y))
    close(cohort.repeat_per_row(np.arange(7.0)), np.repeat(np.arange(7.0), RAGGED))
    close(cohort.sums(points), [points[offsets[i] : offsets[i + 1]].sum() for i in range(7)])
    assert cohort.rows == 31


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 5000])
def test_one_pass_of_scores_slopes_and_pull_is_the_three_of_them(
    rows: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(rows)
    X, y = rng.normal(size=(rows, FEATURES)).astype(dtype), rng.choice([-1.0, 1.0], rows)
    cohort = Shards.build(make_problem(Logistic(), [rows]), X, y, [0, rows]).cohort()
    x, offsets, steps = 3.0 * rng.normal(size=FEATURES), 4.0 * rng.normal(size=rows), 10.0 ** rng.uniform(-6, 6, rows)
    steps[0] = 0.0
    assert cohort._can_sweep(x, offsets, steps)
    swept = cohort.prox_pull(x, 2.0, offsets, steps)
    scores = cohort.linear_predictor(x)
    slopes = cohort.prox_slopes(2.0 * scores + offsets, steps)
    for one, other in zip(swept, (scores, slopes, cohort.rmatvec(slopes)), strict=True):
        close(one, other)
    masked = cohort.prox_pull(x, 2.0, offsets, steps, among=scores > 0)
    close(masked[1], slopes)
    close(masked[2], cohort.rmatvec(np.where(scores > 0, slopes, 0.0)))
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 3)
    for one, other in zip(cohort.prox_pull(x, 2.0, offsets, steps), swept, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("loss", [Logistic(), Huber(), Hinge(), Softmax(classes=3)], ids=by_name)
def test_several_parties_and_other_losses_are_pulled_all_the_same(loss: Loss) -> None:
    shards, X, y = make(loss)
    cohort, rng = shards.cohort(), np.random.default_rng(1)
    x, shape = rng.normal(size=cohort.problem.dim), cohort.linear_predictor(np.zeros(cohort.problem.dim)).shape
    offsets, steps = rng.normal(size=shape), rng.uniform(0.1, 2.0, len(X))
    assert not cohort._can_sweep(x, offsets, steps)
    scores, slopes, pulled = cohort.prox_pull(x, 2.0, offsets, steps)
    close(scores, cohort.linear_predictor(x))
    close(slopes, loss.prox_slope(2.0 * scores + offsets, steps, y))
    close(pulled, cohort.rmatvec(slopes))


def test_what_a_pass_cannot_take_is_refused_as_ever() -> None:
    cohort = Shards.build(make_problem(Logistic(), [3]), np.eye(3, FEATURES), np.ones(3), [0, 3]).cohort()
    x, offsets, steps = np.zeros(FEATURES), np.zeros(3), np.ones(3)
    with pytest.raises(InputError, match="finite"):
        cohort.prox_pull(x, 2.0, offsets + np.nan, steps)
    with pytest.raises(InputError, match="a step lies in"):
        cohort.prox_pull(x, 2.0, offsets, -steps)
    with pytest.raises(InputError, match="has the shape"):
        cohort.prox_pull(x[:-1], 2.0, offsets, steps)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    from consenso.kernels import compiled

    for loss in (Logistic(), Softmax(classes=3), Hinge()):
        shards, X, y = make(loss)
        offsets = np.concatenate(([0], np.cumsum(RAGGED)))
        x = np.random.default_rng(10).normal(size=(7, shards.problem.dim))

        def results(table: Any, y: Any = y, x: Any = x, ends: Any = offsets, facts: Problem = shards.problem) -> Any:
            cohort = Shards.build(facts, table, y, ends).cohort()
            return [cohort.gradient(x), cohort.prox(x, 2.0).x, cohort.prox(x, 2.0).residual]

        for table in (X, sparse.csr_array(X)):
            alone = results(table)
            with monkeypatch.context() as patch:
                patch.setattr(compiled, "WORTH_A_THREAD", 1)
                patch.setattr(compiled.numba.config, "NUMBA_NUM_THREADS", 3)
                threaded = results(table)
            for one, two in zip(alone, threaded, strict=True):
                assert np.array_equal(one, two)


def test_a_forked_process_may_go_on_computing() -> None:
    script = """
import os, numpy as np
from consenso.kernels import compiled
from consenso.losses import Logistic
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.shards import Shards
compiled.WORTH_A_THREAD, compiled.numba.config.NUMBA_NUM_THREADS = 1, 2
problem = Problem(loss=Logistic(), regularizer=NoPenalty(), features=2, sizes=[2, 3], row_bound=1.0)
cohort = Shards.build(problem, np.full((5, 2), 0.5), np.ones(5), [0, 2, 5]).cohort()
cohort.prox(np.ones((2, 2)), 1.0)
child = os.fork()
if child == 0:
    cohort.prox(np.zeros((2, 2)), 1.0)
    os._exit(7)
raise SystemExit(0 if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7 else 1)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=300).returncode == 0


# What goes in


def test_rows_are_scaled_to_the_bound_and_targets_clipped() -> None:
    loss = Huber()
    for cast in (np.array, sparse.csr_array, lambda table: np.array(table, dtype=np.float32)):
        X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-6.0, 8.0]])
        y = np.array([0.5, -7.0, 2.0, 1e9])
        problem = make_problem(loss, [2, 2], features=2, row_bound=1.0, target_bound=2.0)
        given_rows = cast(X)
        shards = Shards.build(problem, given_rows, y, [0, 2, 4])
        stored = shards._rows.matrix
        stored = stored.toarray() if sparse.issparse(stored) else stored
        np.testing.assert_allclose(stored, [[0.6, 0.8], [0.3, 0.4], [0, 0], [-0.6, 0.8]], rtol=1e-6)
        assert np.all(np.linalg.norm(stored.astype(np.float64), axis=1) <= 1.0)
        np.testing.assert_array_equal(shards._targets, [0.5, -2.0, 2.0, 2.0])
        assert (shards.scaled_rows(), shards.clipped_targets()) == (2, 2)
        kept = given_rows.toarray() if sparse.issparse(given_rows) else given_rows
        np.testing.assert_array_equal(kept, X.astype(kept.dtype))  # the caller's table is not touched
        np.testing.assert_array_equal(y, [0.5, -7.0, 2.0, 1e9])


@given(seed=st.integers(0, 10_000), bound=st.floats(1e-6, 1e6), dtype=st.sampled_from([np.float32, np.float64]))
def test_no_row_is_longer_than_the_bound(seed: int, bound: float, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(30, FEATURES)) * 10.0 ** rng.uniform(-7, 7, size=(30, 1))).astype(dtype)
    problem = make_problem(Logistic(), [30], row_bound=bound)
    shards = Shards.build(problem, X, np.ones(30), [0, 30])
    stored = shards._rows.matrix.astype(np.float64)
    assert np.all(np.linalg.norm(stored, axis=1) <= bound * (1 + 1e-15))
    close(shards.cohort().squared_norms, np.sum(stored**2, axis=1))
    # Directions are kept.
    long = np.linalg.norm(X.astype(np.float64), axis=1) > bound
    np.testing.assert_array_equal(stored[~long], X[~long])


def test_rows_whose_square_overflows_are_scaled_too() -> None:
    for cast in (np.array, sparse.csr_array):
        X = cast(np.array([[1e200, 1e200], [0.0, -1e300]]))
        shards = Shards.build(make_problem(Logistic(), [2], features=2, row_bound=1.0), X, np.ones(2), [0, 2])
        stored = shards._rows.matrix
        stored = stored.toarray() if sparse.issparse(stored) else stored
        np.testing.assert_allclose(stored, [[0.5**0.5, 0.5**0.5], [0.0, -1.0]])


def test_normalized_rows_change_by_rounding_only() -> None:
    """Half of the rows are a last bit above their bound, which no row may be."""
    X = np.random.default_rng(0).normal(size=(500, 9))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    shards = Shards.build(make_problem(Logistic(), [500], features=9, row_bound=1.0), X, np.ones(500), [0, 500])
    np.testing.assert_allclose(shards._rows.matrix, X, rtol=1e-14)
    exact = np.eye(9)[np.arange(500) % 9]
    shards = Shards.build(make_problem(Logistic(), [500], features=9, row_bound=1.0), exact, np.ones(500), [0, 500])
    assert shards.scaled_rows() == 0
    assert np.shares_memory(shards._rows.matrix, exact)


def test_sparse_duplicates_are_summed_without_touching_the_callers_table() -> None:
    X = sparse.csr_array((np.array([3.0, 4.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    shards = Shards.build(make_problem(Logistic(), [2], features=2), X, np.ones(2), [0, 2])
    np.testing.assert_array_equal(shards.cohort().squared_norms, [49.0, 1.0])
    assert X.nnz == 3


def test_three_ways_to_build_agree() -> None:
    shards, X, y = make(Logistic())
    party = np.repeat(np.arange(7), RAGGED)
    shuffle = np.random.default_rng(0).permutation(31)
    back = np.argsort(shuffle)
    x = np.random.default_rng(1).normal(size=(7, FEATURES))
    offsets = np.concatenate(([0], np.cumsum(RAGGED)))
    parts = [(X[offsets[i] : offsets[i + 1]], y[offsets[i] : offsets[i + 1]]) for i in range(7)]
    others = [
        Shards.from_parties(shards.problem, parts),
        Shards.from_parties(shards.problem, [(sparse.csr_array(A), b) for A, b in parts]),
        Shards.from_table(shards.problem, X, y, party),
        Shards.from_table(shards.problem, X[shuffle], y[shuffle], party[shuffle]),
        Shards.from_table(shards.problem, sparse.csr_array(X[shuffle]), y[shuffle], party[shuffle]),
        Shards.from_table(shards.problem, X[shuffle], y[shuffle], splits.Split(back, offsets)),
    ]
    for other in others:
        close(other.cohort().gradient(x), shards.cohort().gradient(x))
    assert np.shares_memory(others[2]._rows.matrix, X)


def test_tables_of_other_types() -> None:
    import pandas as pd

    problem = make_problem(Logistic(), [2], features=2)
    expected = (
        Shards.build(problem, np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2), [0, 2]).cohort().gradient(np.ones(2))
    )
    tables = [
        [[1, 0], [0, 1]],
        np.eye(2, dtype=bool),
        np.eye(2, dtype=np.float16),
        np.asfortranarray(np.eye(2)),
        pd.DataFrame({"a": [1, 0], "b": [0.0, 1.0]}),
        sparse.coo_array(np.eye(2)),
        sparse.csr_matrix(np.eye(2, dtype=np.int8)),
    ]
    for table in tables:
        close(Shards.build(problem, table, [1, 1], [0, 2]).cohort().gradient(np.ones(2)), expected)


def test_data_of_one_class_are_taken() -> None:
    for loss, label in ((Logistic(), 1.0), (Softmax(classes=3), 2)):
        shards = Shards.build(make_problem(loss, [4]), np.ones((4, FEATURES)), np.full(4, label), [0, 4])
        assert np.all(np.isfinite(shards.cohort().gradient(np.zeros(shards.problem.dim))))


def test_sizes_are_exact_under_replace_one_and_upper_bounds_under_add_remove() -> None:
    X, y = np.ones((5, FEATURES)), np.ones(5)
    with pytest.raises(InputError, match=r"party 1 was declared with 2 rows and has 3"):
        Shards.build(make_problem(Logistic(), [2, 2]), X, y, [0, 2, 5])
    problem = make_problem(Logistic(), [4, 4], adjacency="add-remove")
    cohort = Shards.build(problem, X, y, [0, 2, 5]).cohort()
    np.testing.assert_array_equal(cohort.scales, [0.25, 0.25])  # from the declared sizes
    close(cohort.value(np.zeros(FEATURES)), 0.25 * np.log(2) * np.array([2, 3]))
    with pytest.raises(InputError, match=r"party 1 has more rows than the 2 declared"):
        Shards.build(make_problem(Logistic(), [2, 2], adjacency="add-remove"), X, y, [0, 2, 5])


def test_a_client_holds_its_own_party_only() -> None:
    shards, X, y = make(Logistic())
    alone = Shards.from_parties(shards.problem, [(X[4:11], y[4:11])], parties=[2])
    cohort = alone.cohort()
    np.testing.assert_array_equal(cohort.parties, [2])
    assert np.shares_memory(cohort._rows.matrix, X)
    close(cohort.gradient(np.ones(FEATURES)), shards.cohort(2).gradient(np.ones(FEATURES)))
    with pytest.raises(InputError, match="party 3 has no rows here"):
        alone.cohort(3)


def test_a_prox_of_single_records_needs_one_more_array_at_most() -> None:
    parties, features = 20_000, 64
    rng = np.random.default_rng(0)
    X = rng.normal(size=(parties, features)) / 8
    unit = X.nbytes
    for loss in (Logistic(), Hinge()):
        problem = make_problem(loss, np.ones(parties, dtype=int), features=features)
        cohort = Shards.from_table(problem, X, np.ones(parties), splits.one_per_record(parties)).cohort()
        v = rng.normal(size=(parties, features))
        cohort.prox(v[0], 1.0)
        tracemalloc.start()
        prox = cohort.prox(v, 5.0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2.2 * unit
        assert prox.residual.max() < 1e-12


# What is refused, and what is never said


def refusals() -> list[tuple[str, Callable[[], Any], str]]:
    X, y = np.full((4, 2), CANARY), np.array([1.0, -1.0, 1.0, 1.0])
    labels = make_problem(Logistic(), [2, 2], features=2)
    reals = make_problem(Huber(), [2, 2], features=2)
    classes = make_problem(Softmax(classes=3), [2, 2], features=2)

    def spoiled(row: int, column: int, value: float) -> Any:
        table = X.copy()
        table[row, column] = value
        return table

    def build(problem: Problem, table: Any, targets: Any, offsets: Any = (0, 2, 4), **more: Any) -> Callable[[], Any]:
        return lambda: Shards.build(problem, table, targets, offsets, **more)

    return [
        ("nan", build(labels, spoiled(2, 1, np.nan), y), r"row 2 .rows count from 0., column 1 is not"),
        ("inf", build(labels, spoiled(3, 0, np.inf), y), r"row 3 .rows count from 0., column 0 is not"),
        ("-inf", build(labels, spoiled(0, 1, -np.inf), y), r"row 0 .rows count from 0., column 1 is not"),
        (
            "sparse nan",
            build(labels, sparse.csr_array(spoiled(2, 1, np.nan)), y),
            r"row 2 .rows count from 0., column 1 is not",
        ),
        (
            "single nan",
            build(labels, spoiled(1, 0, np.nan).astype(np.float32), y),
            r"row 1 .rows count from 0., column 0 is not",
        ),
        ("one axis", build(labels, X[0], y), r"two axes.*\(2,\)"),
        ("three axes", build(labels, X[None], y), r"two axes.*\(1, 4, 2\)"),
        ("text", build(labels, X.astype(str), y), r"table of numbers"),
        ("objects", build(labels, X.astype(object), y), r"table of numbers.*object"),
        ("columns", build(labels, X[:, :1], y), r"one column per feature, 2, but it has 1"),
        ("target count", build(labels, X, y[:3]), r"one target per row, 4.*\(3,\)"),
        ("target axes", build(labels, X, y[:, None]), r"one target per row, 4.*\(4, 1\)"),
        ("target nan", build(reals, X, [CANARY, np.nan, 1.0, 1.0]), r"target of row 1 is not"),
        ("label nan", build(labels, X, [1.0, 1.0, 1.0, np.nan]), r"target of row 3 is not"),
        ("label", build(labels, X, [1.0, CANARY, 1.0, 1.0]), r"-1 or \+1"),
        ("class high", build(classes, X, [0, 1, 123456, 2]), r"0\.\.2"),
        ("class low", build(classes, X, [0, 1, -123456, 2]), r"0\.\.2"),
        ("class type", build(classes, X, [0.0, 1.0, CANARY, 2.0]), r"integer class indices"),
        ("empty party", build(labels, X, y, (0, 4, 4)), r"party 1 holds none"),
        ("short offsets", build(labels, X, y, (0, 4)), r"offsets are 3 whole numbers"),
        ("offsets end", build(labels, X, y, (0, 2, 3)), r"from 0 to the number of rows, 4"),
        ("offsets type", build(labels, X, y, (0.0, 2.0, 4.0)), r"whole numbers.*float64"),
        ("offsets fall", build(labels, X, y, (0, 5, 4)), r"party 1 holds none"),
        ("parties order", build(labels, X, y, (0, 2, 4), parties=[1, 0]), r"ascending indices in 0\.\.1"),
        ("parties range", build(labels, X[:2], y[:2], (0, 2), parties=[2]), r"ascending indices in 0\.\.1"),
        ("parts count", lambda: Shards.from_parties(labels, [(X, y)]), r"per party is needed, 2, but 1"),
        (
            "part columns",
            lambda: Shards.from_parties(labels, [(X[:2], y[:2]), (X[2:, :1], y[2:])]),
            r"party 1: X has one column per feature",
        ),
        (
            "part targets",
            lambda: Shards.from_parties(labels, [(X[:2], y[:2]), (X[2:], y[:1])]),
            r"party 1: there is one target per row, 2",
        ),
        (
            "part empty",
            lambda: Shards.from_parties(labels, [(X[:2], y[:2]), (X[:0], y[:0])]),
            r"party 1 holds none",
        ),
        (
            "part kinds",
            lambda: Shards.from_parties(labels, [(X[:2], y[:2]), (sparse.csr_array(X[2:]), y[2:])]),
            r"all dense or all sparse",
        ),
        ("table rows", lambda: Shards.from_table(labels, X, y, [0, 1]), r"split has 2 rows, X has 4"),
        ("table party", lambda: Shards.from_table(labels, X, y, [0, 0, 0, 0]), r"party 1 holds none"),
    ]


@pytest.mark.parametrize(("call", "message"), [case[1:] for case in refusals()], ids=[case[0] for case in refusals()])
def test_bad_input_is_refused_without_a_private_value(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "12345" not in str(caught.value)


def test_a_representation_shows_public_facts_only() -> None:
    problem = make_problem(Huber(), [8, 8], features=2, adjacency="add-remove", row_bound=1.0)
    shards = Shards.build(problem, np.full((7, 2), CANARY), np.full(7, CANARY), [0, 3, 7])
    for shown in (repr(shards), repr(shards.cohort()), str(shards), str(shards.cohort(0))):
        assert not any(secret in shown for secret in ("12345", "7", "array", "rows=", "scaled", "clipped"))
        assert "2 parties" in shown


def make_cohort() -> Cohort:
    return make(Logistic())[0].cohort()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_cohort().gradient(np.ones(4)), r"x has the shape \(5,\) or \(7, 5\), but \(4,\)"),
        (lambda: make_cohort().gradient(np.ones((6, 5))), r"x has the shape.*but \(6, 5\)"),
        (lambda: make_cohort().prox(np.ones((7, 4)), 1.0), r"v has the shape"),
        (lambda: make_cohort().prox(np.ones(5), 0.0), r"step is a positive finite number"),
        (lambda: make_cohort().prox(np.ones(5), np.inf), r"step is a positive finite number"),
        (lambda: make_cohort().prox(np.ones(5), np.ones(3)), r"one for each party"),
        (lambda: make_cohort().prox(np.ones(5), 1.0, tolerance=0.0), r"tolerance=0.0.*positive"),
        (lambda: make_cohort().clipped_gradient(np.ones(5), 0.0), r"clip=0.0.*positive"),
        (lambda: make_cohort().clipped_gradient(np.ones(5), np.nan), r"clip=nan.*positive"),
        (lambda: make(Logistic())[0].cohort(7), r"party 7 has no rows here"),
        (lambda: make(Logistic())[0].cohort(-1), r"party -1 has no rows here"),
        (lambda: make(Logistic())[0].cohort([]), r"at least one"),
        (lambda: make(Logistic())[0].cohort([0.0]), r"indices"),
    ],
)
def test_bad_calls_are_refused_by_name(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
