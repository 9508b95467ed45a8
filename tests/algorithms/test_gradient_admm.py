"""Gradient ADMM: its iterates by hand, its fixed points, its norm, and what whoever sees only the end can learn."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from tests.algorithms.transcription import SEED, drawn, noise_of, soft, with_and_without_noise

from consenso.algorithms import gradient_admm
from consenso.algorithms.gradient_admm import GradientADMM, split_squared_term
from consenso.engine.run import run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Huber, Logistic, Squared
from consenso.operators.constraint import Constraint
from consenso.planning.plan import plan
from consenso.privacy.accountants import gdp, rdp, zcdp
from consenso.privacy.events import Bounded, Repeated
from consenso.privacy.noise import GaussianNoise, LaplaceNoise, NoNoise, Polynomial
from consenso.privacy.observers import Eavesdropper, Public, Server
from consenso.privacy.samplers import Safe, Seeded
from consenso.privacy.theorems.gradient_admm import GradientIteration, GradientVisits
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, Box, ElasticNet, GroupL1, NoPenalty, Sum
from consenso.schedules import Cyclic, Everyone, RandomOrder, RandomStopping
from consenso.shards import Shards

FEATURES = 4
DIFFERENCES = np.diff(np.eye(FEATURES), axis=0)


NOTHING = NoPenalty()


def problem(parties=5, size=6, regularizer=NOTHING, **changes) -> Problem:
    settings = {
        "loss": Huber(threshold=1.0),
        "regularizer": regularizer,
        "features": FEATURES,
        "sizes": np.full(parties, size),
        "row_bound": 1.0,
        "target_bound": 2.0,
        "unit": "party",
    }
    return Problem(**{**settings, **changes})


def data(of: Problem, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(of.records, of.features))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.clip(rows @ np.array([1.0, 1.0, -0.5, -0.5]) + 0.1 * rng.normal(size=of.records), -2, 2)


def shards(of: Problem, seed=0) -> Shards:
    rows, targets = data(of, seed)
    return Shards.build(of, rows, targets, np.concatenate(([0], np.cumsum(of.sizes))))


def huber_gradient(x, rows, targets):
    return rows.T @ np.clip(rows @ x - targets, -1, 1) / len(targets)


@with_and_without_noise
@pytest.mark.parametrize("square", [0.0, 0.3])
def test_iterates_follow_the_paper(square, multiplier):
    """Algorithm 1 of the paper on private gradient ADMM: a visit moves x by step (I + step penalty A'A)^-1 gradient."""
    of = problem(regularizer=L2(strength=square) if square else NoPenalty())
    scaling, constant, penalty, step, strength = np.array([1.0, -2.0, 0.5]), np.array([0.1, 0.0, -0.2]), 0.7, 0.6, 0.05
    algorithm = GradientADMM(
        constraint=Constraint(left=DIFFERENCES, scaling=tuple(scaling), constant=tuple(constant)),
        g=L1(strength=strength),
        penalty=penalty,
        step=step,
    )
    rounds = 13
    made = plan(
        of, algorithm, rounds=rounds, noise=noise_of(multiplier), schedule=Cyclic(), sampler=Seeded(SEED), trust="local"
    )
    model = run(made, shards(of)).model

    rows, targets = data(of)
    A, B = DIFFERENCES, -np.diag(scaling)
    x, dual = np.zeros(FEATURES), np.zeros(3)
    for t in range(rounds):
        own = slice(6 * (t % 5), 6 * (t % 5) + 6)
        y = soft((A @ x - constant - dual / penalty) / scaling, strength / (penalty * scaling**2))
        dual = dual - penalty * (A @ x + B @ y - constant)
        gradient = huber_gradient(x, rows[own], targets[own]) + square * x
        right = x - step * gradient + step * A.T @ dual - step * penalty * A.T @ (B @ y - constant)
        x = np.linalg.solve(np.eye(FEATURES) + step * penalty * A.T @ A, right)
        x = x + drawn("gaussian", t, t % 5, FEATURES, multiplier * 2 * step)[0]  # A is not injective
    np.testing.assert_allclose(model, x, rtol=1e-10, atol=1e-12)
    # The hand-written y is the minimiser of its own subproblem: B' dual is a subgradient of g there.
    inside = np.abs(B.T @ dual) <= strength * (1 + 1e-9)
    assert inside.all()
    np.testing.assert_allclose((B.T @ dual)[y != 0], strength * np.sign(y[y != 0]))


RNG = np.random.default_rng(11)
ORTHOGONAL = np.linalg.qr(RNG.normal(size=(3, 2)))[0] @ np.diag([1.5, 0.4])  # two columns, not of one length
OBLIQUE = RNG.normal(size=(3, 2))


@with_and_without_noise
@pytest.mark.parametrize(("B", "g"), [(ORTHOGONAL, L1(strength=0.05)), (OBLIQUE, L2(strength=0.3))])
def test_iterates_follow_the_paper_for_a_general_right_matrix(B, g, multiplier):
    of, constant, penalty, step, rounds = problem(), np.array([0.1, 0.0, -0.2]), 0.7, 0.6, 11
    constraint = Constraint(left=DIFFERENCES, right=B, constant=tuple(constant))
    algorithm = GradientADMM(constraint=constraint, g=g, penalty=penalty, step=step)
    noise = noise_of(multiplier)
    made = plan(of, algorithm, rounds=rounds, noise=noise, schedule=Cyclic(), sampler=Seeded(SEED), trust="local")
    model = run(made, shards(of)).model

    rows, targets = data(of)
    A, x, dual = DIFFERENCES, np.zeros(FEATURES), np.zeros(3)
    for t in range(rounds):
        own = slice(6 * (t % 5), 6 * (t % 5) + 6)
        # y by a solver: argmin g(y) - <dual, B y> + penalty/2 |A x + B y - c|^2.
        v = cp.Variable(2)
        value = 0.05 * cp.norm1(v) if isinstance(g, L1) else 0.15 * cp.sum_squares(v)
        distance = cp.sum_squares(A @ x + B @ v - constant)
        cp.Problem(cp.Minimize(value - dual @ (B @ v) + penalty / 2 * distance)).solve(solver=cp.CLARABEL)
        y = v.value
        dual = dual - penalty * (A @ x + B @ y - constant)
        right = x - step * huber_gradient(x, rows[own], targets[own]) + step * A.T @ dual
        right = right - step * penalty * A.T @ (B @ y - constant)
        x = np.linalg.solve(np.eye(FEATURES) + step * penalty * A.T @ A, right)
        x = x + drawn("gaussian", t, t % 5, FEATURES, multiplier * 2 * step)[0]
    np.testing.assert_allclose(model, x, atol=1e-5)  # what the solver leaves


def test_a_general_right_matrix_does_not_expand_either():
    of = problem(parties=1, size=8)
    f, rng = shards(of).cohort(), np.random.default_rng(2)
    for B, g in ((ORTHOGONAL, L1(strength=0.3)), (OBLIQUE, L2(strength=1.0)), (OBLIQUE, NoPenalty())) * 30:
        constraint = Constraint(left=DIFFERENCES, right=B)
        algorithm = GradientADMM(constraint=constraint, g=g, penalty=float(10 ** rng.uniform(-1, 1)), step=0.8)
        one, other = (gradient_admm.Hub(rng.normal(size=FEATURES), rng.normal(size=3)) for _ in range(2))
        images = [gradient_admm.Hub(*algorithm.advance(of, at, f.gradient(at.x)[0])) for at in (one, other)]
        assert gap(algorithm, of, *images) <= gap(algorithm, of, one, other) * (1 + 1e-9)


def test_dependent_equations_are_dropped_and_contradictions_refused():
    A = np.vstack([DIFFERENCES, DIFFERENCES[0] + 2 * DIFFERENCES[1]])
    B = np.vstack([-np.eye(3), -np.eye(3)[0] - 2 * np.eye(3)[1]])
    c = np.array([0.1, 0.2, 0.3, 0.5])
    made = Constraint.independent(A, B, c)
    assert made.left.rows == 3
    # The same solutions: x of the four equations, with their y, solve the three.
    x = np.arange(FEATURES, dtype=float)
    y = DIFFERENCES @ x - c[:3]
    np.testing.assert_allclose(made.left.apply(x) + made.right.apply(y), made.constant)
    with pytest.raises(InputError, match="different constants"):
        Constraint.independent(A, B, c + np.array([0, 0, 0, 1.0]))
    with pytest.raises(InputError, match="full column rank"):
        Constraint(left=DIFFERENCES, right=np.ones((3, 2)))
    with pytest.raises(InputError, match="one of them"):
        Constraint(left=DIFFERENCES, right=-np.eye(3), scaling=(2.0, 1.0, 1.0))
    algorithm = GradientADMM(constraint=Constraint(left=DIFFERENCES, right=OBLIQUE), g=L1(strength=0.1))
    with pytest.raises(InputError, match="closed form"):
        plan(problem(), algorithm, rounds=3, noise=NoNoise(), schedule=Cyclic())


def test_the_copy_is_the_model_and_has_the_structure():
    of = problem(regularizer=L1(strength=0.4))
    made = plan(of, GradientADMM(penalty=0.5), rounds=40, noise=NoNoise(), schedule=RandomOrder())
    model = run(made, shards(of)).model
    assert np.count_nonzero(model) < FEATURES


@pytest.mark.parametrize("weight", [0.0, 0.2])
def test_generalised_lasso_reaches_the_optimum(weight):
    of = problem(parties=1, size=40, regularizer=L2(strength=weight) if weight else NoPenalty())
    algorithm = GradientADMM.generalised_lasso(DIFFERENCES, strength=0.05, penalty=0.2, step=1.4)
    model = run(plan(of, algorithm, rounds=1000, noise=NoNoise(), schedule=Cyclic()), shards(of)).model
    rows, targets = data(of)
    x = cp.Variable(FEATURES)
    loss = cp.sum(cp.huber(rows @ x - targets, 1.0)) / (2 * len(targets))
    objective = loss + 0.05 * cp.norm1(DIFFERENCES @ x) + weight / 2 * cp.sum_squares(x)
    cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(model, x.value, atol=2e-6)


def test_a_scaled_and_shifted_constraint_reaches_the_optimum():
    of = problem(parties=1, size=40)
    scaling, constant = (2.0, 0.5, 1.0), (0.3, 0.0, -0.1)
    algorithm = GradientADMM(
        constraint=Constraint(left=DIFFERENCES, scaling=scaling, constant=constant),
        g=ElasticNet(l1=0.03, l2=0.1),
        penalty=0.2,
        step=1.9,
    )
    model = run(plan(of, algorithm, rounds=1200, noise=NoNoise(), schedule=Cyclic()), shards(of)).model
    rows, targets = data(of)
    x = cp.Variable(FEATURES)
    y = cp.multiply(1 / np.array(scaling), DIFFERENCES @ x - np.array(constant))
    loss = cp.sum(cp.huber(rows @ x - targets, 1.0)) / (2 * len(targets))
    cp.Problem(cp.Minimize(loss + 0.03 * cp.norm1(y) + 0.05 * cp.sum_squares(y))).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(model, x.value, atol=2e-6)


@pytest.mark.parametrize("square", ["f", "g"])
def test_where_the_square_goes_does_not_move_the_optimum(square):
    of = problem(parties=1, size=40, regularizer=ElasticNet(l1=0.05, l2=0.3))
    made = plan(of, GradientADMM(penalty=0.3, step=1.2, square=square), rounds=600, noise=NoNoise(), schedule=Cyclic())
    rows, targets = data(of)
    x = cp.Variable(FEATURES)
    loss = cp.sum(cp.huber(rows @ x - targets, 1.0)) / (2 * len(targets))
    cp.Problem(cp.Minimize(loss + 0.05 * cp.norm1(x) + 0.15 * cp.sum_squares(x))).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(run(made, shards(of)).model, x.value, atol=2e-6)


def gap(algorithm, of, one, other):
    return algorithm.norm(of, gradient_admm.Hub(one.x - other.x, one.dual - other.dual))


@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_one_iteration_does_not_expand_in_the_norm_and_contracts_when_strongly_convex(weight):
    rng = np.random.default_rng(1)
    of = problem(parties=1, size=8, regularizer=L2(strength=weight) if weight else NoPenalty())
    f = shards(of).cohort()
    closest = 0.0
    for trial in range(300):
        rank = int(rng.integers(1, FEATURES + 1))
        matrix = rng.normal(size=(rank, FEATURES)) * 10 ** rng.uniform(-1, 1)
        algorithm = GradientADMM(
            constraint=Constraint(left=matrix),
            g=[L1(strength=0.3), Box(low=-0.2, high=0.5), L2(strength=1.0)][trial % 3],
            penalty=float(10 ** rng.uniform(-1.5, 1.5)),
            step=float(rng.uniform(0.05, 1.0) * 2 / (1 + 2 * weight)),
        )
        one, other = (gradient_admm.Hub(rng.normal(size=FEATURES), rng.normal(size=rank)) for _ in range(2))
        # The public norm of the pair's images, both from the same gradient function.
        images = [gradient_admm.Hub(*algorithm.advance(of, at, f.gradient(at.x)[0])) for at in (one, other)]
        smallest, largest = algorithm.constraint.range
        step = GradientIteration(
            step=algorithm.step,
            penalty=algorithm.penalty,
            std=1.0,
            gradient_gap=1.0,
            smoothness=1 + weight,
            strong_convexity=weight,
            smallest_singular_value=smallest,
            largest_singular_value=largest,
            rows=rank,
            columns=FEATURES,
        )
        allowed = np.sqrt(step.squared_contraction) * gap(algorithm, of, one, other)
        assert (allowed < gap(algorithm, of, one, other)) == (weight > 0 and algorithm.step < 2 / (1 + 2 * weight))
        assert gap(algorithm, of, *images) <= allowed * (1 + 1e-10)
        closest = max(closest, gap(algorithm, of, *images) / allowed)
    assert closest > 0.8


def unit_world(parties, *, convexity=0.0) -> tuple[Problem, GradientADMM]:
    """Step, penalty, gap, noise and singular values all 1, one record a party, A with a kernel."""
    bound = np.sqrt(1 - convexity)
    of = Problem(
        loss=Huber(threshold=0.5 / bound),
        regularizer=L2(strength=convexity) if convexity else NoPenalty(),
        features=2,
        sizes=np.ones(parties, dtype=np.int64),
        row_bound=bound,
        target_bound=1.0,
        unit="party",
    )
    constraint = Constraint(left=[[1.0, 0.0]])
    return of, GradientADMM(constraint=constraint, g=L1(strength=0.1), penalty=1.0, step=1.0)


@pytest.mark.parametrize(("later", "figure"), [(0, 0.5), (1, 0.5), (2, 0.291), (10, 0.109), (100, 0.0135)])
def test_figures_of_a_fixed_order(later, figure):
    of, algorithm = unit_world(101)
    made = plan(of, algorithm, rounds=101, noise=GaussianNoise(multiplier=1.0), schedule=Cyclic())
    promise = made.prove(Public(), 100 - later, 1e-5)
    assert zcdp(promise.event) == pytest.approx(figure, rel=6e-3)
    if later >= 2:
        assert isinstance(promise.proof, GradientVisits)
        assert isinstance(promise.event, Bounded)
    for observer in (Eavesdropper(), Server()):
        assert gdp(made.prove(observer, 100 - later, 1e-5).event) == pytest.approx(1.0)


def test_figure_of_a_strongly_convex_run():
    of, algorithm = unit_world(101, convexity=0.1)
    made = plan(of, algorithm, rounds=101, noise=GaussianNoise(multiplier=1.0), schedule=Cyclic())
    assert zcdp(made.prove(Public(), 0, 1e-5).event) == pytest.approx(7.1e-6, rel=1e-2)


def test_the_guarantee_of_a_fixed_order_is_that_of_the_last_party():
    of, algorithm = unit_world(20)
    made = plan(of, algorithm, rounds=20, noise=GaussianNoise(multiplier=1.0), schedule=Cyclic())
    each = [made.prove(Public(), party, 1e-5).epsilon(1e-5) for party in range(20)]
    assert each == sorted(each)
    assert made.guarantee(Public(), 1e-5).epsilon(1e-5) == each[-1] > 2 * each[0]


def test_several_passes_and_parties_that_are_never_asked():
    of, algorithm = unit_world(6)
    noise = GaussianNoise(multiplier=1.0)
    made = plan(of, algorithm, rounds=15, noise=noise, schedule=Cyclic())
    iteration = made.prove(Public(), 1, 1e-5).proof.iteration
    expected = {1: 2 * iteration.rho(5) + iteration.rho(1), 4: iteration.rho(5) + iteration.rho(4)}
    for party, rho in expected.items():
        assert zcdp(made.prove(Public(), party, 1e-5).event) == pytest.approx(rho)
    everything = made.prove(Eavesdropper(), 1, 1e-5).event
    assert isinstance(everything, Repeated)
    assert (everything.count, gdp(everything)) == (3, pytest.approx(np.sqrt(3)))
    each = [made.prove(Public(), party, 1e-5).epsilon(1e-5) for party in range(6)]
    assert made.guarantee(Public(), 1e-5).epsilon(1e-5) == max(each)
    short = plan(of, algorithm, rounds=3, noise=noise, schedule=Cyclic())
    assert short.prove(Public(), 5, 1e-5).epsilon(1e-5) == 0.0


def test_random_order_and_random_stopping():
    of, algorithm = unit_world(100)
    settings = {"rounds": 100, "noise": GaussianNoise(multiplier=1.0)}
    shuffled = plan(of, algorithm, schedule=RandomOrder(), **settings)
    theorem = shuffled.prove(Public(), 17, 1e-5).proof
    assert rdp(theorem.event(), 2.0) == pytest.approx(0.128, rel=5e-3)
    local = shuffled.prove(Eavesdropper(), 17, 1e-5)
    assert rdp(local.event, 2.0) == pytest.approx(1.0)
    stopped = plan(of, algorithm, schedule=RandomStopping(), **settings)
    first, middle = (stopped.prove(Public(), party, 1e-5) for party in (0, 49))
    costs = np.array([0.0] * 49 + [theorem.iteration.rho(later) for later in range(51)])
    assert rdp(middle.event, 2.0) == pytest.approx(np.log(np.mean(np.exp(2 * costs))))
    assert middle.epsilon(1e-5) < first.epsilon(1e-5)
    assert stopped.guarantee(Public(), 1e-5).epsilon(1e-5) == first.epsilon(1e-5)


def test_an_injective_matrix_hides_more_and_never_more_than_exact_gaussian_laws_allow():
    """Quadratic losses (Huber far from its threshold) and a quadratic g: what the end tells is exactly Gaussian."""
    rng = np.random.default_rng(3)
    closest, amplified = 0.0, 0
    for _ in range(60):
        dim, iterations = 2, int(rng.integers(1, 12))
        matrix = rng.normal(size=(dim, dim)) + np.eye(dim)
        weight, step, penalty = 0.3, float(rng.uniform(0.2, 1.5)), float(10 ** rng.uniform(-1, 1))
        of = problem(parties=iterations, size=1, features=dim)
        algorithm = GradientADMM(constraint=Constraint(left=matrix), g=L2(strength=weight), penalty=penalty, step=step)
        noise = GaussianNoise(multiplier=1.0)
        made = plan(of, algorithm, rounds=iterations, noise=noise, schedule=Cyclic())
        promise = made.prove(Public(), 0, 1e-5)
        claimed = zcdp(promise.event)
        amplified += isinstance(promise.proof, GradientVisits)
        (release,) = algorithm.releases(made.facts)
        std = float(release.bounds.at("party", "replace-one"))
        # One iteration on differences, from the definition: w = dual - penalty A x, dual+ = resolvent(w).
        resolvent = weight / (weight + penalty)
        inverse = np.linalg.inv(np.eye(dim) + step * penalty * matrix.T @ matrix)
        for direction in np.vstack([np.linalg.svd(matrix)[2], rng.normal(size=(2, dim))]):
            shift = np.concatenate([inverse @ (step * 2 * direction / np.linalg.norm(direction)), np.zeros(dim)])
            covariance = np.zeros((2 * dim, 2 * dim))
            covariance[:dim, :dim] = std**2 * np.eye(dim)
            for _ in range(iterations - 1):
                row = rng.normal(size=dim)
                row /= np.linalg.norm(row)
                w = np.hstack([-penalty * matrix, np.eye(dim)])
                moved = np.hstack([np.eye(dim) - step * np.outer(row, row), np.zeros((dim, dim))])
                x = inverse @ (moved + step * matrix.T @ ((2 * resolvent - 1) * w))
                one = np.vstack([x, resolvent * w])
                shift, covariance = one @ shift, one @ covariance @ one.T
                covariance[:dim, :dim] += std**2 * np.eye(dim)
            values, frame = np.linalg.eigh(covariance)
            along, seen = frame.T @ shift, values > 1e-13 * values[-1]
            assert np.abs(along[~seen]).max(initial=0.0) < 1e-6 * np.linalg.norm(shift)
            exact = np.sum(along[seen] ** 2 / values[seen]) / 2
            assert exact <= claimed * (1 + 1e-6)
            closest = max(closest, exact / claimed)
    assert closest > 0.99  # a party that is the last one has its own noise alone
    assert amplified > 20


@pytest.mark.parametrize("schedule", [RandomOrder(), RandomStopping()])
def test_more_than_one_pass_of_a_random_schedule_is_composed(schedule):
    of, algorithm = unit_world(4)
    made = plan(of, algorithm, rounds=8, noise=GaussianNoise(multiplier=1.0), schedule=schedule)
    promise = made.prove(Public(), 0, 1e-5)
    assert promise.event == made.prove(Server(), 0, 1e-5).event
    assert any("is proved for" in refusal for refusal in promise.refusals)


def test_noise_that_varies_is_amplified_as_the_smallest():
    of, algorithm = unit_world(10)
    falling = GaussianNoise(multiplier=Polynomial(first=1.0, power=-0.1))
    made, quiet = (
        plan(of, algorithm, rounds=10, noise=noise, sampler=Seeded(0), schedule=Cyclic())
        for noise in (falling, GaussianNoise(multiplier=falling.scale(1.0, 9)))
    )
    first, last = (made.prove(Public(), party, 1e-5) for party in (0, 9))
    assert first.event == quiet.prove(Public(), 0, 1e-5).event
    # Nobody acts after the last one, which acts with the smallest noise.
    alone = made.prove(Server(), 9, 1e-5).epsilon(1e-5)
    assert last.epsilon(1e-5) == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sampler": Safe()}, "rounding to the grid"),
        ({"sampler": Seeded(0), "colluders": 1}, "colluders see the iterates"),
    ],
)
def test_amplification_is_refused_where_it_is_not_proved(changes, reason):
    of, algorithm = unit_world(10)
    made = plan(of, algorithm, rounds=10, noise=GaussianNoise(multiplier=1.0), schedule=Cyclic(), **changes)
    promise = made.prove(Public(), 0, 1e-5)
    assert promise.event == made.prove(Eavesdropper(), 0, 1e-5).event
    assert any(reason in refusal for refusal in promise.refusals)


def test_laplace_noise_does_not_protect_a_bound_in_the_2_norm():
    of, algorithm = unit_world(3)
    made = plan(of, algorithm, rounds=3, noise=LaplaceNoise(multiplier=1.0), schedule=Cyclic())
    assert made.guarantee(Eavesdropper(), 1e-5).epsilon(1e-5) == np.inf


def test_bounds_follow_the_matrix():
    of = problem()
    (wide,) = GradientADMM.generalised_lasso(DIFFERENCES, strength=0.1, step=0.5).releases(
        plan(of, GradientADMM(), rounds=1, noise=NoNoise(), schedule=Cyclic()).facts
    )
    # Huber with threshold 1, rows of norm 1: one gradient of a party's mean moves by 2, a record's sixth of it by 1/3.
    assert wide.bounds.at("party", "replace-one") == pytest.approx(0.5 * 2)
    assert wide.bounds.at("party", "add-remove") == pytest.approx(0.5)
    assert wide.bounds.at("record", "replace-one") == pytest.approx(0.5 * 2 / 6)
    (copy,) = GradientADMM(penalty=3.0, step=0.5).releases(
        plan(of, GradientADMM(), rounds=1, noise=NoNoise(), schedule=Cyclic()).facts
    )
    assert copy.bounds.at("party", "replace-one") == pytest.approx(0.5 * 2 / (1 + 0.5 * 3))


def test_the_squared_part():
    assert split_squared_term(L2(strength=0.3)) == (0.3, NoPenalty())
    assert split_squared_term(ElasticNet(l1=0.1, l2=0.2)) == (0.2, L1(strength=0.1))
    assert split_squared_term(Ball(radius=1.0)) == (0.0, Ball(radius=1.0))
    strength, rest = split_squared_term(
        Sum(parts=(ElasticNet(l1=0.1, l2=0.2), Box(low=-1.0, high=1.0), L2(strength=0.5)))
    )
    v = np.array([-3.0, 0.05, 0.4])
    assert strength == pytest.approx(0.7)
    np.testing.assert_allclose(rest.prox(v, 1.0), np.clip(soft(v, 0.1), -1, 1))


@pytest.mark.parametrize(
    ("algorithm", "changes", "error", "named"),
    [
        (GradientADMM(), {"schedule": Everyone()}, InputError, "one party takes each iteration"),
        (GradientADMM(step=2.1), {}, PreconditionError, "at most 2 /"),
        (GradientADMM(), {"loss": Squared()}, PreconditionError, "Lipschitz"),
        (GradientADMM(), {"loss": Hinge(), "target_bound": None}, PreconditionError, "smooth"),
        (
            GradientADMM.generalised_lasso(np.vstack([DIFFERENCES, [1.0, 0, 0, -1]]), strength=0.1),
            {},
            PreconditionError,
            "full row rank",
        ),
        (GradientADMM.generalised_lasso(np.eye(3), strength=0.1), {}, InputError, "columns"),
        (
            GradientADMM.generalised_lasso(DIFFERENCES, strength=0.1),
            {"regularizer": L1(strength=0.1)},
            InputError,
            "takes the place of the problem's regularizer",
        ),
        (
            GradientADMM(
                constraint=Constraint(left=DIFFERENCES[:2], scaling=(1.0, 2.0)), g=GroupL1(strength=0.1, groups=2)
            ),
            {},
            InputError,
            "same scaling",
        ),
        (GradientADMM(square="f"), {"regularizer": L1(strength=0.1)}, InputError, "no squared part"),
    ],
)
def test_refusals(algorithm, changes, error, named):
    schedule = changes.pop("schedule", Cyclic()) if "schedule" in changes else Cyclic()
    of = problem(**{key: value for key, value in changes.items() if key != "schedule"})
    with pytest.raises(error, match=named):
        plan(of, algorithm, rounds=5, noise=NoNoise(), schedule=schedule)


def test_bad_parameters():
    with pytest.raises(InputError, match="penalty"):
        GradientADMM(penalty=0.0)
    with pytest.raises(InputError, match="give both, or neither"):
        GradientADMM(g=L1(strength=1.0))
    with pytest.raises(InputError, match="give both, or neither"):
        GradientADMM(constraint=Constraint(left=DIFFERENCES))
    with pytest.raises(InputError, match="copy of x"):
        Constraint(scaling=(1.0,))
    with pytest.raises(InputError, match="one entry for each"):
        Constraint(left=DIFFERENCES, scaling=(1.0,))
    with pytest.raises(InputError, match="no scaling is 0"):
        Constraint(left=DIFFERENCES, scaling=(1.0, 0.0, 1.0))
    with pytest.raises(InputError, match="'f' or to 'g'"):
        GradientADMM(square="h")


def test_logistic_runs_with_the_default_step():
    of = problem(loss=Logistic(), target_bound=None, regularizer=L1(strength=0.01))
    rows, targets = data(of)
    own = Shards.build(of, rows, np.sign(targets), np.concatenate(([0], np.cumsum(of.sizes))))
    noise = GaussianNoise(multiplier=0.5)
    made = plan(of, GradientADMM(), rounds=25, noise=noise, schedule=Cyclic(), sampler=Seeded(0))
    result = run(made, own)
    assert GradientADMM().step_for(of) == pytest.approx(4.0)
    assert len(result.entries) == 25
    assert np.isfinite(result.model).all()
