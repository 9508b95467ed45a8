from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from consenso.errors import InputError, MessageError, PrivacyError
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
from consenso.rows import Layout, Rows
from consenso.subproblems import Prox, Worst, certify, check_points, local, local_prox, objectives
from consenso.subproblems.batch import Batch, Plain
from consenso.subproblems.local import descend_steadily
from consenso.subproblems.pieces import pieces

SMOOTH: list[Loss] = [Logistic(), Squared(), Huber(threshold=0.3), SmoothedHinge(smoothing=0.2), Softmax(classes=3)]
KINKED: list[Loss] = [Hinge(), Absolute(), EpsilonInsensitive(width=0.1)]
LOSSES = SMOOTH + KINKED
# (sizes, features): Gram systems, feature systems, both in one cohort, single records
SHAPES = [([4, 9, 2, 7], 12), ([30, 17, 40], 6), ([3, 25, 1, 11, 6], 8), ([1, 1, 1], 5)]


def by_name(loss: Loss) -> str:
    return loss.name


def make_rows(sizes: Any, features: int, outputs: int, rng: np.random.Generator) -> Rows:
    X = rng.normal(size=(int(np.sum(sizes)), features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Rows(X, Layout(np.concatenate(([0], np.cumsum(sizes)))), outputs)


def make_targets(loss: Loss, count: int, rng: np.random.Generator) -> Any:
    if loss.targets == "sign":
        return rng.choice([-1.0, 1.0], count)
    return rng.integers(0, loss.outputs, count) if loss.targets == "class" else rng.normal(size=count)


def prox(rows: Rows, targets: Any, loss: Loss, weights: Any, v: Any, tolerance: float = 1e-10) -> Prox:
    return local_prox(rows, targets, np.sqrt(rows.squared_norms()), loss, weights, v, tolerance)


def with_known_solution(
    loss: Loss, sizes: Any, features: int, step: float, seed: int
) -> tuple[Rows, Any, Any, Any, Any]:
    """A problem whose exact prox is x: v = x + t A'b with b a subgradient at the scores of x, some of them on kinks."""
    rng = np.random.default_rng(seed)
    rows = make_rows(sizes, features, loss.outputs, rng)
    targets = make_targets(loss, rows.count, rng)
    x = rng.normal(size=(rows.parties, features * loss.outputs))
    weights = step / rows.layout.sizes
    if loss in KINKED:
        # Fewer rows than features lie on a kink, as in a problem in general position.
        chosen = np.flatnonzero(rng.random(rows.count) < 0.4 * min(1.0, features / np.max(sizes)))
        scores = rows.linear_predictor(x)
        if loss.targets == "sign":
            scaled = rows.matrix.copy()
            factors = targets[chosen] / scores[chosen]
            keep = np.abs(factors) < 50
            chosen = chosen[keep]
            scaled[chosen] *= factors[keep][:, None]
            rows = Rows(scaled, rows.layout, 1)
        else:
            width = getattr(loss, "width", 0.0)
            targets[chosen] = scores[chosen] - width
        scores = rows.linear_predictor(x)
        slopes = loss.slope(scores, targets)
        shape = pieces(loss, targets)
        low, high = shape.slopes[chosen, -2], shape.slopes[chosen, -1]
        slopes[chosen] = low + rng.uniform(0.1, 0.9, chosen.size) * (high - low)
    else:
        slopes = loss.slope(rows.linear_predictor(x), targets)
    v = x + weights[:, None] * rows.rmatvec(slopes)
    return rows, targets, weights, v, x


def of_each_loss(loss: Loss, sizes: Any, features: int, exponent: int) -> dict[str, Any]:
    return {"shape": (repr(loss), repr(sizes), features), "step": (repr(loss), exponent)}


@pytest.mark.sweep(by=of_each_loss)
@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
@pytest.mark.parametrize(("sizes", "features"), SHAPES)
@pytest.mark.parametrize("exponent", range(-6, 7, 2))
def test_the_certificate_covers_the_true_error(loss: Loss, sizes: Any, features: int, exponent: int) -> None:
    step = 10.0**exponent
    rows, targets, weights, v, x = with_known_solution(loss, sizes, features, step, seed=exponent + 10)
    found = prox(rows, targets, loss, weights, v)
    # v itself is rounded, and a prox is non-expansive. A kink that was put into a target or a row is rounded too, which
    # the problem feels through the weight of a record.
    known = 1e-15 * (np.linalg.norm(v, axis=1) + np.linalg.norm(x, axis=1))
    if loss in KINKED:
        known += 1e-13 * (1 + np.linalg.norm(x, axis=1))
    error = np.linalg.norm(found.x - x, axis=1)
    assert np.all(error <= found.residual + known)
    # Rounding of sums of size t is what is left at the largest steps.
    assert np.all(found.residual <= np.maximum(1e-10, 2e-14 * step))


@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    exponent=st.floats(-6, 4),
    shape=st.sampled_from(SHAPES),
)
def test_certificates_hold_on_random_problems(seed: int, loss: Loss, exponent: float, shape: Any) -> None:
    step = 10.0**exponent
    rows, targets, weights, v, x = with_known_solution(loss, *shape, step, seed)
    found = prox(rows, targets, loss, weights, v)
    known = 1e-12 * (1 + np.linalg.norm(v, axis=1) + np.linalg.norm(x, axis=1))
    assert np.all(np.linalg.norm(found.x - x, axis=1) <= found.residual + known)


@pytest.mark.parametrize("loss", SMOOTH, ids=by_name)
@pytest.mark.parametrize(("sizes", "features"), SHAPES[:3])
def test_smooth_losses_against_scipy(loss: Loss, sizes: Any, features: int) -> None:
    rng = np.random.default_rng(1)
    rows = make_rows(sizes, features, loss.outputs, rng)
    targets, weights = make_targets(loss, rows.count, rng), 3.0 / rows.layout.sizes
    v = rng.normal(size=(rows.parties, features * loss.outputs))
    found = prox(rows, targets, loss, weights, v)
    for i in range(rows.parties):
        own = slice(rows.layout.offsets[i], rows.layout.offsets[i + 1])
        A, b, t = rows.matrix[own], targets[own], weights[i]

        def objective(x: Any, A: Any = A, b: Any = b, t: float = t, i: int = i) -> tuple[float, Any]:
            scores = A @ (x if loss.outputs == 1 else x.reshape(features, -1))
            value = t * loss.value(scores, b).sum() + 0.5 * np.sum((x - v[i]) ** 2)
            return value, t * (A.T @ loss.slope(scores, b)).reshape(-1) + x - v[i]

        reference = minimize(objective, v[i], jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 2000})
        # The reference's own gradient bounds its error by strong convexity.
        slack = np.linalg.norm(objective(reference.x)[1])
        assert slack < 1e-6
        assert np.linalg.norm(found.x[i] - reference.x) <= found.residual[i] + slack


@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
def test_every_loss_against_cvxpy(loss: Loss) -> None:
    import cvxpy as cp

    rng = np.random.default_rng(2)
    rows = make_rows([9, 14], 10, loss.outputs, rng)
    targets, weights = make_targets(loss, rows.count, rng), 4.0 / rows.layout.sizes
    v = rng.normal(size=(2, 10 * loss.outputs))
    found = prox(rows, targets, loss, weights, v)
    for i in range(2):
        own = slice(rows.layout.offsets[i], rows.layout.offsets[i + 1])
        A, b = rows.matrix[own], targets[own]
        x = cp.Variable((10, loss.outputs))
        scores = A @ x
        flat = scores[:, 0]
        terms = {
            "logistic": lambda b=b, s=flat: cp.sum(cp.logistic(cp.multiply(-b, s))),
            "squared": lambda b=b, s=flat: cp.sum_squares(s - b) / 2,
            "huber": lambda b=b, s=flat: cp.sum(cp.huber(s - b, 0.3)) / 2,
            "hinge": lambda b=b, s=flat: cp.sum(cp.pos(1 - cp.multiply(b, s))),
            "smoothed hinge": lambda b=b, s=flat: _smoothed_hinge(cp, 1 - cp.multiply(b, s), 0.2),
            "absolute": lambda b=b, s=flat: cp.norm1(s - b),
            "epsilon-insensitive": lambda b=b, s=flat: cp.sum(cp.pos(cp.abs(s - b) - 0.1)),
            "softmax": lambda b=b, s=scores: (
                cp.sum(cp.log_sum_exp(s, axis=1)) - cp.sum(cp.multiply(s, np.eye(loss.outputs)[b]))
            ),
        }
        away = x - v[i].reshape(10, loss.outputs)
        problem = cp.Problem(cp.Minimize(weights[i] * terms[loss.name]() + cp.sum_squares(away) / 2))
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
        # An interior point method's objective is good to about 1e-12, its point to the square root of that.
        np.testing.assert_allclose(found.x[i], np.asarray(x.value).reshape(-1), atol=3e-6)


def _smoothed_hinge(cp: Any, shortfall: Any, smoothing: float) -> Any:
    """The hinge with a parabola at its corner, as the smallest sum of a parabola and a slope."""
    near = cp.Variable(shortfall.shape)
    return cp.sum_squares(near) / (2 * smoothing) + cp.sum(cp.pos(shortfall - near))


@given(seed=st.integers(0, 10_000), loss=st.sampled_from(LOSSES), exponent=st.floats(-3, 3))
def test_a_prox_is_firmly_non_expansive(seed: int, loss: Loss, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    rows = make_rows([4, 15, 1], 7, loss.outputs, rng)
    targets, weights = make_targets(loss, rows.count, rng), 10.0**exponent / rows.layout.sizes
    v, w = 3 * rng.normal(size=(2, 3, 7 * loss.outputs))
    one, two = prox(rows, targets, loss, weights, v), prox(rows, targets, loss, weights, w)
    apart = one.x - two.x
    slack = (one.residual + two.residual) * (np.linalg.norm(v - w, axis=1) + 2 * np.linalg.norm(apart, axis=1) + 1)
    assert np.all(np.sum(apart**2, axis=1) <= np.sum(apart * (v - w), axis=1) + slack)


@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
def test_a_step_moves_no_further_than_the_slopes_allow(loss: Loss) -> None:
    rng = np.random.default_rng(3)
    rows = make_rows([6, 20], 8, loss.outputs, rng)
    targets, weights = make_targets(loss, rows.count, rng), 2.0 / rows.layout.sizes
    v = rng.normal(size=(2, 8 * loss.outputs))
    found = prox(rows, targets, loss, weights, v)
    assert np.all(np.linalg.norm(found.x - v, axis=1) <= 2.0 * loss.slope_bound + found.residual)


def test_the_three_systems_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    for loss in (Logistic(), Huber(threshold=0.3), Hinge()):
        for sizes, features in SHAPES[:3]:
            rng = np.random.default_rng(4)
            rows = make_rows(sizes, features, 1, rng)
            targets, weights = make_targets(loss, rows.count, rng), 2.0 / rows.layout.sizes
            v = rng.normal(size=(rows.parties, features))
            answers = []
            for side in range(3):
                monkeypatch.setattr(objectives, "sides", lambda rows, side=side: np.full(rows.parties, side))
                answers.append(prox(rows, targets, loss, weights, v))
            for other in answers[1:]:
                gap = np.linalg.norm(other.x - answers[0].x, axis=1)
                assert np.all(gap <= other.residual + answers[0].residual)
                assert np.all(other.residual <= 1e-10)


def test_groups_that_fit_in_memory_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows = make_rows([3, 25, 1, 11, 6, 30], 8, 1, rng)
    targets, weights = make_targets(Logistic(), rows.count, rng), 2.0 / rows.layout.sizes
    v = rng.normal(size=(6, 8))
    whole = prox(rows, targets, Logistic(), weights, v)
    monkeypatch.setattr(local, "GROUP_NUMBERS", 50)
    cut = prox(rows, targets, Logistic(), weights, v)
    np.testing.assert_allclose(cut.x, whole.x, rtol=0, atol=2e-10)
    assert cut.residual.max() <= 1e-10


@pytest.mark.parametrize("loss", KINKED, ids=by_name)
def test_equal_rows_and_rows_of_zeros_keep_the_certificate_tight(loss: Loss) -> None:
    rng = np.random.default_rng(6)
    few = make_rows([5], 9, 1, rng).matrix
    X = np.concatenate((np.repeat(few, 4, axis=0), np.zeros((3, 9))))
    for matrix in (X, sparse.csr_array(X)):
        rows = Rows(matrix, Layout(np.array([0, 23])))
        targets = np.repeat(make_targets(loss, 6, rng), 4)[:23]
        found = prox(rows, targets, loss, np.array([5.0 / 23]), rng.normal(size=(1, 9)))
        assert found.residual[0] <= 1e-10


@pytest.mark.parametrize("loss", [Hinge(), Absolute(), EpsilonInsensitive(width=0.125)], ids=by_name)
def test_dependent_rows_on_kinks_get_a_weaker_bound_that_still_holds(loss: Loss) -> None:
    # One-hot rows satisfy a + b = c + d, so scores on kinks depend on each other. Every number is a small multiple of a
    # power of two and no operation rounds: x is the prox exactly.
    rng = np.random.default_rng(7)
    rows = Rows(
        np.concatenate([np.eye(4)[rng.integers(0, 4, 40)] for _ in range(2)], axis=1), Layout(np.array([0, 40]))
    )
    x = rng.choice([-0.5, 0.5], size=(1, 8))
    scores = rows.linear_predictor(x)
    inside = rng.integers(1, 8, 40) / 8
    if loss.targets == "sign":
        targets = np.where(scores != 0, scores, rng.choice([-1.0, 1.0], 40))
        slopes = np.where(scores != 0, -targets * inside, -targets)
    else:
        targets = scores - getattr(loss, "width", 0.0)
        slopes = inside
    v = x + 32.0 * rows.rmatvec(slopes)
    found = prox(rows, targets, loss, np.array([32.0]), v)
    assert np.linalg.norm(found.x - x) <= found.residual[0] <= 1e-4


def test_all_rows_zero_is_the_identity() -> None:
    for loss in LOSSES:
        rows = Rows(np.zeros((4, 3)), Layout(np.array([0, 3, 4])), loss.outputs)
        targets = make_targets(loss, 4, np.random.default_rng(0))
        v = np.ones((2, 3 * loss.outputs))
        found = prox(rows, targets, loss, np.ones(2), v)
        np.testing.assert_array_equal(found.x, v)
        assert found.residual.max() < 1e-13


def test_one_step_per_party_and_a_shared_point() -> None:
    rng = np.random.default_rng(8)
    rows = make_rows([4, 9], 6, 1, rng)
    targets, v = make_targets(Logistic(), 13, rng), rng.normal(size=6)
    both = prox(rows, targets, Logistic(), np.array([0.1, 2.0]), v)
    for i, own in enumerate((slice(0, 4), slice(4, 13))):
        alone = Rows(rows.matrix[own], Layout(np.array([0, own.stop - own.start])))
        found = prox(alone, targets[own], Logistic(), np.array([[0.1, 2.0][i]]), v)
        np.testing.assert_allclose(found.x[0], both.x[i], rtol=0, atol=2e-10)


def test_squared_loss_is_one_linear_solve() -> None:
    rng = np.random.default_rng(9)
    for sizes, features in SHAPES[:3]:
        rows = make_rows(sizes, features, 1, rng)
        targets, weights = rng.normal(size=rows.count), 5.0 / rows.layout.sizes
        v = rng.normal(size=(rows.parties, features))
        found = prox(rows, targets, Squared(), weights, v)
        for i in range(rows.parties):
            own = slice(rows.layout.offsets[i], rows.layout.offsets[i + 1])
            A, t = rows.matrix[own], weights[i]
            exact = np.linalg.solve(np.eye(features) + t * A.T @ A, v[i] + t * A.T @ targets[own])
            assert np.linalg.norm(found.x[i] - exact) <= found.residual[i] + 1e-13


def test_an_uncertified_prox_is_a_privacy_error_that_says_nothing_of_the_data() -> None:
    answer = Prox(np.ones((2, 3)), np.array([1e-12, 0.12345]))
    assert certify(answer, 0.2, "ConsensusADMM") is answer.x
    with pytest.raises(PrivacyError, match=r"ConsensusADMM: .*tolerance of 1e-10.*larger tolerance") as caught:
        certify(answer, 1e-10, "ConsensusADMM")
    assert "12345" not in str(caught.value)
    with pytest.raises(PrivacyError):
        certify(Prox(np.ones((1, 3)), np.array([np.nan])), 1e-10, "ConsensusADMM")


def test_a_tolerance_out_of_reach_is_reported_not_hidden() -> None:
    rng = np.random.default_rng(10)
    rows = make_rows([9, 30], 12, 1, rng)
    targets = make_targets(Logistic(), 39, rng)
    found = prox(rows, targets, Logistic(), np.full(2, 1e6), rng.normal(size=(2, 12)), tolerance=1e-15)
    assert np.all((found.residual > 1e-15) & (found.residual < 1e-6))


def test_a_loss_with_unknown_kinks_is_refused_by_name() -> None:
    class Mystery:
        def __repr__(self) -> str:
            return "Mystery()"

    with pytest.raises(InputError, match=r"Mystery\(\).*register"):
        pieces(Mystery(), np.ones(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", SMOOTH, ids=by_name)
@pytest.mark.parametrize("far", [0.0, 1.0, 1e3])
def test_the_last_resort_certifies_every_smooth_prox_from_wherever_it_starts(loss: Loss, far: float) -> None:
    rng = np.random.default_rng(5)
    rows = make_rows([6, 11], 4, loss.outputs, rng)
    targets, weights = make_targets(loss, rows.count, rng), np.array([0.7, 2.0])
    points = rng.normal(size=(2, 4 * loss.outputs))
    batch = Batch(rows, Plain(loss, targets), weights, points, np.sqrt(rows.squared_norms()))
    start = points + far * rng.normal(size=points.shape)
    found, residual = descend_steadily(batch, start, 1e-10)
    assert (residual <= 1e-10).all()
    exact = prox(rows, targets, loss, weights, points, 1e-12)
    assert (np.linalg.norm(found - exact.x, axis=1) <= residual + exact.residual).all()


@pytest.mark.parametrize("bound", [1e-3, 1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("loss", SMOOTH, ids=by_name)
def test_where_public_facts_allow_a_prox_no_rows_keep_it_from_its_certificate(loss: Loss, bound: float) -> None:
    rng = np.random.default_rng(7)
    drawn = rng.normal(size=(8, 3))
    drawn *= bound / np.linalg.norm(drawn, axis=1, keepdims=True)
    opposite = np.concatenate([drawn[:4], -drawn[:4]])  # whose pulls cancel, while what is rounded does not
    allowed = set()
    for weight, far in ((0.1, 0.0), (0.1, 5.0), (10.0, 0.0), (1e3, 1.0)):
        point, weights, sizes = far * rng.normal(size=3 * loss.outputs), np.array([weight / 8]), np.array([8])
        length = np.array([np.linalg.norm(point)])
        worst = Worst(length=length, weights=weights, sizes=sizes, loss=loss, row_bound=bound, target_bound=4.0)
        try:
            check_points(worst, 1e-10, "test")
        except MessageError:
            allowed.add(False)
            continue
        allowed.add(True)
        for matrix in (drawn, opposite, np.tile(drawn[:1], (8, 1)), 1e-3 * drawn):
            targets = make_targets(loss, 8, rng)
            found = prox(Rows(matrix, Layout(np.array([0, 8])), loss.outputs), targets, loss, weights, point[None])
            assert found.residual[0] <= 1e-10
    assert (True in allowed) if bound <= 1 else (False in allowed)


@pytest.mark.parametrize("loss", LOSSES, ids=by_name)
def test_rows_of_zeros_leave_a_point_where_it_is_however_long(loss: Loss) -> None:
    rows = Rows(np.zeros((5, 3)), Layout(np.array([0, 1, 5])), loss.outputs)
    targets = make_targets(loss, 5, np.random.default_rng(1))
    v = np.random.default_rng(2).normal(size=(2, 3 * loss.outputs)) * 1e6
    found = prox(rows, targets, loss, np.ones(2), v)
    np.testing.assert_array_equal(found.x, v)
    np.testing.assert_array_equal(found.residual, 0.0)
