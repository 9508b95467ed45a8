"""Law 6: declared constants of operators hold in the declared norm, and are attained where tight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Logistic, Softmax, Squared
from consenso.operators import (
    AllBlocks,
    CyclicBlocks,
    LinearMap,
    MeanGradient,
    MeanProx,
    RandomBlock,
    SampledBlocks,
    argmin,
    block_sizes,
    coordinates,
    is_separable,
    require_injective,
    shorten_slopes,
)
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, Box, GroupL1, NoPenalty, Simplex, Sum, Unpenalized
from consenso.shards import Shards

DIM = 4
SLACK = 1e-7


def test_matrices_know_their_rank_and_their_content():
    tall = np.random.default_rng(0).normal(size=(5, 3))
    forms = [LinearMap(tall), LinearMap(sparse.csr_array(tall)), LinearMap(aslinearoperator(tall))]
    values = np.linalg.svd(tall, compute_uv=False)
    x, y = np.arange(3.0), np.arange(5.0)
    for each in forms:
        assert each.smallest == pytest.approx(values[-1], rel=1e-12)
        assert each.smallest <= values[-1] <= values[0] <= each.largest
        np.testing.assert_allclose(each.apply(x), tall @ x)
        np.testing.assert_allclose(each.adjoint(y), tall.T @ y)
        np.testing.assert_allclose(each.solve(y), np.linalg.lstsq(tall, y)[0])
    assert repr(forms[0]) == repr(forms[1])
    assert repr(forms[0]) != repr(LinearMap(tall + 1e-9))
    assert LinearMap(tall.T).smallest == 0.0
    assert LinearMap(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-17]])).smallest == 0.0
    assert LinearMap(np.vstack([np.eye(2), 2 * np.eye(2)])).squared_scale == 5.0
    assert LinearMap(tall).squared_scale is None
    with pytest.raises(InputError, match="finite"):
        LinearMap(np.array([[np.nan]]))
    for rmatvec in (None, lambda y: 2 * tall.T @ y):
        with pytest.raises(InputError, match="rmatvec"):
            LinearMap(LinearOperator((5, 3), matvec=lambda x: tall @ x, rmatvec=rmatvec, dtype=float))
    with pytest.raises(PreconditionError, match="full column rank"):
        require_injective(LinearMap(np.array([[1.0, 0.0]])), "a splitting")


# --- operators that see data ---------------------------------------------------------------------------------------


def records(loss=None, regularizer=None, parties=1, seed=0, features=3, **options):
    loss = loss or Logistic()
    rng = np.random.default_rng(seed)
    problem = Problem(
        loss=loss,
        regularizer=regularizer or NoPenalty(),
        features=features,
        sizes=np.full(parties, 12),
        row_bound=1.0,
        **options,
    )
    rows = rng.normal(size=(parties, 12, features))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=2, keepdims=True))
    targets = {
        "sign": lambda: rng.choice([-1.0, 1.0], size=12),
        "class": lambda: rng.integers(loss.outputs, size=12),
        "real": lambda: rng.uniform(-1, 1, size=12),
    }[loss.targets]
    data = [(rows[i], targets()) for i in range(parties)]
    return problem, Shards.from_parties(problem, data), data


def applied(operator, problem, f, u):
    mean = (f.rmatvec(operator.coefficients(u, f)) * problem.scales[:, None]).sum(axis=0) / problem.parties
    return operator.apply(problem, u, mean)


@given(st.integers(0, 1000), st.floats(-2, 2))
def test_means_over_records_are_as_contractive_as_public_facts_say(seed, size):
    rng = np.random.default_rng(seed)
    for loss in (Logistic(), Softmax(classes=3)):
        for regularizer in (L1(strength=0.1), L2(strength=0.3)):
            problem, shards, _ = records(loss, regularizer, parties=2, seed=seed)
            u, v = rng.normal(size=(2, problem.dim)) * 10.0**size
            longest = 2 / loss.smoothness(1.0)
            for operator in (MeanGradient(step=longest), MeanGradient(step=0.3), MeanProx(step=4.0)):
                operator.check(problem)
                f = shards.cohort()
                near = np.linalg.norm(applied(operator, problem, f, u) - applied(operator, problem, f, v))
                assert near <= operator.lipschitz(problem) * np.linalg.norm(u - v) * (1 + 1e-9)


def test_parts_of_records_are_gradients_and_stay_within_their_bound():
    for loss in (Logistic(), Softmax(classes=3)):
        problem, shards, data = records(loss, parties=2)
        f = shards.cohort()
        u = np.random.default_rng(5).normal(size=problem.dim)
        rows, targets = np.vstack([d[0] for d in data]), np.concatenate([d[1] for d in data])
        scores = rows @ u.reshape(problem.features, -1)
        slopes = loss.slope(scores[:, 0] if loss.outputs == 1 else scores, targets).reshape(len(rows), -1)
        gradients = rows[:, :, None] * slopes[:, None, :]
        lengths = np.linalg.norm(gradients, axis=(1, 2))
        clip = float(np.median(lengths))
        kept = MeanGradient(step=1.0, clip=clip)
        coefficients = kept.coefficients(u, f).reshape(len(rows), -1)
        parts = rows[:, :, None] * coefficients[:, None, :]
        expected = gradients * np.minimum(1, clip / lengths)[:, None, None]
        np.testing.assert_allclose(parts, expected, atol=1e-12)
        assert kept.contribution(problem) == pytest.approx(clip)
        assert MeanGradient(step=1.0, clip=50.0).contribution(problem) == loss.lipschitz(1.0)


def test_the_mean_of_proxes_is_the_mean_of_proxes():
    problem, shards, data = records(Hinge())
    f = shards.cohort()
    operator = MeanProx(step=0.8)
    operator.check(problem)
    u = np.array([0.5, -0.2, 0.9])
    proxes = []
    for row, target in zip(*data[0], strict=True):
        steps = 0.8 * (row @ row)
        slope = Hinge().prox_slope(np.array([row @ u]), np.array([steps]), np.array([target]))[0]
        proxes.append(u - 0.8 * slope * row)
    np.testing.assert_allclose(applied(operator, problem, f, u), np.mean(proxes, axis=0), atol=1e-12)


def test_mean_operators_refuse_what_they_cannot_bound():
    squared, *_ = records(Squared(), target_bound=1.0)
    with pytest.raises(PreconditionError, match="Lipschitz"):
        MeanGradient(step=0.1).check(squared)
    MeanGradient(step=0.1, clip=1.0).check(squared)
    hinge, *_ = records(Hinge())
    with pytest.raises(PreconditionError, match="smooth"):
        MeanGradient(step=0.1).check(hinge)
    logistic, *_ = records()
    with pytest.raises(PreconditionError, match="DPSGD"):
        MeanGradient(step=8.1).check(logistic)
    with pytest.raises(InputError, match="clip"):
        MeanGradient(step=1.0, clip=0.0)


def test_shortening_leaves_short_gradients_alone():
    slopes = np.array([0.5, -2.0, 0.0])
    np.testing.assert_allclose(shorten_slopes(slopes, np.array([1.0, 4.0, 0.0]), 1.0), [0.5, -0.5, 0.0])
    assert shorten_slopes(slopes, np.ones(3), None) is slopes


# --- blocks --------------------------------------------------------------------------------------------------------


def test_blocks_cover_the_vector_once():
    assert block_sizes("X", 3, 7) == (3, 2, 2)
    assert block_sizes("X", (4, 3), 7) == (4, 3)
    np.testing.assert_array_equal(coordinates((3, 2, 2), np.array([0, 2])), [0, 1, 2, 5, 6])
    assert coordinates((3, 2, 2), np.array([], dtype=np.int64)).size == 0
    with pytest.raises(InputError, match="blocks"):
        block_sizes("X", (4, 4), 7)
    with pytest.raises(InputError, match="blocks"):
        block_sizes("X", 8, 7)


def test_activations_have_the_chances_they_state():
    rounds, blocks = 4000, 5
    sampled = SampledBlocks(rate=0.3, seed=3)
    for activation, chance in ((AllBlocks(), 1), (CyclicBlocks(), 1 / 5), (RandomBlock(seed=3), 1 / 5), (sampled, 0.3)):
        counts = np.zeros(blocks)
        for round_ in range(rounds):
            counts[activation.active(round_, blocks)] += 1
        # Six standard deviations: a false alarm has probability below 1e-8.
        slack = 6 * np.sqrt(rounds * 0.25)
        assert np.abs(counts - rounds * chance).max() <= slack
    assert [int(CyclicBlocks().active(k, 3)[0]) for k in range(5)] == [0, 1, 2, 0, 1]
    np.testing.assert_array_equal(RandomBlock(seed=1).active(7, 9), RandomBlock(seed=1).active(7, 9))
    with pytest.raises(InputError, match="rate"):
        SampledBlocks(rate=0.0)


@pytest.mark.parametrize(
    ("regularizer", "sizes", "expected"),
    [
        (L1(strength=1.0), (1, 1, 1, 1), True),
        (Sum(parts=(L1(strength=1.0), Box(low=-1.0, high=1.0))), (2, 2), True),
        (Ball(radius=1.0), (2, 2), False),
        (Ball(radius=1.0), (4,), True),
        (Simplex(), (1, 3), False),
        (GroupL1(strength=1.0, groups=2), (2, 2), True),
        (GroupL1(strength=1.0, groups=2), (1, 3), False),
        (Unpenalized(inner=GroupL1(strength=1.0, groups=3), last=1), (3, 1), True),
        (Unpenalized(inner=Ball(radius=1.0), last=1), (2, 2), False),
    ],
)
def test_separable_proxes_do_not_mix_blocks(regularizer, sizes, expected):
    assert is_separable(regularizer, sizes) is expected
    rng = np.random.default_rng(0)
    mixed = False
    for _ in range(20):
        v, w = rng.normal(size=(2, 4)) * 2
        for block in range(len(sizes)):
            own = coordinates(sizes, np.array([block]))
            changed = w.copy()
            changed[own] = v[own]
            mixed |= not np.allclose(regularizer.prox(v, 0.7)[own], regularizer.prox(changed, 0.7)[own])
    assert mixed is not expected


# --- the private argmin --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("step", [0.1, 100.0])
def test_the_certificate_of_the_argmin_bounds_the_true_distance(loss, step):
    rng = np.random.default_rng(2)
    problem, shards, _ = records(loss)
    f = shards.cohort()
    matrix = rng.normal(size=(problem.dim + 2, problem.dim))
    linear, v = LinearMap(matrix), rng.normal(size=problem.dim + 2)
    exact = argmin(f, linear, v, step, start=np.zeros(problem.dim), tolerance=1e-10)
    assert exact.residual <= 1e-10
    gradient = f.gradient(exact.x)[0] + matrix.T @ (matrix @ exact.x - v) / step
    assert np.linalg.norm(gradient) <= 1e-9
    for tolerance in (1.0, 1e-2, 1e-4):
        rough = argmin(f, linear, v, step, start=rng.normal(size=problem.dim), tolerance=tolerance)
        assert np.linalg.norm(matrix @ (rough.x - exact.x)) <= rough.residual + 1e-10


def test_the_argmin_of_a_scaled_isometry_is_a_prox_even_with_kinks():
    _, shards, _ = records(Hinge())
    f = shards.cohort()
    isometry = LinearMap(np.vstack([np.eye(3), 2 * np.eye(3)]))
    v = np.arange(6.0) / 5
    found = argmin(f, isometry, v, 0.5, start=np.zeros(3), tolerance=1e-9)
    expected = f.prox(isometry.adjoint(v)[None] / 5, 0.1).x[0]
    np.testing.assert_allclose(found.x, expected, atol=1e-9)
    with pytest.raises(PreconditionError, match="smooth"):
        argmin(f, LinearMap(np.diag([1.0, 2.0, 3.0])), v[:3], 0.5, start=np.zeros(3), tolerance=1e-9)
