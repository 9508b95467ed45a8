"""Distributed ADMM: its iterates by hand, the central optimum on every graph, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.transcription import minimise_logistic

from consenso.algorithms import find
from consenso.algorithms.distributed_admm import DistributedADMM
from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Huber, Logistic, Squared
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.observers import Eavesdropper, Public
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Box, NoPenalty, Unpenalized
from consenso.shards import Shards
from consenso.testing import laws
from consenso.testing.optimum import optimum
from consenso.testing.worlds import draw
from consenso.topology import Topology

SIZES = np.array([4, 6, 5, 3, 7, 5])
GRAPHS = {
    "ring": Topology.ring(6),
    "random": Topology.erdos_renyi(6, 3.0, seed=2),
    "complete": Topology.complete(6),
    "star": Topology.star(6),
}


def problem_of(loss=None, regularizer=None, weighting="record") -> Problem:
    loss = loss or Logistic()
    return Problem(
        loss=loss,
        regularizer=regularizer or L2(strength=0.1),
        features=3,
        sizes=SIZES,
        row_bound=1.0,
        target_bound=2.0 if loss.targets == "real" else None,
        weighting=weighting,
    )


def trained(problem, *, penalty, rounds, topology=GRAPHS["random"], seed=0):
    data = draw(problem, np.random.default_rng(seed))
    shards = Shards.from_parties(problem, data)
    algorithm = DistributedADMM(penalty=penalty, tolerance=1e-12)
    made = plan(problem, algorithm, rounds=rounds, noise=NoNoise(), topology=topology)
    model, progress = laws.execute(made, shards)
    return model, progress.state, data, shards


@pytest.mark.parametrize("weighting", ["record", "party"])
def test_iterates_follow_the_paper(weighting):
    """Forero, Cano and Giannakis 2010, with gamma half of our dual. There is no noise: a plan with noise is refused."""
    problem, topology, penalty, rounds = problem_of(weighting=weighting), GRAPHS["random"], 0.3, 7
    _, state, data, _ = trained(problem, penalty=penalty, rounds=rounds, topology=topology)
    w, gamma = np.zeros((6, 3)), np.zeros((6, 3))
    for _ in range(rounds):
        new = np.empty_like(w)
        for i, (rows, targets) in enumerate(data):
            neighbours = topology.neighbors(i)
            curvature = 0.1 + 2 * penalty * len(neighbours)
            pull = penalty * sum(w[i] + w[j] for j in neighbours) - 2 * gamma[i]
            new[i] = minimise_logistic(rows, targets, problem.scales[i], curvature, pull)
        w = new
        for i in range(6):
            gamma[i] += penalty / 2 * sum(w[i] - w[j] for j in topology.neighbors(i))
    np.testing.assert_allclose(state.w, w, atol=1e-11)
    np.testing.assert_allclose(state.dual, 2 * gamma, atol=1e-11)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.slow
def test_ridge_is_solved_on_every_graph(graph):
    problem = problem_of(Squared())
    model, state, data, _ = trained(problem, penalty=0.1, rounds=150, topology=GRAPHS[graph])
    X, y = np.concatenate([rows for rows, _ in data]), np.concatenate([targets for _, targets in data])
    best = np.linalg.solve(X.T @ X / len(y) + 0.1 * np.eye(3), X.T @ y / len(y))
    np.testing.assert_allclose(model, best, atol=1e-7)
    np.testing.assert_allclose(state.w, np.tile(best, (6, 1)), atol=1e-7)


@pytest.mark.sweep
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("loss", [Logistic(), Huber(threshold=0.5), Hinge()], ids=lambda loss: loss.name)
@pytest.mark.slow
def test_the_central_optimum_is_reached(loss, graph):
    problem = problem_of(loss)
    model, state, _, shards = trained(problem, penalty=0.1, rounds=150, topology=GRAPHS[graph])
    value = shards.cohort().value(model).mean() + problem.regularizer.value(model)
    assert value - optimum(problem, shards) < 1e-8
    np.testing.assert_allclose(state.w, np.tile(model, (6, 1)), atol=1e-4)


def test_parties_weigh_as_the_problem_says():
    by_record, by_party = (
        trained(problem_of(weighting=weighting), penalty=0.1, rounds=120)[0] for weighting in ("record", "party")
    )
    assert np.linalg.norm(by_record - by_party) > 1e-3
    problem = problem_of(weighting="party")
    model, _, _, shards = trained(problem, penalty=0.1, rounds=120)
    gradient = shards.cohort().gradient(model).mean(axis=0) + 0.1 * model
    assert np.linalg.norm(gradient) < 1e-7


def test_it_promises_nothing():
    made = laws.plan_example(DistributedADMM.example())
    for observer in (Eavesdropper(), Public()):
        assert made.guarantee(observer, 1e-5).epsilon(1e-5) == np.inf


def test_names():
    assert find("distributed ADMM") is DistributedADMM
    assert find("non-private ADMM") is DistributedADMM


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"noise": GaussianNoise(multiplier=1.0)}, "PrimalPerturbation"),
        ({"problem": problem_of(regularizer=L1(strength=0.1))}, "GraphDPADMM"),
        ({"problem": problem_of(regularizer=Box(low=-1.0, high=1.0))}, "GraphDPADMM"),
        ({"problem": problem_of(regularizer=Unpenalized(inner=L2(strength=0.1), last=1))}, "GraphDPADMM"),
    ],
)
def test_refused_settings(changes, named):
    settings = {"problem": problem_of(), "noise": NoNoise(), "rounds": 3, "topology": Topology.ring(6)} | changes
    with pytest.raises(PreconditionError, match=named):
        plan(settings.pop("problem"), DistributedADMM(), **settings)


def test_a_lonely_node_needs_a_square():
    lonely = Problem(loss=Logistic(), regularizer=NoPenalty(), features=2, sizes=np.array([5]), row_bound=1.0)
    with pytest.raises(PreconditionError, match="without neighbours"):
        plan(lonely, DistributedADMM(), rounds=2, noise=NoNoise(), topology=Topology(1, ()))


@pytest.mark.parametrize("parameters", [{"penalty": 0.0}, {"penalty": np.inf}, {"tolerance": -1.0}])
def test_refused_parameters(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        DistributedADMM(**parameters)
