"""The exact fit against an independent solver, and its certificate against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from consenso.errors import InputError
from consenso.losses import Absolute, EpsilonInsensitive, Hinge, Huber, Logistic, SmoothedHinge, Softmax, Squared
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, Box, ElasticNet, GroupL1, NoPenalty, Sum, Unpenalized
from consenso.shards import Shards
from consenso.solvers.exact import fit_exact, solve_exact
from consenso.testing.optimum import optimum

LOSSES = (
    Squared(),
    Huber(threshold=0.5),
    Absolute(),
    EpsilonInsensitive(width=0.3),
    Logistic(),
    Hinge(),
    SmoothedHinge(smoothing=0.1),
    Softmax(classes=3),
)
REGULARIZERS = (
    NoPenalty(),
    L2(strength=0.1),
    L1(strength=0.1),
    ElasticNet(l1=0.05, l2=0.1),
    "unpenalized L1",
    Sum(parts=(L1(strength=0.02), L2(strength=0.05))),
)


def made(loss, regularizer, *, rows=150, features=5, sizes=None, seed=0, weighting="record"):
    """A problem and its shards; columns of scales from 1/30 to 30, the last one constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * 10.0 ** rng.uniform(-1.5, 1.5, size=features)
    X[:, -1] = 1.0
    truth = rng.normal(size=features) / np.sqrt(np.mean(X**2, axis=0))
    noisy = X @ truth + rng.normal(size=rows)
    if loss.targets == "class":
        y = rng.integers(0, loss.outputs, size=rows)
    else:
        y = np.where(noisy > 0, 1.0, -1.0) if loss.targets == "sign" else noisy
    if regularizer == "unpenalized L1":
        regularizer = Unpenalized(inner=L1(strength=0.1), last=loss.outputs)
    sizes = [rows] if sizes is None else sizes
    problem = Problem(
        loss=loss,
        regularizer=regularizer,
        features=features,
        sizes=sizes,
        row_bound=1e6,
        target_bound=1e6 if loss.targets == "real" else None,
        weighting=weighting,
    )
    return problem, Shards.build(problem, X, y, np.concatenate([[0], np.cumsum(sizes)]))


def objective(problem, shards, x):
    return float(shards.cohort().value(x).mean() + problem.regularizer.value(x))


@pytest.mark.sweep
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
def test_reaches_the_minimum_with_every_loss_and_penalty(loss, regularizer) -> None:
    problem, shards = made(loss, regularizer)
    found = solve_exact(problem, shards)
    best = optimum(problem, shards)
    assert found.objective == pytest.approx(objective(problem, shards, found.model), rel=1e-12)
    # The independent solver stops at 1e-9 itself.
    assert found.objective <= best + 1e-8 * (1 + abs(best))
    assert found.gap <= 1e-6 * objective(problem, shards, np.zeros(problem.dim))


@pytest.mark.parametrize(
    "regularizer", [Box(low=-0.1, high=0.2), Ball(radius=0.3), GroupL1(strength=0.1, groups=2)], ids=str
)
@pytest.mark.parametrize("loss", [Squared(), Hinge()], ids=lambda loss: loss.name)
def test_penalties_that_couple_coordinates(loss, regularizer) -> None:
    problem, shards = made(loss, regularizer, features=4)
    found = solve_exact(problem, shards)
    assert found.objective == pytest.approx(optimum(problem, shards), rel=1e-6)
    assert np.isfinite(problem.regularizer.value(found.model)), "within the constraint"


@pytest.mark.parametrize("loss", [Squared(), Absolute(), Logistic(), Hinge()], ids=lambda loss: loss.name)
def test_l1_gives_exact_zeros(loss) -> None:
    problem, shards = made(loss, L1(strength=0.3), features=8)
    model = fit_exact(problem, shards)
    assert 0 < np.count_nonzero(model == 0) < 8


@pytest.mark.parametrize("weighting", ["record", "party"])
def test_parties_are_weighted_as_the_problem_says(weighting) -> None:
    problem, shards = made(Huber(threshold=0.5), L2(strength=0.01), sizes=[10, 60, 80], weighting=weighting)
    assert solve_exact(problem, shards).objective == pytest.approx(optimum(problem, shards), rel=1e-7)


def test_the_certificate_bounds_the_distance_of_bad_points_too() -> None:
    from consenso.solvers.exact import _Work

    problem, shards = made(Hinge(), L2(strength=0.1))
    work, best = _Work.of(problem, shards), optimum(problem, shards)
    rng = np.random.default_rng(1)
    for _ in range(50):
        z = rng.normal(size=problem.dim) * 0.3
        dual = -shards.cohort()._targets * rng.random(150)
        judged = work.judge(z, dual, np.zeros(problem.dim))
        assert judged.objective - best <= judged.gap * (1 + 1e-9)


def wide(loss, regularizer, *, rows=120, features=2100, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((rows, features), density=0.01, rng=rng, format="csr")
    noisy = X @ rng.normal(size=features) + 0.01 * rng.normal(size=rows)
    y = np.where(noisy > 0, 1.0, -1.0) if loss.targets == "sign" else noisy
    problem = Problem(
        loss=loss,
        regularizer=regularizer,
        features=features,
        sizes=[rows],
        row_bound=1e6,
        target_bound=1e6 if loss.targets == "real" else None,
    )
    return problem, Shards.build(problem, X, y, [0, rows])


@pytest.mark.parametrize(
    ("loss", "regularizer"),
    [
        (Logistic(), L2(strength=1e-3)),
        (Logistic(), L1(strength=1e-3)),
        (Hinge(), L2(strength=1e-2)),
        (Squared(), L1(strength=1e-3)),
    ],
    ids=str,
)
def test_more_features_than_a_matrix_should_have(loss, regularizer) -> None:
    problem, shards = wide(loss, regularizer)
    found = solve_exact(problem, shards)
    assert found.objective == pytest.approx(optimum(problem, shards), rel=1e-6, abs=1e-9)


def test_compressed_rows_give_the_same_model() -> None:
    problem, shards = made(Absolute(), L1(strength=0.05))
    cohort = shards.cohort()
    again = Shards.build(problem, sparse.csr_array(cohort._rows.matrix), cohort._targets, [0, 150])
    np.testing.assert_allclose(fit_exact(problem, shards), fit_exact(problem, again), rtol=1e-6, atol=1e-9)


def test_separable_classes_without_a_penalty_approach_the_infimum() -> None:
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    problem = Problem(loss=Logistic(), regularizer=NoPenalty(), features=1, sizes=[4], row_bound=10.0)
    found = solve_exact(problem, Shards.build(problem, X, np.sign(X[:, 0]), [0, 4]))
    assert 0 <= found.objective < 1e-9
    assert np.isfinite(found.model).all()


def test_a_minimum_that_is_not_reached_is_a_warning(monkeypatch) -> None:
    problem, shards = made(Logistic(), L2(strength=0.001))
    monkeypatch.setattr("consenso.solvers.exact_steps.STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="above its minimum"):
        found = solve_exact(problem, shards)
    assert found.objective - optimum(problem, shards) <= found.gap


def test_shards_of_another_problem_are_refused() -> None:
    problem, _ = made(Squared(), L2(strength=0.1))
    _, shards = made(Squared(), L2(strength=0.2))
    with pytest.raises(InputError, match="belong to another problem"):
        fit_exact(problem, shards)
