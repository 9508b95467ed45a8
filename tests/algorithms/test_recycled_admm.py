"""Recycled ADMM: silent rounds follow from what was sent, cost nothing, and are the linearised step they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.transcription import (
    GRAPH,
    SEED,
    SIZES,
    drawn,
    logistic_gradient,
    minimise_logistic,
    noise_of,
    silos,
    with_and_without_noise,
)

from consenso.algorithms import find
from consenso.algorithms.dual_perturbation import DualPerturbation
from consenso.algorithms.recycled_admm import RecycledADMM
from consenso.engine.run import run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Huber, Logistic, Softmax, Squared
from consenso.planning.plan import plan
from consenso.privacy.noise import GammaNormNoise, GaussianNoise, NoNoise
from consenso.privacy.observers import Eavesdropper, Peer, Public
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2
from consenso.shards import Shards
from consenso.testing import laws
from consenso.testing.optimum import optimum
from consenso.testing.worlds import draw
from consenso.topology import Topology

PENALTY, PROXIMITY, STRENGTH = 0.2, 0.4, 0.1
GRAPHS = {"ring": Topology.ring(6), "random": Topology.erdos_renyi(6, 3.0, seed=2), "complete": Topology.complete(6)}


def problem_of(loss=None, regularizer=None) -> Problem:
    loss = loss or Logistic()
    return Problem(
        loss=loss,
        regularizer=regularizer or L2(strength=STRENGTH),
        features=3,
        sizes=np.array([4, 6, 5, 3, 7, 5]),
        row_bound=1.0,
        target_bound=2.0 if loss.targets == "real" else None,
    )


def planned(algorithm, rounds, noise=None, problem=None, topology=GRAPHS["random"]):
    noise = noise or GammaNormNoise(multiplier=3.0)
    return plan(problem or problem_of(), algorithm, rounds=rounds, noise=noise, topology=topology, sampler=Seeded(4))


def sent(made, shards) -> list[np.ndarray]:
    """What all nodes said, round by round."""
    said: list[np.ndarray] = []
    laws.execute(made, shards, watch=lambda round_, message, hub: said.append(message.w))
    return said


@with_and_without_noise
def test_iterates_follow_the_paper(multiplier):
    """Zhang, Khalili and Liu 2018, Algorithm 1: even rounds minimise, odd ones step along the gradient used before."""
    rounds, cover, tolerance = 8, 1e-3, 1e-12
    problem, shards, parties = silos(Logistic(), L2(strength=STRENGTH), weighting="party")
    algorithm = RecycledADMM(penalty=PENALTY, proximity=PROXIMITY, tolerance=tolerance, cover=cover)
    made = plan(
        problem,
        algorithm,
        rounds=rounds,
        noise=noise_of(multiplier, GammaNormNoise),
        topology=GRAPH,
        sampler=Seeded(SEED),
    )
    said = sent(made, shards)

    w, dual, gradient = np.zeros((3, 6, 3))
    for k in range(rounds):
        new = np.empty((6, 3))
        if k % 2 == 0:
            noise = drawn("gamma_norm", k, range(6), 3, multiplier * 2 / SIZES)
            covered = drawn("gamma_norm", k, range(6), 3, multiplier * cover, release=1)
        for i, (rows, targets) in enumerate(parties):
            near = GRAPH.neighbors(i)
            pull = PENALTY * sum(w[i] + w[j] for j in near) - dual[i]
            if k % 2 == 0:
                curvature = STRENGTH + 2 * PENALTY * len(near)
                new[i] = minimise_logistic(rows, targets, 1 / len(rows), curvature, pull - noise[i])
                # What the silent round recycles: the gradient at the minimiser with its noise, but for what covers it.
                gradient[i] = logistic_gradient(rows, targets, new[i]) / len(rows) + STRENGTH * new[i] + noise[i]
                gradient[i] -= 2 * PENALTY * len(near) * covered[i]
            else:
                new[i] = (pull + PROXIMITY * w[i] - gradient[i]) / (2 * PENALTY * len(near) + PROXIMITY)
        w = new + covered if k % 2 == 0 else new
        if k % 2 == 0:
            dual = dual + PENALTY * np.array([sum(w[i] - w[j] for j in GRAPH.neighbors(i)) for i in range(6)])
        np.testing.assert_allclose(said[k], w, atol=1e-10)


def test_silent_rounds_touch_neither_data_nor_door():
    algorithm = RecycledADMM(penalty=PENALTY, proximity=PROXIMITY)
    made = planned(algorithm, 4)
    facts = made.facts.at(1)
    assert algorithm.releases(facts) == ()
    state = algorithm.enroll(facts, None)
    after, message = algorithm.local(facts, state, None, None)
    assert np.array_equal(after.w, message.w)


def test_silent_rounds_leave_no_entry_in_the_ledger():
    problem = problem_of()
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(0)))
    result = run(planned(RecycledADMM(penalty=PENALTY), 6), shards)
    assert [(entry.round, entry.name) for entry in result.entries] == [
        (round_, name) for round_ in (0, 2, 4) for name in ("objective", "output")
    ]


@pytest.mark.parametrize("observer", [Eavesdropper(), Peer(party=0), Public()], ids=lambda observer: observer.key)
def test_twice_the_rounds_for_the_same_epsilon(observer):
    cost = lambda algorithm, rounds: planned(algorithm, rounds).guarantee(observer, 1e-5).epsilon(1e-5)
    recycled, plain = RecycledADMM(penalty=PENALTY), DualPerturbation(penalty=PENALTY)
    for rounds in (1, 4, 9):
        assert cost(recycled, 2 * rounds) == cost(plain, rounds)
        assert cost(recycled, 2 * rounds - 1) == cost(plain, rounds)
        assert cost(recycled, 2 * rounds + 1) == cost(plain, rounds + 1)


@pytest.mark.sweep
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("loss", [Logistic(), Huber(threshold=0.5)], ids=lambda loss: loss.name)
@pytest.mark.slow
def test_the_central_optimum_is_reached(loss, graph):
    problem = problem_of(loss)
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(1)))
    made = planned(RecycledADMM(penalty=0.1, proximity=1.0), 300, NoNoise(), problem, GRAPHS[graph])
    model, progress = laws.execute(made, shards)
    value = shards.cohort().value(model).mean() + problem.regularizer.value(model)
    assert value - optimum(problem, shards) < 1e-8
    np.testing.assert_allclose(progress.state.w, np.tile(model, (6, 1)), atol=1e-4)


@pytest.mark.parametrize(
    ("problem", "named"),
    [
        (problem_of(Squared()), "Huber"),
        (problem_of(Hinge()), "SmoothedHinge"),
        (problem_of(Softmax(classes=3)), "rank one"),
        (problem_of(regularizer=L1(strength=0.1)), "GraphDPADMM"),
    ],
    ids=["squared", "hinge", "softmax", "L1"],
)
def test_refused_problems(problem, named):
    with pytest.raises(PreconditionError, match=named):
        planned(RecycledADMM(), 4, problem=problem)


def test_refused_parameters_and_noises():
    with pytest.raises(InputError, match="proximity"):
        RecycledADMM(proximity=-1.0)
    with pytest.raises(InputError, match="cover"):
        RecycledADMM(cover=1e-12)
    with pytest.raises(PreconditionError, match="add-remove"):
        planned(RecycledADMM(), 4, GaussianNoise(multiplier=1.0))


def test_names():
    assert find("R-ADMM") is RecycledADMM
