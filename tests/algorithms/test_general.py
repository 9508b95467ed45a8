"""ADMM with general matrices: the iteration, the problems it solves, the corrected sensitivity, the refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from tests.algorithms.transcription import SEED, drawn_on_sum, noise_of
from tests.privacy.oracles.general import GeneralSplitting

from consenso.algorithms import find
from consenso.algorithms.general import Down, GeneralADMM
from consenso.engine.run import run
from consenso.errors import ConsensoError, InputError, PreconditionError
from consenso.losses import Hinge, Huber, Logistic, Squared
from consenso.planning.plan import plan
from consenso.privacy import accountants
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.observers import Public
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, NoPenalty, Unpenalized
from consenso.schedules import PoissonSubset
from consenso.shards import Shards
from consenso.testing.sensitivity import probe_releases

ROUNDS, MULTIPLIER = 15, 0.6
LEFT = np.array([[0.5, 0.1, 0.0], [0.0, 0.4, -0.1], [0.1, 0.0, 0.6], [0.1, 0.1, 0.1]])


def curator(loss=None, *, records=25, seed=0, **options):
    loss = loss or Logistic()
    rng = np.random.default_rng(seed)
    settings = {"regularizer": L2(strength=0.2), "row_bound": 1.0} | options
    if loss.targets == "real":
        settings["target_bound"] = 1.0
    problem = Problem(loss=loss, features=3, sizes=np.array([records]), **settings)
    rows = rng.normal(size=(records, 3))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    targets = rng.choice([-1.0, 1.0], size=records)
    return problem, Shards.from_parties(problem, [(rows, targets)]), rows, targets


def planned(problem, algorithm, **options):
    settings = {"rounds": ROUNDS, "noise": GaussianNoise(multiplier=MULTIPLIER), "sampler": Seeded(SEED)} | options
    return plan(problem, algorithm, **settings)


def by_hand(rows, targets, *, left, right, constant, strength, step, relaxation, noise):
    """Algorithm 5 for least squares and a square penalty on z, where both steps are linear systems."""
    n = len(rows)
    u = np.zeros(len(left))
    fit, pull = rows.T @ rows / n, rows.T @ targets / n
    for k in range(ROUNDS):
        z = np.linalg.solve(strength * np.eye(right.shape[1]) + right.T @ right / step, -right.T @ u / step)
        v = constant - 2 * right @ z - u
        x = np.linalg.solve(fit + left.T @ left / step, pull + left.T @ v / step)
        eta = 2 * noise(k)
        u = u + 2 * relaxation * (left @ x + right @ z - constant) + relaxation * eta
    z = np.linalg.solve(strength * np.eye(right.shape[1]) + right.T @ right / step, -right.T @ u / step)
    return np.linalg.lstsq(left, constant - right @ z)[0]


@pytest.mark.parametrize("multiplier", [0.0, 1e-5], ids=["exact", "noisy"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "operator"])
def test_iterates_follow_the_paper(kind, multiplier):
    # Inside its threshold the Huber loss is the squared one.
    problem, shards, rows, targets = curator(Huber(threshold=50.0), regularizer=NoPenalty())
    rng = np.random.default_rng(1)
    right, constant = rng.normal(size=(4, 2)), rng.normal(size=4)
    convert = {"dense": lambda m: m, "sparse": sparse.csr_array, "operator": aslinearoperator}[kind]
    algorithm = GeneralADMM(
        left=convert(LEFT),
        right=convert(right),
        constant=tuple(constant),
        g=L2(strength=0.3),
        step=0.5,
        relaxation=0.4,
        tolerance=1e-11,
    )
    smallest = np.linalg.svd(LEFT, compute_uv=False)[-1]
    # Little noise, so that no residual leaves the square part of the Huber loss.
    std = multiplier * (2 * 0.5 * 50.0 / len(rows) / smallest + 2e-11)
    expected = by_hand(
        rows,
        targets,
        left=LEFT,
        right=right,
        constant=constant,
        strength=0.3,
        step=0.5,
        relaxation=0.4,
        noise=lambda k: drawn_on_sum(k, 4, std),
    )
    result = run(planned(problem, algorithm, noise=noise_of(multiplier)), shards)
    np.testing.assert_allclose(result.model, expected, atol=1e-10)


def test_it_solves_the_generalised_lasso():
    import cvxpy as cp

    problem, shards, rows, targets = curator(regularizer=NoPenalty())
    differences = np.diff(np.eye(3), axis=0)
    stacked = np.vstack([differences, np.eye(3)])
    algorithm = GeneralADMM(left=stacked, right=-np.eye(5), g=Unpenalized(inner=L1(strength=0.05), last=3), step=2.0)
    model = run(planned(problem, algorithm, rounds=400, noise=NoNoise()), shards).model
    x = cp.Variable(3)
    losses = cp.sum(cp.logistic(-cp.multiply(targets, rows @ x))) / len(rows)
    cp.Problem(cp.Minimize(losses + 0.05 * cp.norm1(differences @ x))).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    np.testing.assert_allclose(model, x.value, atol=1e-5)


def test_what_a_run_costs_is_the_corrected_theorem():
    problem, *_ = curator()
    algorithm = GeneralADMM(left=LEFT, step=0.2)
    made = planned(problem, algorithm)
    (release,) = algorithm.releases(made.facts)
    std = MULTIPLIER * float(release.bounds.at("record", "replace-one"))
    theorem = GeneralSplitting.of_matrix(
        LEFT,
        parties=problem.records,
        step=0.2,
        lipschitz=problem.loss.lipschitz(1.0),
        std=2 * std,
        rounds=ROUNDS,
        unit="record",
    )
    expected = accountants.epsilon(theorem.event(), 1e-5)
    # The tolerance of the solver is charged on top.
    assert made.guarantee(Public(), 1e-5).epsilon(1e-5) == pytest.approx(expected, rel=1e-6)
    assert made.guarantee(Public(), 1e-5).epsilon(1e-5) >= expected


class Recorder:
    """A releaser that lets everything through and remembers it."""

    def __init__(self):
        self.seen = []

    def __call__(self, name, value, **bounds):
        self.seen.append(value)
        return value


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_sensitivity_is_nearly_attained_and_never_exceeded(scale):
    """Two nearly opposite rows, both far on the wrong side: gradients of full length that differ by almost twice it.

    At scale 0.1 the printed Theorem 7, with its factor |A| < 1, would be exceeded.
    """
    records, tilt = 20, 0.01
    problem, _, rows, _ = curator(records=records, regularizer=NoPenalty())
    left = scale * np.diag([1.0, 2.0, 3.0])
    step = 1e-3 * scale**2
    algorithm = GeneralADMM(left=left, step=step, tolerance=1e-8)
    facts = planned(problem, algorithm).facts
    (release,) = algorithm.releases(facts)
    far = left @ np.array([0.0, 30 / tilt, 0.0])  # where A x is pulled to, since the first z is A^-1 u
    releaser = Recorder()
    for sign in (1.0, -1.0):
        changed = rows.copy()
        changed[0] = [sign * np.sqrt(1 - tilt**2), -tilt, 0.0]
        f = Shards.from_parties(problem, [(changed, np.ones(records))]).cohort()
        algorithm.local(facts, Down(point=far), algorithm.enroll(facts, f), f, releaser)
    moved = np.linalg.norm(releaser.seen[0] - releaser.seen[1])
    bound = float(release.bounds.at("record", "replace-one"))
    assert 0.99 * bound <= moved <= bound
    printed = 2 * problem.loss.lipschitz(1.0) * step / records * np.linalg.norm(left, 2) / scale
    assert (moved > printed) == (np.linalg.norm(left, 2) < 1)


def test_bounds_at_both_units_and_adjacencies():
    problem, *_ = curator()
    algorithm = GeneralADMM(left=LEFT, step=0.2, tolerance=1e-12)
    (release,) = algorithm.releases(planned(problem, algorithm).facts)
    smallest = np.linalg.svd(LEFT, compute_uv=False)[-1]
    one = 0.2 * problem.loss.lipschitz(1.0) / smallest
    n = problem.records
    assert release.bounds.at("record", "add-remove") == pytest.approx(one / n)
    assert release.bounds.at("record", "replace-one") == pytest.approx(2 * one / n)
    assert release.bounds.at("party", "add-remove") == pytest.approx(one)
    assert release.bounds.at("party", "replace-one") == pytest.approx(2 * one)


def test_what_cannot_be_bounded_is_refused():
    problem, *_ = curator()
    with pytest.raises(PreconditionError, match="full column rank"):
        planned(problem, GeneralADMM(left=np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])))
    with pytest.raises(PreconditionError, match=r"right.*full column rank"):
        planned(
            curator(regularizer=NoPenalty())[0],
            GeneralADMM(left=np.eye(3), right=np.ones((3, 2)), g=L1(strength=1.0)),
        )
    with pytest.raises(PreconditionError, match="Lipschitz"):
        planned(curator(Squared())[0], GeneralADMM(left=np.eye(3)))
    with pytest.raises(PreconditionError, match="smooth"):
        planned(curator(Hinge())[0], GeneralADMM(left=LEFT))
    planned(curator(Hinge())[0], GeneralADMM(left=2 * np.eye(3)))
    several = Problem(loss=Logistic(), regularizer=L2(strength=1.0), features=3, sizes=np.array([3, 4]), row_bound=1.0)
    with pytest.raises(InputError, match="ConsensusADMM"):
        planned(several, GeneralADMM(left=np.eye(3)))
    with pytest.raises(InputError, match="columns"):
        planned(problem, GeneralADMM(left=np.eye(2)))
    with pytest.raises(InputError, match="g=None"):
        planned(problem, GeneralADMM(left=np.eye(3), right=-np.eye(3)))
    with pytest.raises(InputError, match="takes the place"):
        planned(problem, GeneralADMM(left=np.eye(3), right=-np.eye(3), g=L1(strength=1.0)))
    with pytest.raises(InputError, match="Everyone"):
        planned(problem, GeneralADMM(left=np.eye(3)), schedule=PoissonSubset(0.5))
    for bad, word in (
        ({"relaxation": 1.0}, "relaxation"),
        ({"step": 0.0}, "step"),
        ({"right": np.eye(2)}, "rows"),
        ({"constant": (1.0, 0.0, 0.0)}, "constant"),
        ({"g": L1(strength=1.0)}, "right"),
    ):
        with pytest.raises(InputError, match=word):
            GeneralADMM(left=np.eye(3), **bad)


def test_a_solution_that_cannot_be_certified_is_not_released():
    problem, shards, *_ = curator()
    made = planned(problem, GeneralADMM(left=LEFT, step=0.2, tolerance=1e-18))
    with pytest.raises(ConsensoError, match="certif"):
        run(made, shards)


def test_the_hinge_loss_with_an_isometry():
    import cvxpy as cp

    problem, shards, rows, targets = curator(Hinge())
    model = run(planned(problem, GeneralADMM(left=3 * np.eye(3), step=9.0), rounds=300, noise=NoNoise()), shards).model
    x = cp.Variable(3)
    best = cp.Problem(
        cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(targets, rows @ x))) / len(rows) + 0.1 * cp.sum_squares(x))
    ).solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    reached = np.maximum(0, 1 - targets * (rows @ model)).mean() + 0.1 * model @ model
    assert reached == pytest.approx(best, rel=1e-7)


def test_a_record_whose_kink_is_tied_counts_for_all_records():
    """Dependent rows on kinks keep the solver from its certificate, and the answer is then that of no records."""
    rows = np.repeat([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]], [20, 20, 2], axis=0)
    problem = Problem(loss=Hinge(), regularizer=NoPenalty(), features=3, sizes=np.array([len(rows)]), row_bound=1.0)
    made = planned(problem, GeneralADMM(left=np.eye(3), step=0.4 * len(rows)), rounds=1)
    tied = rows.copy()
    tied[-1] = [0.25, 0.25, 0.0]
    (one,), (other,) = (
        probe_releases(made, Shards.from_parties(problem, [(each, np.ones(len(rows)))])) for each in (rows, tied)
    )
    moved = float(np.linalg.norm(one[2] - other[2]))
    assert moved > 2 * made.problem.loss.lipschitz(1.0) * 0.4, "more than by its own part"
    assert moved <= one[0].bounds.at("record", "replace-one")


def test_people_find_it_by_its_names():
    assert find("000-5") is GeneralADMM
    assert repr(GeneralADMM(left=LEFT)) == repr(GeneralADMM(left=sparse.csr_array(LEFT)))
    assert repr(GeneralADMM(left=LEFT)) != repr(GeneralADMM(left=2 * LEFT))
