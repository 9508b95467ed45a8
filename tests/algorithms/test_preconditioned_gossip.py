"""Gossip in a shared metric against a loop over nodes, with the same noise; how many rounds a graph needs to mix."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.algorithms.transcription import GRAPH, SEED, clean, drawn, silos, with_and_without_noise

from consenso.algorithms.preconditioned_gossip import PreconditionedGossip, rounds_to_mix
from consenso.algorithms.preconditioning.noise_levels import FLATTENED, LARGEST_SCORE, NoiseLevels
from consenso.errors import InputError
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.regularizers import L2
from consenso.testing.laws import execute
from consenso.topology import Topology

SIZE, NODES, P, STRENGTH = 6, 6, 3, 0.05


def power(matrix, exponent):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**exponent) @ vectors.T


@with_and_without_noise
def test_iterates_follow_the_paper(multiplier: float) -> None:
    algorithm = PreconditionedGossip(steps=5, mixing=2, step=0.7, clip=0.8, averaging=0.4)
    problem, shards, parts = silos(Logistic(), L2(strength=STRENGTH), np.full(NODES, SIZE))
    noise = {"second moment": 2.0, "gradient": multiplier}
    kinds = {name: GaussianNoise(multiplier=each) if multiplier else NoNoise() for name, each in noise.items()}
    made = plan(problem, algorithm, rounds=8, noise=kinds, topology=GRAPH, sampler=Seeded(SEED))
    got, _ = execute(made, shards)

    mix = GRAPH.metropolis.toarray()
    upper = np.triu_indices(P)
    root2 = np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    moment_std = math.sqrt(2) * 2.0 * bool(multiplier)
    packed = np.array([(rows.T @ rows)[upper] * root2 for rows, _ in parts])
    packed = (packed + drawn("gaussian", 0, np.arange(NODES), packed.shape[1], moment_std)) / SIZE
    for _ in range(3):
        packed = mix @ packed
    metrics, clips, weights = [], [], []
    for entries in packed:
        matrix = np.zeros((P, P))
        matrix[upper] = entries / root2
        values, vectors = np.linalg.eigh(matrix + np.triu(matrix, 1).T)
        noise = moment_std / SIZE * math.sqrt(2 / NODES)
        found = clean(values, noise)
        lifted = found + max(noise * math.sqrt(2 * P) * NoiseLevels.floor, 1e-6)
        effective = max(np.sum(found / lifted), 1.0)
        metrics.append((vectors * np.clip(lifted, 1e-6, 1)) @ vectors.T)
        clips.append(max(1.0, 0.8 * math.sqrt(effective)))
        weights.append(min(1.0, clips[-1] / math.sqrt(effective)))

    w, y, last, late = np.zeros((NODES, P)), np.zeros((NODES, P)), np.zeros((NODES, P)), []
    for k in range(5):
        said_w, said_y = np.empty((NODES, P)), np.empty((NODES, P))
        for i, (rows, labels) in enumerate(parts):
            total = np.zeros(P)
            for row, label in zip(rows, labels, strict=True):
                white = power(metrics[i], -0.5) @ row
                white *= min(1.0, clips[i] / np.linalg.norm(white)) / clips[i]
                total += -label / (1 + math.exp(label * (row @ w[i]))) * white
            total += drawn("gaussian", 3 + k, i, P, 2 * multiplier)[0]
            gradient = clips[i] / SIZE * power(metrics[i], 0.5) @ total
            y[i] += gradient - last[i]
            last[i] = gradient
            std = 2 * multiplier * clips[i] / SIZE / math.sqrt(NODES * 5)
            damping = 2 * std**2 / (FLATTENED * 0.25) * np.trace(metrics[i]) / LARGEST_SCORE**2
            bent = weights[i] * 0.25 / 0.7 * metrics[i] + damping * np.eye(P)
            point = w[i] - np.linalg.solve(bent, y[i] + damping * w[i])
            said_w[i] = np.linalg.solve(bent + weights[i] * STRENGTH * np.eye(P), bent @ point)
            said_y[i] = y[i]
        w, y = mix @ said_w, mix @ said_y
        late.append(w)
    np.testing.assert_allclose(got, np.mean(late[-3:], axis=(0, 1)), rtol=1e-6, atol=1e-8)  # sums are made on grids


def test_the_second_moment_gets_its_share_of_the_budget() -> None:
    algorithm = PreconditionedGossip(steps=10, mixing=1, share=0.2)
    problem, _, _ = silos(Logistic(), L2(strength=STRENGTH), np.full(NODES, SIZE))
    weights = algorithm.noise_weights
    cost = {"second moment": weights["second moment"] ** -2, "gradient": 10 * weights["gradient"] ** -2}
    assert cost["second moment"] / sum(cost.values()) == pytest.approx(0.2)
    noise = {name: GaussianNoise(multiplier=5 * each) for name, each in weights.items()}
    made = plan(problem, algorithm, rounds=algorithm.rounds, noise=noise, topology=GRAPH)
    one = plan(problem, algorithm, rounds=algorithm.rounds, topology=GRAPH, noise=noise | {"second moment": NoNoise()})
    assert math.isinf(one.guarantee(Eavesdropper(), 1e-5).epsilon(1e-5))
    assert made.guarantee(Eavesdropper(), 1e-5).epsilon(1e-5) > 0


@pytest.mark.parametrize("topology", [Topology.ring(12), Topology.grid(4, 5), Topology.complete(7), Topology.path(9)])
def test_mixed_noise_is_at_most_twice_that_of_the_mean(topology: Topology) -> None:
    rounds = rounds_to_mix(topology)
    weights = np.linalg.matrix_power(topology.metropolis.toarray(), rounds)
    assert (np.sum(weights**2, axis=1) <= 2 / topology.parties + 1e-12).all()


def test_rounds_that_end_before_the_first_step_are_refused() -> None:
    problem, _, _ = silos(Logistic(), L2(strength=STRENGTH), np.full(NODES, SIZE))
    with pytest.raises(InputError, match="22 at least"):
        plan(problem, PreconditionedGossip(), rounds=21, noise=GaussianNoise(multiplier=1.0), topology=GRAPH)
