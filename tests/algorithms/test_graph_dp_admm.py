"""DP-ADMM on a graph: its iterates by hand, its noise and its cost, and the central optimum without noise."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.transcription import SEED, drawn, noise_of, record_gradients, soft, with_and_without_noise

from consenso.algorithms import find
from consenso.algorithms.graph_dp_admm import GraphDPADMM
from consenso.algorithms.networked import NetworkedADMM
from consenso.errors import InputError, PreconditionError
from consenso.losses import Absolute, Huber, Logistic, Softmax, Squared
from consenso.planning.plan import plan
from consenso.privacy.accountants import gdp
from consenso.privacy.noise import Constant, GaussianNoise, Geometric, NoNoise, Polynomial
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, NoPenalty
from consenso.shards import Shards
from consenso.testing import laws
from consenso.testing.optimum import optimum
from consenso.testing.worlds import draw
from consenso.topology import Topology

GRAPHS = {"ring": Topology.ring(6), "random": Topology.erdos_renyi(6, 3.0, seed=2), "complete": Topology.complete(6)}


def problem_of(loss=None, regularizer=None, **changes) -> Problem:
    loss = loss or Logistic()
    settings = {
        "loss": loss,
        "regularizer": regularizer or L2(strength=0.1),
        "features": 3,
        "sizes": np.array([4, 6, 5, 3, 7, 5]),
        "row_bound": 1.0,
        "target_bound": 2.0 if loss.targets == "real" else None,
    }
    return Problem(**(settings | changes))


def planned(algorithm, problem, *, rounds=6, noise=None, topology=GRAPHS["random"]):
    noise = noise or GaussianNoise(multiplier=0.8)
    return plan(problem, algorithm, rounds=rounds, noise=noise, topology=topology, sampler=Seeded(SEED))


def data_of(problem, seed=0):
    data = draw(problem, np.random.default_rng(seed))
    return data, Shards.from_parties(problem, data)


@with_and_without_noise
@pytest.mark.parametrize("strength", [0.0, 0.05])
def test_iterates_follow_the_paper(strength, multiplier):
    penalty, proximity, clip, rounds, topology = 0.3, 0.7, 0.4, 6, GRAPHS["random"]
    problem = problem_of(regularizer=L1(strength=strength) if strength else NoPenalty())
    data, shards = data_of(problem)
    made = planned(GraphDPADMM(penalty=penalty, proximity=proximity, clip=clip), problem, noise=noise_of(multiplier))
    model, progress = laws.execute(made, shards)
    w, dual = np.zeros((6, 3)), np.zeros((6, 3))
    for k in range(rounds):
        noise = drawn("gaussian", k, range(6), 3, multiplier * 2 * clip * problem.scales)
        eta, new = 1 / (proximity * np.sqrt(k + 1)), np.empty_like(w)
        for i, (rows, targets) in enumerate(data):
            gradients = record_gradients(Logistic(), rows, targets, w[i])
            gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1) / clip)[:, None]
            near = topology.neighbors(i)
            bottom = 2 * penalty * len(near) + 1 / eta
            top = w[i] / eta + penalty * sum(w[i] + w[j] for j in near) - dual[i]
            top = top - problem.scales[i] * gradients.sum(axis=0) - noise[i]
            new[i] = soft(top / bottom, strength / bottom)
        w = new
        dual += penalty * np.array([sum(w[i] - w[j] for j in topology.neighbors(i)) for i in range(6)])
    np.testing.assert_allclose(progress.state.w, w, atol=1e-12)
    np.testing.assert_allclose(progress.state.dual, dual, atol=1e-12)
    np.testing.assert_allclose(model, w.mean(axis=0), atol=1e-12)


def test_it_is_networked_admm_with_the_step_of_the_paper():
    problem = problem_of(regularizer=L1(strength=0.02))
    _, shards = data_of(problem)
    own = GraphDPADMM(penalty=0.3, proximity=0.7, averaging=0.5)
    other = NetworkedADMM(penalty=0.3, step=Polynomial(first=1 / 0.7, power=-0.5), proximal=True, averaging=0.5)
    models = [laws.execute(planned(algorithm, problem), shards)[0] for algorithm in (own, other)]
    np.testing.assert_allclose(*models, atol=1e-12)


def test_averaging_is_the_mean_of_the_late_models():
    problem = problem_of()
    _, shards = data_of(problem)
    said: list[np.ndarray] = []
    made = planned(GraphDPADMM(averaging=0.5), problem)
    model, _ = laws.execute(made, shards, watch=lambda round_, message, hub: said.append(message.w))
    np.testing.assert_allclose(model, np.mean(said[3:], axis=(0, 1)), atol=1e-14)


@pytest.mark.sweep
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    ("loss", "regularizer"),
    [(Logistic(), L2(strength=0.1)), (Logistic(), L1(strength=0.02)), (Huber(threshold=0.5), NoPenalty())],
    ids=["logistic-L2", "logistic-L1", "huber"],
)
@pytest.mark.slow
def test_the_central_optimum_is_reached(loss, regularizer, graph):
    problem = problem_of(loss, regularizer)
    _, shards = data_of(problem, 1)
    algorithm = GraphDPADMM(penalty=0.05, proximity=0.6, growth=0.0)
    model, _ = laws.execute(planned(algorithm, problem, rounds=600, noise=NoNoise(), topology=GRAPHS[graph]), shards)
    value = shards.cohort().value(model).mean() + regularizer.value(model)
    assert value - optimum(problem, shards) < 1e-7


def test_noise_on_the_models_decreases_at_constant_cost():
    algorithm, problem = GraphDPADMM(penalty=0.3, proximity=0.7, clip=0.5), problem_of()
    made = planned(algorithm, problem, rounds=50)
    (release,) = algorithm.releases(made.facts)
    gap = 2 * 0.5 * problem.scales[0]
    assert release.bounds.record_replace_one == pytest.approx(gap)
    stds = [0.8 * gap / algorithm.denominator(made.facts.at(k)) for k in range(50)]
    assert (np.diff(stds, axis=0) < 0).all()
    assert gdp(made.guarantee(Eavesdropper(), 1e-5).event) == pytest.approx(np.sqrt(50) / 0.8)


def test_schedules_are_composed_round_by_round():
    falling = planned(
        GraphDPADMM(), problem_of(), rounds=20, noise=GaussianNoise(multiplier=Geometric(first=4, ratio=0.9))
    )
    expected = np.sqrt(sum(1 / (16 * 0.9**k) for k in range(20)))
    assert gdp(falling.guarantee(Eavesdropper(), 1e-5).event) == pytest.approx(expected)
    constant = planned(GraphDPADMM(), problem_of(), rounds=20, noise=GaussianNoise(multiplier=Constant(value=4.0)))
    assert gdp(constant.guarantee(Eavesdropper(), 1e-5).event) == pytest.approx(np.sqrt(20) / 4)


@pytest.mark.parametrize(
    ("unit", "adjacency", "factor"),
    [
        ("record", "add-remove", 1),
        ("record", "replace-one", 2),
        ("party", "add-remove", 3),
        ("party", "replace-one", 6),
    ],
)
def test_bounds_follow_the_records(unit, adjacency, factor):
    problem = problem_of(sizes=np.full(6, 3), weighting="party")
    made = planned(GraphDPADMM(), problem)
    (release,) = made.algorithm.releases(made.facts)
    assert release.bounds.at(unit, adjacency) == pytest.approx(factor / 3)


@pytest.mark.parametrize("loss", [Absolute(), Squared(), Softmax(classes=3)], ids=lambda loss: loss.name)
def test_other_losses_run(loss):
    problem = problem_of(loss, L1(strength=0.01))
    model, _ = laws.execute(planned(GraphDPADMM(clip=0.5), problem), data_of(problem)[1])
    assert np.isfinite(model).all()


def test_unbounded_gradients_are_refused():
    with pytest.raises(PreconditionError, match="Huber"):
        planned(GraphDPADMM(), problem_of(Squared()))


@pytest.mark.parametrize(
    "parameters", [{"penalty": 0.0}, {"proximity": 0.0}, {"growth": -0.5}, {"clip": 0.0}, {"averaging": 1.5}]
)
def test_refused_parameters(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        GraphDPADMM(**parameters)


def test_names():
    assert find("DP-ADMM") is GraphDPADMM
