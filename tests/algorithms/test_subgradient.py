"""Distributed subgradient steps against a loop over nodes, with the same noise; what falling steps reach."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.silos import CHORD, EIGHT, GRAPHS, SIZES, silos
from tests.algorithms.transcription import SEED, drawn, noise_of, with_and_without_noise

from consenso.algorithms import find
from consenso.algorithms.subgradient import DistributedSubgradient
from consenso.engine.run import objective, run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Absolute, Hinge, Logistic, Squared
from consenso.planning.plan import plan
from consenso.privacy.accountants import rdp
from consenso.privacy.noise import GaussianNoise, Geometric, NoNoise, Polynomial
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty
from consenso.testing.laws import execute
from consenso.testing.optimum import optimum


@with_and_without_noise
@pytest.mark.parametrize("at_average", [False, True])
@pytest.mark.parametrize("proximal", [False, True])
def test_iterates_follow_the_paper(at_average, proximal, multiplier):
    rounds = 12
    problem, shards, parts = silos(Hinge(), L1(strength=0.05), weighting="party")
    algorithm = DistributedSubgradient(
        step=Polynomial(first=1.0, power=-0.5), proximal=proximal, at_average=at_average, averaging=0.5
    )
    made = plan(
        problem,
        algorithm,
        rounds=rounds,
        noise=noise_of(multiplier),
        topology=CHORD,
        sampler=Seeded(SEED),
    )
    got, progress = execute(made, shards)

    said, history, degrees = np.zeros((6, 3)), [], CHORD.degrees
    for k in range(rounds):
        alpha, new = (k + 1) ** -0.5, np.zeros((6, 3))
        mixed = said.copy()
        for i in range(6):
            for j in CHORD.neighbors(i):
                mixed[i] = mixed[i] + (said[j] - said[i]) / (1 + max(degrees[i], degrees[j]))
        for i, (rows, targets) in enumerate(parts):
            point = mixed[i] if at_average else said[i]
            g = np.zeros(3)
            for row, target in zip(rows, targets, strict=True):
                g -= (target * (row @ point) < 1) * target * row / SIZES[i]
            # The paper's place of the noise: on the message, whose sensitivity is 2 c_1 alpha / M.
            draw = drawn("gaussian", k, i, 3, multiplier * 2 * alpha / SIZES[i])[0]
            if proximal:
                v = mixed[i] - alpha * g - draw
                new[i] = np.sign(v) * np.maximum(np.abs(v) - alpha * 0.05, 0)
            else:
                new[i] = mixed[i] - alpha * (g + 0.05 * np.sign(point)) - draw
        said = new
        history.append(CHORD.metropolis.toarray() @ said if at_average else said)
    np.testing.assert_allclose(progress.state.w, said, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(got, np.mean(history[rounds // 2 :], axis=(0, 1)), rtol=1e-11, atol=1e-12)


@pytest.mark.sweep
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    ("loss", "regularizer", "radius", "gap"),
    [
        (Squared(), L2(strength=0.1), 20.0, 1e-4),
        (Squared(), ElasticNet(l1=0.01, l2=0.1), 20.0, 1e-4),
        (Logistic(), L2(strength=0.1), None, 1e-4),
        (Absolute(), L2(strength=0.05), None, 1e-2),
    ],
    ids=["ridge", "elastic net", "logistic", "absolute"],
)
@pytest.mark.slow
def test_falling_steps_come_close_to_the_central_optimum(graph, loss, regularizer, radius, gap):
    problem, shards, _ = silos(loss, regularizer, EIGHT, seed=2)
    algorithm = DistributedSubgradient(
        step=Polynomial(first=2.0, power=-0.7), proximal=True, radius=radius, averaging=0.2
    )
    made = plan(problem, algorithm, rounds=600, noise=NoNoise(), topology=GRAPHS[graph])
    best = optimum(problem, shards)
    assert -1e-9 < objective(made, shards, run(made, shards).model) / best - 1 < gap


def test_a_constant_step_stays_away_from_the_optimum():
    # Nodes that disagree: each one's own data pull it off the consensus by the order of the step.
    problem, shards, _ = silos(Squared(), L2(strength=0.1), EIGHT, seed=2)
    best, left = optimum(problem, shards), []
    for step in (1.0, 0.1):
        made = plan(
            problem,
            DistributedSubgradient(step=step, radius=20.0),
            rounds=600,
            noise=NoNoise(),
            topology=GRAPHS["ring"],
        )
        left.append(objective(made, shards, run(made, shards).model) / best - 1)
    assert left[0] > 1e-4
    assert 0 < left[1] < left[0] / 10


def test_costs_do_not_depend_on_the_steps():
    problem, _, _ = silos(Logistic(), NoPenalty())
    first, decay, rounds = 0.01, 0.95, 30
    schedule = GaussianNoise(multiplier=Geometric(first=(2 * first) ** -0.5, ratio=decay))
    closed = first * (1 - decay**rounds) / (decay ** (rounds - 1) - decay**rounds)
    for step in (1.0, Polynomial(first=3.0, power=-0.5)):
        made = plan(problem, DistributedSubgradient(step=step), rounds=rounds, noise=schedule, topology=CHORD)
        assert rdp(made.guarantee(Eavesdropper(), 1e-5).event, 4.0) / 4.0 == pytest.approx(closed)


def test_refusals():
    for parameter in ({"step": 0.0}, {"clip": -1.0}, {"rate": 2.0}, {"averaging": 1.5}):
        with pytest.raises(InputError, match=next(iter(parameter))):
            DistributedSubgradient(**parameter)
    problem, _, _ = silos(Squared(), NoPenalty())
    with pytest.raises(PreconditionError, match=r"Huber\(threshold=\.\.\.\).*clip=.*radius="):
        plan(problem, DistributedSubgradient(), rounds=1, noise=NoNoise(), topology=CHORD)
    problem, _, _ = silos(Logistic(), Box(low=-1.0, high=1.0))
    with pytest.raises(PreconditionError, match="proximal=True"):
        plan(problem, DistributedSubgradient(), rounds=1, noise=NoNoise(), topology=CHORD)


def test_found_by_the_name_of_the_paper():
    assert find("zCDP-grad-NFL") is DistributedSubgradient
