"""Law 6: declared constants of operators hold in the declared norm, and are attained where tight."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Logistic, Softmax, Squared
from consenso.operators import (
    AllBlocks,
    BlockGradientStep,
    CyclicBlocks,
    DouglasRachford,
    GradientStep,
    Image,
    LinearMap,
    MeanGradient,
    MeanProx,
    ProximalGradient,
    ProximalPoint,
    RandomBlock,
    ReflectedProx,
    SampledBlocks,
    argmin,
    block_sizes,
    coordinates,
    is_separable,
    lions_mercier,
    shorten_slopes,
)
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, Box, ElasticNet, GroupL1, NoPenalty, Simplex, Sum, Unpenalized
from consenso.shards import Shards

DIM = 4
EXAMPLES = settings(max_examples=60, deadline=None)
SLACK = 1e-7


@dataclass(frozen=True, eq=False)
class Quadratic:
    """u' H u / 2 + <b, u>."""

    hessian: np.ndarray
    slope: np.ndarray
    weights: np.ndarray | None = None

    @property
    def spectrum(self):
        scale = np.ones(DIM) if self.weights is None else self.weights
        return np.linalg.eigvalsh(self.hessian / np.sqrt(np.outer(scale, scale)))

    @property
    def smoothness(self):
        return float(self.spectrum[-1])

    @property
    def strong_convexity(self):
        return max(0.0, float(self.spectrum[0]))

    def gradient(self, u):
        return self.hessian @ u + self.slope

    def prox(self, v, step):
        return np.linalg.solve(np.eye(len(v)) + step * self.hessian, v - step * self.slope)


@dataclass(frozen=True, eq=False)
class Linear:
    slope: np.ndarray
    strong_convexity: float = 0.0
    smoothness: float = 0.0

    def gradient(self, u):
        return self.slope

    def prox(self, v, step):
        return v - step * self.slope


def quadratic(seed: int, *, flat: int = 1) -> Quadratic:
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    values = np.exp(rng.normal(size=DIM))
    values[:flat] = 0.0
    return Quadratic((vectors * values) @ vectors.T, rng.normal(size=DIM))


def every_operator(seed: int):
    """One of each kind, on random functions."""
    rng = np.random.default_rng(seed)
    smooth, curved = quadratic(seed), quadratic(seed + 1, flat=0)
    step = float(rng.uniform(0.05, 2.0)) / smooth.smoothness
    rough = L1(strength=float(rng.uniform(0, 1)))
    box = Box(low=-0.3, high=0.5)
    left, right = LinearMap(rng.normal(size=(6, DIM))), LinearMap(rng.normal(size=(6, 3)))
    weights = np.exp(rng.normal(size=DIM))
    scaled = Quadratic(smooth.hessian, smooth.slope, weights)
    yield GradientStep(function=smooth, step=step)
    yield GradientStep(function=curved, step=2 / (curved.smoothness + curved.strong_convexity))
    yield BlockGradientStep(function=scaled, weights=weights, step=float(rng.uniform(0.05, 2)) / scaled.smoothness)
    yield ProximalPoint(function=rough, step=step)
    yield ProximalPoint(function=curved, step=step)
    yield ProximalPoint(function=Simplex(), step=step)
    yield ReflectedProx(function=box, step=step)
    yield ReflectedProx(function=curved, step=step, smoothness=curved.smoothness)
    yield ProximalGradient(function=smooth, regularizer=rough, step=step)
    yield ProximalGradient(function=curved, regularizer=ElasticNet(l1=0.3, l2=0.7), step=1 / curved.smoothness)
    yield DouglasRachford(first=smooth, second=rough, step=step, relaxation=float(rng.uniform(0.1, 1)))
    yield DouglasRachford(
        first=curved, second=L2(strength=0.5), step=step, first_smoothness=curved.smoothness, second_smoothness=0.5
    )
    yield lions_mercier(curved, rough, left=left, right=LinearMap(-left.dense), step=step)
    yield lions_mercier(smooth, L1(strength=0.4), left=left, right=right, constant=rng.normal(size=6), step=step)


@EXAMPLES
@given(st.integers(0, 10_000), st.floats(-4, 4))
def test_every_operator_is_as_contractive_and_as_averaged_as_it_says(seed, size):
    rng = np.random.default_rng(seed)
    for operator in every_operator(seed):
        dim = operator.first.map.rows if isinstance(getattr(operator, "first", None), Image) else DIM
        u, v = rng.normal(size=(2, dim)) * 10.0**size
        near, far = operator.norm(operator(u) - operator(v)), operator.norm(u - v)
        assert near <= operator.lipschitz * far + SLACK * max(1.0, far), type(operator).__name__
        assert operator.lipschitz <= 1 + 1e-12
        # a-averaged: |Ru - Rv|^2 <= |u - v|^2 - (1 - a)/a |(I - R)u - (I - R)v|^2
        moved = operator.norm((u - operator(u)) - (v - operator(v)))
        share = (1 - operator.averagedness) / operator.averagedness
        assert near**2 <= far**2 - share * moved**2 + SLACK * max(1.0, far**2), type(operator).__name__


def test_contractions_are_attained_by_quadratics():
    curved = quadratic(3, flat=0)
    values, vectors = np.linalg.eigh(curved.hessian)
    first, last = vectors[:, 0], vectors[:, -1]
    for step in (0.1 / curved.smoothness, 1.9 / curved.smoothness):
        operator = GradientStep(function=curved, step=step)
        rates = [np.linalg.norm(operator(direction) - operator(np.zeros(DIM))) for direction in (first, last)]
        assert max(rates) == pytest.approx(operator.lipschitz, rel=1e-12)
    prox = ProximalPoint(function=curved, step=0.7)
    assert np.linalg.norm(prox(first) - prox(0 * first)) == pytest.approx(prox.lipschitz, rel=1e-12)
    for step in (0.3 / values[-1], 3 / values[0]):
        reflected = ReflectedProx(function=curved, step=step, smoothness=float(values[-1]))
        rates = [np.linalg.norm(reflected(direction) - reflected(0 * direction)) for direction in (first, last)]
        assert max(rates) == pytest.approx(reflected.lipschitz, rel=1e-12)


def test_averagedness_of_proximal_gradient_is_attained():
    # f quadratic along one axis with step * smoothness = s, r the indicator of {0} along the other.
    s = 1.5
    flat = Quadratic(np.diag([s, 0, 0, 0]), np.zeros(DIM))
    operator = ProximalGradient(function=flat, regularizer=NoPenalty(), step=1.0)
    assert operator.averagedness == pytest.approx(2 / (4 - s))
    assert GradientStep(function=flat, step=1.0).averagedness == pytest.approx(s / 2)


def test_an_averaged_gradient_step_is_not_averaged_with_less():
    curved = quadratic(5, flat=0)
    operator = GradientStep(function=curved, step=1.2 / curved.smoothness)
    last = np.linalg.eigh(curved.hessian)[1][:, -1]
    less = operator.averagedness * 0.99
    moved = last - (operator(last) - operator(0 * last))
    near = operator(last) - operator(0 * last)
    assert near @ near > 1 - (1 - less) / less * (moved @ moved)


def test_block_steps_alone_may_expand():
    coupled = Quadratic(np.array([[1.0, 0.99, 0, 0], [0.99, 1.0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]), np.zeros(DIM))
    operator = BlockGradientStep(function=coupled, weights=np.ones(DIM), step=1.0)
    worst = np.array([0.0, 1.0, 0, 0])
    assert np.linalg.norm(operator(worst)) <= operator.lipschitz + 1e-12
    assert np.linalg.norm(operator.on(worst, np.array([0]))) > 1.4


@EXAMPLES
@given(st.integers(0, 10_000))
def test_sensitivities_hold_between_neighbouring_functions(seed):
    rng = np.random.default_rng(seed)
    curved = quadratic(seed, flat=int(rng.integers(2)))
    change = rng.normal(size=DIM)
    neighbour = Quadratic(curved.hessian, curved.slope + change)
    gap = float(np.linalg.norm(change))
    u = rng.normal(size=DIM) * 3
    step = 1 / curved.smoothness
    weights = np.exp(rng.normal(size=DIM))
    rough = ElasticNet(l1=0.2, l2=float(rng.uniform(0, 1)))
    left = LinearMap(rng.normal(size=(6, DIM)) * 0.1)
    wide = rng.normal(size=6)
    cases = [
        (GradientStep(function=curved, step=step, gradient_gap=gap), u),
        (ProximalPoint(function=curved, step=2.0, gradient_gap=gap), u),
        (ReflectedProx(function=curved, step=2.0, gradient_gap=gap), u),
        (ProximalGradient(function=curved, regularizer=rough, step=step, gradient_gap=gap), u),
    ]
    for operator, point in cases:
        other = replace(operator, function=neighbour)
        assert operator.norm(operator(point) - other(point)) <= operator.sensitivity * (1 + 1e-9)
    scaled = Quadratic(curved.hessian, curved.slope, weights)
    block = BlockGradientStep(
        function=scaled, weights=weights, step=1 / scaled.smoothness, gradient_gaps=np.abs(change)
    )
    other = replace(block, function=Quadratic(curved.hessian, curved.slope + change, weights))
    assert block.norm(block(u) - other(u)) == pytest.approx(block.sensitivity, rel=1e-9)
    general = {"left": left, "right": LinearMap(-left.dense), "step": 0.5, "relaxation": 0.4}
    one = lions_mercier(curved, rough, gradient_gap=gap, **general)
    another = lions_mercier(neighbour, rough, **general)
    assert one.norm(one(wide) - another(wide)) <= one.sensitivity * (1 + 1e-6) + 1e-8


def test_sensitivities_are_attained_by_linear_functions():
    slope = np.array([1.0, -2.0, 0.5, 3.0])
    gap = 2 * np.linalg.norm(slope)
    one, other = Linear(slope), Linear(-slope)
    for kind in (ProximalPoint, ReflectedProx):
        first = kind(function=one, step=0.7, gradient_gap=gap)
        assert np.linalg.norm(first(slope) - kind(function=other, step=0.7)(slope)) == pytest.approx(first.sensitivity)
    relaxed = DouglasRachford(first=one, second=L1(strength=0.1), step=0.7, relaxation=0.3, gradient_gap=gap)
    assert np.linalg.norm(relaxed(slope) - replace(relaxed, first=other)(slope)) == pytest.approx(relaxed.sensitivity)


def test_a_small_matrix_moves_its_image_more_than_its_norm_suggests():
    # A = 0.1: the printed Theorem 7 says 0.4 where the truth is 4 (times L * step * relaxation / n).
    flat = LinearMap(0.1 * np.eye(1))
    one, other = Linear(np.ones(1)), Linear(-np.ones(1))
    make = lambda f, gap: lions_mercier(
        f, NoPenalty(), left=flat, right=flat.opposite, step=0.2, relaxation=0.5, gradient_gap=gap
    )
    first = make(one, 2.0)
    moved = np.linalg.norm(first(np.zeros(1)) - make(other, 2.0)(np.zeros(1)))
    assert moved == pytest.approx(first.sensitivity)
    assert moved == pytest.approx(4 * 0.5 * 0.2 / 0.1)


def test_fixed_points_solve_the_problem():
    rng = np.random.default_rng(0)
    curved, rough = quadratic(8, flat=0), L1(strength=0.3)
    forward = ProximalGradient(function=curved, regularizer=rough, step=1 / curved.smoothness)
    splitting = DouglasRachford(first=curved, second=rough, step=0.5)
    x, u = np.zeros(DIM), rng.normal(size=DIM)
    for _ in range(3000):
        x, u = forward(x), splitting(u)
    np.testing.assert_allclose(splitting.solution(u), x, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse", "operator"])
def test_lions_mercier_solves_the_generalised_lasso(kind):
    import cvxpy as cp

    rng = np.random.default_rng(1)
    curved = quadratic(11, flat=0)
    differences = np.diff(np.eye(DIM), axis=0)
    stacked = np.vstack([differences, np.eye(DIM)])
    convert = {"dense": lambda m: m, "sparse": sparse.csr_matrix, "operator": aslinearoperator}[kind]
    penalty = Unpenalized(inner=L1(strength=0.7), last=DIM)
    constant = rng.normal(size=len(stacked)) * 0.1
    operator = lions_mercier(
        curved,
        penalty,
        left=LinearMap(convert(stacked)),
        right=LinearMap(convert(-np.eye(len(stacked)))),
        constant=constant,
        step=1.0,
    )
    u = np.zeros(len(stacked))
    for _ in range(500):
        u = operator(u)
    z = operator.solution(u)  # -B z, and B = -I
    x = cp.Variable(DIM)
    objective = cp.quad_form(x, cp.psd_wrap(curved.hessian)) / 2 + curved.slope @ x
    shifted = stacked @ x - constant
    cp.Problem(cp.Minimize(objective + 0.7 * cp.norm1(shifted[: DIM - 1]))).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    np.testing.assert_allclose(LinearMap(stacked).solve(constant + z), x.value, atol=1e-6)


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
        Image(function=NoPenalty(), map=LinearMap(np.array([[1.0, 0.0]])))


def test_steps_that_expand_are_refused():
    curved = quadratic(2, flat=0)
    with pytest.raises(InputError, match="2/smoothness"):
        GradientStep(function=curved, step=2.1 / curved.smoothness)
    with pytest.raises(InputError, match="step"):
        ProximalPoint(function=curved, step=0.0)
    with pytest.raises(InputError, match="relaxation"):
        DouglasRachford(first=curved, second=L1(strength=1.0), step=1.0, relaxation=1.2)
    with pytest.raises(InputError, match="gradient_gap"):
        ProximalPoint(function=curved, step=1.0, gradient_gap=-1.0)


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


@EXAMPLES
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
    for activation in (AllBlocks(), CyclicBlocks(), RandomBlock(seed=3), SampledBlocks(rate=0.3, seed=3)):
        counts = np.zeros(blocks)
        for round_ in range(rounds):
            counts[activation.active(round_, blocks)] += 1
        # Six standard deviations: a false alarm has probability below 1e-8.
        slack = 6 * np.sqrt(rounds * 0.25)
        assert np.abs(counts - rounds * activation.chance(blocks)).max() <= slack
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
