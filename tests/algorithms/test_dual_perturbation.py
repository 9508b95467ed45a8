"""Dual variable perturbation: Zhang and Zhu 2017, Algorithm 1. Its bounds and costs are in test_perturbations.py."""

from __future__ import annotations

import numpy as np
from tests.algorithms.transcription import (
    GRAPH,
    SEED,
    SIZES,
    drawn,
    minimise_logistic,
    noise_of,
    silos,
    with_and_without_noise,
)

from consenso.algorithms.dual_perturbation import DualPerturbation
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.noise import GammaNormNoise
from consenso.privacy.samplers import Seeded
from consenso.regularizers import L2
from consenso.testing.plans import execute

PENALTY, STRENGTH, ROUNDS, TOLERANCE, COVER = 0.3, 0.1, 6, 1e-12, 1e-3


@with_and_without_noise
def test_iterates_follow_the_paper(multiplier) -> None:
    """Distributed ADMM with a noisy linear term in each minimisation; the paper's lambda is half of the dual here."""
    problem, shards, parties = silos(Logistic(), L2(strength=STRENGTH), weighting="party")
    made = plan(
        problem,
        DualPerturbation(penalty=PENALTY, tolerance=TOLERANCE, cover=COVER),
        rounds=ROUNDS,
        noise=noise_of(multiplier, GammaNormNoise),
        topology=GRAPH,
        sampler=Seeded(SEED),
    )
    _, progress = execute(made, shards)

    w, dual = np.zeros((6, 3)), np.zeros((6, 3))
    for k in range(ROUNDS):
        inside = drawn("gamma_norm", k, range(6), 3, multiplier * 2 / SIZES)
        outside = drawn("gamma_norm", k, range(6), 3, multiplier * COVER, release=1)  # covers the solver's error
        new = np.empty((6, 3))
        for i, (rows, targets) in enumerate(parties):
            near = GRAPH.neighbors(i)
            pull = PENALTY * sum(w[i] + w[j] for j in near) - dual[i] - inside[i]
            new[i] = minimise_logistic(rows, targets, 1 / len(rows), STRENGTH + 2 * PENALTY * len(near), pull)
        w = new + outside
        dual = dual + PENALTY * np.array([sum(w[i] - w[j] for j in GRAPH.neighbors(i)) for i in range(6)])
    np.testing.assert_allclose(progress.state.w, w, atol=1e-11)
    np.testing.assert_allclose(progress.state.dual, dual, atol=1e-11)
