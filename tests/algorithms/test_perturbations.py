"""Primal and dual variable perturbation: iterates by hand, sensitivities, densities of real minimisers, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms import find
from consenso.algorithms.distributed_admm import DistributedADMM, curvatures
from consenso.algorithms.dual_perturbation import DualPerturbation
from consenso.algorithms.primal_perturbation import PrimalPerturbation
from consenso.errors import ConsensoError, InputError, PreconditionError
from consenso.losses import Hinge, Huber, Logistic, SmoothedHinge, Softmax, Squared
from consenso.planning.plan import plan
from consenso.privacy.accountants import epsilon, gdp, pure
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.composition import compose_all
from consenso.privacy.events import GammaNorm, Repeated
from consenso.privacy.noise import GammaNormNoise, GaussianNoise, Geometric, LaplaceNoise, NoNoise
from consenso.privacy.observers import Eavesdropper, Public
from consenso.privacy.run_spec import PrivacyQuery
from consenso.privacy.samplers import Safe, Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, NoPenalty
from consenso.shards import Shards
from consenso.testing import laws
from consenso.testing.worlds import draw, pairs
from consenso.topology import Topology

PENALTY, STRENGTH, ROUNDS, SEED, MULTIPLIER = 0.3, 0.1, 5, 6, 2.5
GRAPH = Topology.erdos_renyi(6, 3.0, seed=2)
BOTH = [PrimalPerturbation, DualPerturbation]


def problem_of(loss=None, regularizer=None, **changes) -> Problem:
    loss = loss or Logistic()
    settings = {
        "loss": loss,
        "regularizer": regularizer or L2(strength=STRENGTH),
        "features": 3,
        "sizes": np.array([4, 6, 5, 3, 7, 5]),
        "row_bound": 1.0,
        "target_bound": 2.0 if loss.targets == "real" else None,
    }
    return Problem(**(settings | changes))


def planned(algorithm, problem=None, **changes):
    settings = {
        "rounds": ROUNDS,
        "noise": GammaNormNoise(multiplier=MULTIPLIER),
        "topology": GRAPH,
        "sampler": Seeded(SEED),
    }
    return plan(problem or problem_of(), algorithm, **(settings | changes))


@pytest.mark.sweep
@pytest.mark.parametrize(
    "topology", [Topology.ring(6), GRAPH, Topology.complete(6)], ids=["ring", "random", "complete"]
)
@pytest.mark.parametrize("algorithm", BOTH, ids=lambda cls: cls.__name__)
def test_without_noise_they_are_distributed_admm(algorithm, topology):
    problem = problem_of(Huber(threshold=0.5))
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(1)))
    settings = {"rounds": 120, "noise": NoNoise(), "topology": topology}
    model, _ = laws.execute(planned(algorithm(penalty=0.08), problem, **settings), shards)
    reference, _ = laws.execute(planned(DistributedADMM(penalty=0.08), problem, **settings), shards)
    assert np.array_equal(model, reference)
    gradient = shards.cohort().gradient(model).mean(axis=0) + STRENGTH * model
    assert np.linalg.norm(gradient) < 1e-6


# --- primal ----------------------------------------------------------------------------------------------------------


def test_the_bound_of_a_minimiser_is_attained():
    # One record per node on the line of the hinge, opposite rows: the gradient turns round at every point nearby.
    problem = problem_of(Hinge(), NoPenalty(), sizes=np.full(6, 1))
    made = planned(PrimalPerturbation(penalty=PENALTY), problem, rounds=1, noise=NoNoise())
    row, moved = np.array([1.0, 0.0, 0.0]), []
    for sign in (1.0, -1.0):
        data = [(sign * row[None, :], np.array([1.0]))] * 6
        moved.append(laws.execute(made, Shards.from_parties(problem, data))[1].state.w)
    (release,) = made.algorithm.releases(made.facts)
    gaps = np.linalg.norm(moved[0] - moved[1], axis=1)
    np.testing.assert_allclose(gaps, release.bounds.record_replace_one, rtol=1e-8)
    np.testing.assert_allclose(gaps, 2 / (2 * PENALTY * GRAPH.degrees), rtol=1e-8)


@pytest.mark.parametrize("weighting", ["record", "party"])
def test_primal_bounds_come_from_the_parameters(weighting):
    problem = problem_of(weighting=weighting)
    algorithm = PrimalPerturbation(penalty=PENALTY, tolerance=1e-7)
    (release,) = algorithm.releases(planned(algorithm, problem).facts)
    curvature = STRENGTH + 2 * PENALTY * GRAPH.degrees
    for unit, count in (("record", 1), ("party", problem.sizes)):
        for adjacency, worlds in (("add-remove", 1), ("replace-one", 2)):
            expected = worlds * count * problem.scales / curvature + 2e-7
            np.testing.assert_allclose(release.bounds.at(unit, adjacency), expected)


def test_primal_rounds_compose():
    gamma = planned(PrimalPerturbation(penalty=PENALTY), rounds=30).guarantee(Eavesdropper(), 1e-6)
    assert isinstance(gamma.event, Repeated)
    assert isinstance(gamma.event.event, GammaNorm)
    assert (gamma.event.count, gamma.event.event.dim) == (30, 3)
    assert pure(gamma.event) == pytest.approx(30 / MULTIPLIER)
    assert gamma.epsilon(1e-6) < 30 / MULTIPLIER
    normal = planned(PrimalPerturbation(penalty=PENALTY), rounds=30, noise=GaussianNoise(multiplier=8.0))
    assert gdp(normal.guarantee(Public(), 1e-6).event) == pytest.approx(np.sqrt(30) / 8)


# --- dual ------------------------------------------------------------------------------------------------------------


def log_density(node, w, pull, curvature, scale):
    """Of the perturbed minimiser of one node, up to the constant of the noise, from its gradient and Hessian."""
    noise = pull - curvature * w - node.gradient(w[None])[0]
    columns = [node.hessian_product(w[None], axis[None])[0] for axis in np.eye(len(w))]
    return -np.linalg.norm(noise) / scale + np.linalg.slogdet(np.array(columns) + curvature * np.eye(len(w)))[1]


@pytest.mark.sweep
@pytest.mark.parametrize("unit", ["record", "party"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "loss", [Logistic(), Huber(threshold=0.5), SmoothedHinge(smoothing=0.3)], ids=lambda loss: loss.name
)
def test_density_ratios_of_real_minimisers_stay_within_a_round(loss, adjacency, unit):
    problem = problem_of(loss, adjacency=adjacency, unit=unit)
    made = planned(DualPerturbation(penalty=0.02), problem, rounds=1)
    curvature = curvatures(0.02, made.facts)
    rng = np.random.default_rng(5)
    largest = {}
    for _ in range(2):
        for pair in pairs(problem, unit, adjacency, rng):
            one, other = pair.one.cohort(pair.party), pair.other.cohort(pair.party)
            promise = made.prove(Eavesdropper(), pair.party, 1e-6)
            theorem, bound = promise.proof, pure(promise.event)
            public = (rng.normal(size=3), float(curvature[pair.party]), theorem.scale)
            for _ in range(10):
                # Points where the noise of one world or the other is likely to put the minimiser.
                noise = rng.normal(size=3) * theorem.scale
                points = (public[0] - noise) / curvature[pair.party]
                w = one.prox(points, 1 / curvature[[pair.party]]).x[0]
                ratio = abs(log_density(one, w, *public) - log_density(other, w, *public))
                assert ratio <= bound + 1e-9
                largest[pair.party] = max(largest.get(pair.party, 0.0), ratio / bound)
    assert max(largest.values()) > 0.2, "the search was too kind to say anything"


@pytest.mark.parametrize("equal", ["epsilon", "noise"])
def test_dual_rounds_cost_what_the_theorem_says(equal):
    problem = problem_of(weighting="party")
    made = planned(DualPerturbation(penalty=PENALTY, cover=1e-6, tolerance=1e-10), problem, equal=equal)
    for party in range(6):
        one = problem.scales[party]
        drawn_for = 2 * (problem.scales.max() if equal == "noise" else one)
        jacobian = math.log1p(0.25 * one / (STRENGTH + 2 * PENALTY * GRAPH.degrees[party]))
        expected = 2 * one / (MULTIPLIER * drawn_for) + jacobian + 2e-10 / (MULTIPLIER * 1e-6)
        event = made.prove(Eavesdropper(), party, 1e-6).event
        assert pure(event) == pytest.approx(ROUNDS * expected)


def test_the_cover_costs_next_to_nothing():
    algorithm = DualPerturbation(penalty=PENALTY)
    promise = planned(algorithm).prove(Eavesdropper(), 0, 1e-6)
    exact = replace(promise.proof, tolerance=0.0)
    assert pure(promise.event) < 1.001 * pure(exact.event())
    assert pure(promise.event) > pure(exact.event())


def test_composing_the_noise_alone_promises_nothing():
    made = planned(DualPerturbation(penalty=PENALTY))
    query = PrivacyQuery(observer=Public(), unit="record", adjacency="replace-one", party=0)
    found = compose_all(made, query, made.algorithm.releases).event()
    assert epsilon(found, 1e-6) == np.inf


def test_falling_noise_is_charged_round_by_round():
    noise = GammaNormNoise(multiplier=Geometric(first=4.0, ratio=0.81))
    made = planned(DualPerturbation(penalty=PENALTY), noise=noise)
    theorem = made.prove(Eavesdropper(), 0, 1e-6).proof
    np.testing.assert_allclose(np.divide(theorem.scale[1:], theorem.scale[:-1]), 0.9)
    shifts = sum(1 / (4 * 0.9**k) for k in range(ROUNDS))
    jacobians = ROUNDS * math.log1p(0.25 * problem_of().scales[0] / theorem.strong_convexity)
    assert pure(theorem.event()) == pytest.approx(shifts + jacobians, rel=1e-3)


def test_gaussian_noise_meets_a_target_under_add_remove():
    problem = problem_of(adjacency="add-remove")
    target = EpsilonDelta(epsilon=2.0, delta=1e-5)
    settings = {"noise": None, "target": target, "rounds": 10}
    made = planned(DualPerturbation(penalty=2.0), problem, **settings)
    assert 1.99 < made.guarantee(Public(), 1e-5).epsilon(1e-5) <= 2.0
    # A deployed run has discrete noise: its distance from continuous noise is hidden by the noise on the output.
    deployed = planned(DualPerturbation(penalty=2.0), problem, **settings, sampler=Safe())
    theorem = deployed.prove(Public(), 0, 1e-5).proof
    assert 1e-10 < theorem.tolerance < 1e-8
    assert theorem.excess > 0


# --- both ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "problem", "changes", "named"),
    [
        (PrimalPerturbation(), problem_of(Squared()), {}, "Huber"),
        (PrimalPerturbation(), problem_of(regularizer=L1(strength=0.1)), {}, "GraphDPADMM"),
        (DualPerturbation(), problem_of(Squared()), {}, "Huber"),
        (DualPerturbation(), problem_of(Hinge()), {}, "SmoothedHinge"),
        (DualPerturbation(), problem_of(Softmax(classes=3)), {}, "rank one"),
        (DualPerturbation(), problem_of(regularizer=L1(strength=0.1)), {}, "GraphDPADMM"),
        (DualPerturbation(), problem_of(), {"noise": LaplaceNoise(multiplier=1.0)}, "GammaNormNoise"),
        (DualPerturbation(), problem_of(), {"noise": GaussianNoise(multiplier=1.0)}, "add-remove"),
        (
            DualPerturbation(),
            problem_of(),
            {"noise": {"objective": GammaNormNoise(multiplier=1.0), "output": NoNoise()}},
            "one kind",
        ),
        (
            DualPerturbation(penalty=1e-3),
            problem_of(regularizer=NoPenalty(), adjacency="add-remove"),
            {"noise": GaussianNoise(multiplier=1.0)},
            "outweigh",
        ),
        (DualPerturbation(), problem_of(), {"sampler": Safe()}, "simulation"),
    ],
)
def test_refused_settings(algorithm, problem, changes, named):
    with pytest.raises(PreconditionError, match=named):
        planned(algorithm, problem, **changes)


@pytest.mark.parametrize("algorithm", BOTH, ids=lambda cls: cls.__name__)
def test_softmax_and_kinks_go_with_noise_on_the_output_only(algorithm):
    for loss in (Softmax(classes=3), Hinge()):
        if algorithm is PrimalPerturbation:
            problem = problem_of(loss)
            shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(0)))
            assert np.isfinite(laws.execute(planned(algorithm(), problem), shards)[0]).all()
        else:
            with pytest.raises(PreconditionError):
                planned(algorithm(), problem_of(loss))


@pytest.mark.parametrize("algorithm", BOTH, ids=lambda cls: cls.__name__)
def test_a_minimiser_that_cannot_be_certified_does_not_leave(algorithm):
    problem = problem_of()
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(0)))
    with pytest.raises(ConsensoError, match="certif"):
        laws.execute(planned(algorithm(tolerance=1e-18), problem), shards)


@pytest.mark.parametrize("algorithm", BOTH, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("parameters", [{"penalty": -1.0}, {"tolerance": 0.0}])
def test_refused_parameters(algorithm, parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        algorithm(**parameters)


def test_the_cover_exceeds_the_tolerance():
    with pytest.raises(InputError, match="cover"):
        DualPerturbation(tolerance=1e-6, cover=1e-6)


def test_names():
    assert find("PVP") is PrimalPerturbation
    assert find("DVP") is DualPerturbation
