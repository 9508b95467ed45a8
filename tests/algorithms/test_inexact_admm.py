"""DP-IADMM: the paper's iteration by hand, its subproblems, global sensitivities and true totals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.algorithms.transcription import SEED, drawn, noise_of, with_and_without_noise
from tests.privacy.oracles.laplace import LaplaceTotal, row_bound_1, softmax_gradient_gap

from consenso.algorithms.inexact_admm import GrowingPenalty, InexactADMM, Proximal, TrustRegion
from consenso.engine.run import objective, run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Logistic, Softmax, Squared
from consenso.operators.projections import into_box_and_ball, into_two_balls
from consenso.planning.plan import plan
from consenso.privacy.accountants import gdp, renyi
from consenso.privacy.accountants.conversion import to_epsilon
from consenso.privacy.events import Gaussian, Repeated
from consenso.privacy.noise import GaussianNoise, LaplaceNoise, NoNoise, Polynomial
from consenso.privacy.observers import Eavesdropper, Public
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, Box, NoPenalty
from consenso.schedules import Everyone, PoissonSubset
from consenso.shards import Shards
from consenso.testing.optimum import optimum

CLASSES, FEATURES, SIZES = 3, 4, np.array([5, 7, 9])


LOSS, NOTHING = Softmax(classes=CLASSES), NoPenalty()


def problem(loss=LOSS, regularizer=NOTHING, **changes) -> Problem:
    return Problem(loss=loss, regularizer=regularizer, features=FEATURES, sizes=SIZES, row_bound=1.0, **changes)


def data(of: Problem, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(of.records, FEATURES))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    targets = (
        rng.integers(CLASSES, size=of.records) if of.loss.targets == "class" else rng.choice([-1.0, 1.0], of.records)
    )
    return rows, targets


def shards(of: Problem, seed=0) -> Shards:
    return Shards.build(of, *data(of, seed), np.concatenate(([0], np.cumsum(of.sizes))))


def softmax_gradient(z, rows, labels):
    """(1/I) sum of row (probabilities - label)' over a party's records, I the records of all parties."""
    scores = rows @ z.reshape(FEATURES, CLASSES)
    h = np.exp(scores - scores.max(axis=1, keepdims=True))
    h /= h.sum(axis=1, keepdims=True)
    h[np.arange(len(labels)), labels] -= 1
    return (rows.T @ h).ravel() / SIZES.sum()


@with_and_without_noise
@pytest.mark.parametrize("strength", [0.0, 0.3])
@pytest.mark.parametrize("trust", [False, True])
def test_iterates_follow_the_paper(trust, strength, multiplier):
    of = problem(regularizer=L2(strength=strength)) if strength else problem()
    penalty = GrowingPenalty(first=0.4, offset=0.1, growth=1.2, every=4)
    algorithm = InexactADMM(
        subproblem=TrustRegion() if trust else Proximal(),
        penalty=penalty,
        region=Box(low=-0.6, high=0.5),
        norm=2,
        linearised=strength > 0,  # as the paper has it
    )
    rounds = 11
    made = plan(of, algorithm, rounds=rounds, noise=noise_of(multiplier), sampler=Seeded(SEED), trust="local")
    result = run(made, shards(of))

    # Algorithm 1 with the duals at the server, counted from t = 1: (4a), then (8) or (9), then the dual.
    rows, labels = data(of)
    parts = np.split(np.arange(len(labels)), np.cumsum(SIZES)[:-1])
    z = np.zeros((3, of.dim))
    dual = np.zeros((3, of.dim))
    for t in range(1, rounds + 2):
        rho = min(1e9, 0.4 * 1.2 ** (t // 4) + 0.1)
        w = np.mean(z - dual / rho, axis=0)
        if t == rounds + 1:
            break
        for p, own in enumerate(parts):
            gradient = softmax_gradient(z[p], rows[own], labels[own]) + strength * z[p] / 3
            gradient = gradient + drawn("gaussian", t - 1, p, of.dim, multiplier * 2 * math.sqrt(2) / SIZES.sum())[0]
            if trust:
                point, radius = w + (dual[p] - gradient) / rho, 1 / t**2
                z[p] = np.clip(np.clip(point, z[p] - radius, z[p] + radius), -0.6, 0.5)
            else:
                near = math.sqrt(t)
                z[p] = np.clip((rho * w + dual[p] + near * z[p] - gradient) / (rho + near), -0.6, 0.5)
            dual[p] += rho * (w - z[p])
    np.testing.assert_allclose(result.model, w, rtol=1e-10, atol=1e-12)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "subproblem", [Proximal(proximity=40.0), TrustRegion(radius=0.5), TrustRegion(radius=0.5, norm=2)]
)
@pytest.mark.parametrize("loss", [Softmax(classes=CLASSES), Logistic()])
@pytest.mark.parametrize("weighting", ["record", "party"])
@pytest.mark.slow
def test_reaches_the_centralized_optimum(subproblem, loss, weighting):
    of = problem(loss=loss, regularizer=L2(strength=0.05), weighting=weighting)
    own = shards(of)
    made = plan(of, InexactADMM(subproblem=subproblem, penalty=0.15), rounds=400, noise=NoNoise())
    model, best = run(made, own).model, optimum(of, own)
    assert objective(made, own, model) == pytest.approx(best, abs=1e-8)


def test_a_region_that_binds_keeps_the_consensus_inside():
    of = problem(loss=Logistic(), regularizer=NoPenalty())
    made = plan(of, InexactADMM(region=Ball(radius=0.3), penalty=0.1), rounds=300, noise=NoNoise())
    own = shards(of)
    model = run(made, own).model
    inside = optimum(problem(loss=Logistic(), regularizer=Ball(radius=0.3)), own)
    assert np.linalg.norm(model) == pytest.approx(0.3, abs=5e-3)
    assert objective(made, own, model) == pytest.approx(inside, abs=2e-3)


@given(seed=st.integers(0, 2**32 - 1), ball=st.booleans(), norm=st.sampled_from([2, math.inf]))
def test_the_trust_region_step_is_the_closest_point_of_both_sets(seed, ball, norm):
    rng = np.random.default_rng(seed)
    region = Ball(radius=1.0) if ball else Box(low=-0.7, high=0.5)
    z = region.prox(rng.normal(size=(4, 3)), 1.0)
    z[0] = 0.0
    radius = float(10 ** rng.uniform(-1.5, 0.8))
    w, dual, gradient = (rng.normal(size=(4, 3)) * 10 ** rng.uniform(-1, 1) for _ in range(3))
    solved = TrustRegion(radius=radius, norm=norm).solve(w, z, dual, gradient, 0.8, 5, region)
    point = w + (dual - gradient) / 0.8
    distance = np.linalg.norm(solved - z, ord=norm, axis=1)
    assert (distance <= radius * (1 + 1e-9)).all()
    np.testing.assert_allclose(region.prox(solved, 1.0), solved, atol=1e-12)
    # A projection p of c onto a convex set has <c - p, q - p> <= 0 for every q in the set.
    steps = rng.normal(size=(400, 4, 3))
    lengths = np.linalg.norm(steps, ord=norm, axis=2, keepdims=True)
    others = z + steps / lengths * radius * rng.uniform(0, 1, size=(400, 4, 1))
    feasible = (np.abs(region.prox(others, 1.0) - others) <= 1e-12).all(axis=2)
    products = np.einsum("pi,npi->np", point - solved, others - solved)
    scale = 1 + np.linalg.norm(point - solved, axis=1)
    assert (products[feasible] <= 1e-7 * np.broadcast_to(scale, products.shape)[feasible]).all()


def test_projections_leave_points_that_are_inside():
    point = np.array([[0.1, 0.2], [-0.3, 0.0]])
    centre = np.array([[0.0, 0.0], [-0.5, 0.1]])
    np.testing.assert_array_equal(into_two_balls(point, 2.0, centre, 1.0), point)
    np.testing.assert_array_equal(into_box_and_ball(point, np.full((2, 2), -1.0), np.ones((2, 2)), centre, 1.0), point)


def test_penalties_of_the_paper():
    penalty = GrowingPenalty.of_paper(2, 5, 10_000, 0.05)
    assert penalty.at(0) == pytest.approx(102)
    assert penalty.at(9_998) == pytest.approx(102)
    assert penalty.at(9_999) == pytest.approx(2 * 1.2 + 100)
    assert GrowingPenalty(first=1.0, every=1).at(10**6) == 1e9


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_global_sensitivities(adjacency):
    of = problem()
    facts = plan(of, InexactADMM(), rounds=1, noise=NoNoise()).facts
    always = row_bound_1(features=FEATURES, row_bound=1.0)
    for own, bound in (
        (InexactADMM(), always),
        (InexactADMM(row_bound_1=1.1), 1.1),
        (InexactADMM(row_bound_1=9.0), always),
    ):
        (release,) = own.releases(facts)
        expected = softmax_gradient_gap(row_bound_1=bound, records=of.records, adjacency=adjacency)
        assert release.norm == 1
        np.testing.assert_allclose(release.bounds.at("record", adjacency), expected)
        np.testing.assert_allclose(release.bounds.at("party", adjacency), expected * SIZES)
    (release,) = InexactADMM(norm=2).releases(facts)
    worlds = 1 if adjacency == "add-remove" else 2
    assert release.bounds.at("record", adjacency) == pytest.approx(worlds * math.sqrt(2) / of.records)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array, np.float32])
def test_rows_are_shortened_to_the_bound_on_their_1_norm(stored):
    of = problem()
    rows, labels = data(of)
    rows = (0.9 * rows).astype(np.float32).astype(np.float64)  # the same numbers however they are stored
    lengths = np.abs(rows).sum(axis=1)
    bound = float(np.median(lengths))
    short = rows * np.minimum(1, bound / lengths)[:, None]
    offsets = np.concatenate(([0], np.cumsum(SIZES)))
    models = []
    for table, algorithm in ((stored(rows), InexactADMM(row_bound_1=bound)), (short, InexactADMM())):
        made = plan(of, algorithm, rounds=6, noise=NoNoise())
        models.append(run(made, Shards.build(of, table, labels, offsets)).model)
    np.testing.assert_allclose(*models, rtol=1e-10)


@pytest.mark.parametrize(("per_iteration", "figure"), [(0.05, 59.8), (1.0, 7953)])
def test_totals_of_the_papers_runs(per_iteration, figure):
    of = Problem(
        loss=Softmax(classes=10), regularizer=L2(strength=1e-6), features=784, sizes=np.full(10, 6000), row_bound=28.0
    )
    penalty = GrowingPenalty.of_paper(2, 5, 10_000, per_iteration)
    made = plan(of, InexactADMM(penalty=penalty), rounds=20_000, noise=LaplaceNoise(multiplier=1 / per_iteration))
    guarantee = made.guarantee(Eavesdropper(), 1e-6)
    sensitivity = softmax_gradient_gap(row_bound_1=784.0, records=60_000, adjacency="replace-one")
    total = LaplaceTotal(scale=sensitivity / per_iteration, sensitivity=sensitivity, iterations=20_000)
    assert guarantee.event.count == total.event().count
    assert guarantee.event.event.scale == pytest.approx(total.scale)
    assert guarantee.event.event.sensitivity == pytest.approx(sensitivity)
    by_renyi = to_epsilon(lambda orders: renyi.curve(guarantee.event, orders), 1e-6).value
    assert by_renyi == pytest.approx(figure, rel=2e-3)
    assert 0.9 * figure < guarantee.epsilon(1e-6) <= by_renyi


def test_the_gaussian_twin_composes_as_gaussians():
    of = problem()
    made = plan(of, InexactADMM(norm=2), rounds=50, noise=GaussianNoise(multiplier=10.0))
    event = made.guarantee(Public(), 1e-6).event
    assert isinstance(event, Repeated)
    assert isinstance(event.event, Gaussian)
    assert gdp(event) == pytest.approx(math.sqrt(50) / 10)


def test_averaging():
    of = problem()
    last, late = (
        run(plan(of, InexactADMM(norm=2, averaging=share), rounds=5, noise=NoNoise()), shards(of)).model
        for share in (0.0, 0.4)
    )
    fourth = run(plan(of, InexactADMM(norm=2), rounds=4, noise=NoNoise()), shards(of)).model
    np.testing.assert_allclose(late, (last + fourth) / 2)


@pytest.mark.parametrize(
    ("algorithm", "settings", "error", "named"),
    [
        (InexactADMM(), {"noise": GaussianNoise(multiplier=1.0)}, InputError, "use norm=2"),
        (InexactADMM(norm=2), {"noise": LaplaceNoise(multiplier=1.0)}, InputError, "1-norm only"),
        (InexactADMM(), {"noise": NoNoise(), "schedule": PoissonSubset(0.5)}, InputError, "over all parties"),
        (InexactADMM(), {"noise": NoNoise(), "loss": Squared()}, PreconditionError, "Lipschitz"),
    ],
)
def test_refusals(algorithm, settings, error, named):
    loss = settings.get("loss", Softmax(classes=CLASSES))
    of = problem(loss=loss, target_bound=1.0 if loss.targets == "real" else None)
    with pytest.raises(error, match=named):
        plan(of, algorithm, rounds=3, noise=settings["noise"], schedule=settings.get("schedule", Everyone()))


def test_bad_parameters():
    with pytest.raises(InputError, match="bounded on all sides"):
        InexactADMM(region=Box(low=0.0, high=math.inf))
    with pytest.raises(InputError, match="norm 2 or"):
        TrustRegion(norm=1)
    with pytest.raises(InputError, match="leave it out"):
        InexactADMM(norm=2, row_bound_1=1.0)
    with pytest.raises(InputError, match="penalty"):
        InexactADMM(penalty=0.0)
    with pytest.raises(InputError, match="offset"):
        GrowingPenalty(first=1.0, offset=-1.0)
    with pytest.raises(InputError, match="share of the rounds"):
        InexactADMM(averaging=1.5)


def test_schedules_and_regularizers_of_the_hub():
    of = problem(loss=Logistic(), regularizer=L1(strength=0.2))
    made = plan(
        of,
        InexactADMM(subproblem=Proximal(proximity=Polynomial(first=20.0, power=-0.1)), penalty=0.1),
        rounds=300,
        noise=NoNoise(),
    )
    own = shards(of)
    model = run(made, own).model
    assert np.count_nonzero(model) < of.dim
    assert objective(made, own, model) == pytest.approx(optimum(of, own), abs=1e-7)
