"""Consensus ADMM with the noise in the states: Cyffers, Bellet and Basu 2023, Algorithms 2, 3, 4 and 6."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.transcription import (
    SEED,
    drawn,
    minimise_logistic,
    noise_of,
    silos,
    soft,
    with_and_without_noise,
)

from consenso.algorithms.consensus import ConsensusADMM
from consenso.engine.coins import make_coins
from consenso.errors import InputError
from consenso.losses import Logistic, Squared
from consenso.planning.plan import plan
from consenso.privacy.accountants import epsilon
from consenso.privacy.events import Gaussian, repeat
from consenso.privacy.observers import Eavesdropper, Public, Server
from consenso.privacy.samplers import Seeded
from consenso.regularizers import L1, NoPenalty
from consenso.schedules import Everyone, FixedSubset, PoissonSubset, RandomWalk
from consenso.testing.plans import execute

STEP, RELAXATION, TOLERANCE = 0.8, 0.7, 1e-13


@with_and_without_noise
@pytest.mark.parametrize("strength", [0.0, 0.05])
@pytest.mark.parametrize(
    "schedule", [Everyone(), FixedSubset(2), PoissonSubset(0.5), RandomWalk()], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize("relaxation", [RELAXATION, 1.0])
def test_iterates_follow_the_paper(relaxation, schedule, strength, multiplier) -> None:
    """Algorithms 2 and 3 (all, some), 4 (a walk), with zhat the mean of all u_i, which the printed one is not."""
    n, rounds = 4, 7
    problem, shards, parties = silos(
        Logistic(),
        L1(strength=strength) if strength else NoPenalty(),
        [4, 6, 5, 5],
        weighting="party",
        unit="party",
    )
    made = plan(
        problem,
        ConsensusADMM(step=STEP, relaxation=relaxation, tolerance=TOLERANCE),
        rounds=rounds,
        noise=noise_of(multiplier),
        schedule=schedule,
        sampler=Seeded(SEED),
        trust="local",
    )
    model, progress = execute(made, shards)

    coins, before = make_coins(Seeded(SEED)), None
    u, z = np.zeros((n, 3)), np.zeros(3)
    for k in range(rounds):
        before = schedule.active(k, before, n, coins)
        for i in before:
            rows, targets = parties[i]
            x = minimise_logistic(rows, targets, 1 / len(rows), 1 / STEP, (2 * z - u[i]) / STEP)
            eta = 2 * drawn("gaussian", k, i, 3, multiplier * (2 * STEP + 2 * TOLERANCE))[0]
            u[i] = u[i] + 2 * relaxation * (x - z + eta / 2)
        zhat = u.mean(axis=0)
        z = soft(zhat, STEP * strength)
    np.testing.assert_allclose(progress.hub.mean, zhat, atol=1e-12)
    np.testing.assert_allclose(model, z, atol=1e-12)


@with_and_without_noise
def test_iterates_follow_the_paper_for_the_lasso(multiplier) -> None:
    """Algorithm 6: a record a party, the residual clipped. Its gamma is 2 n times the step in x, and step in z."""
    n, rounds, clip, strength = 12, 9, 0.4, 0.03
    problem, shards, parties = silos(Squared(), L1(strength=strength), [1] * n, unit="party")
    made = plan(
        problem,
        ConsensusADMM(step=STEP, relaxation=RELAXATION, clip=clip, tolerance=TOLERANCE),
        rounds=rounds,
        noise=noise_of(multiplier),
        sampler=Seeded(SEED),
        trust="local",
    )
    model, _ = execute(made, shards)

    u, z = np.zeros((n, 3)), np.zeros(3)
    for k in range(rounds):
        for i, ((row,), (target,)) in enumerate(parties):
            x = np.linalg.solve(np.outer(row, row) + np.eye(3) / STEP, target * row + (2 * z - u[i]) / STEP)
            residual = (x - z) * min(1, clip / np.linalg.norm(x - z))
            eta = 2 * drawn("gaussian", k, i, 3, multiplier * 2 * clip)[0]
            u[i] = u[i] + 2 * RELAXATION * (residual + eta / 2)
        z = soft(u.mean(axis=0), STEP * strength)
    np.testing.assert_allclose(model, z, atol=1e-12)


@pytest.mark.parametrize("trust", ["local", "secure-sum"])
def test_relaxation_one_costs_what_every_message_costs(trust) -> None:
    """The paper allows it; nothing is proved for the means then, so the local bound stands for every observer."""
    problem, _, _ = silos(Logistic(), NoPenalty(), [4, 6, 5, 5], weighting="party", unit="party")
    rounds, multiplier = 5, 3.0
    common = {"rounds": rounds, "noise": noise_of(multiplier), "trust": trust, "sampler": Seeded(SEED)}
    full = plan(problem, ConsensusADMM(step=STEP, relaxation=1.0, tolerance=TOLERANCE), **common)
    # Rounds of multiplier 3 are Gaussian mechanisms for whoever sees every message, whatever the relaxation.
    local = epsilon(repeat(Gaussian(multiplier, 1.0), rounds), 1e-5)
    for observer in (Eavesdropper(), Server(), Public()):
        assert full.guarantee(observer, 1e-5).epsilon(1e-5) == pytest.approx(local, rel=1e-6)
    if trust == "secure-sum":
        half = plan(problem, ConsensusADMM(step=STEP, relaxation=0.5, tolerance=TOLERANCE), **common)
        assert half.guarantee(Public(), 1e-5).epsilon(1e-5) < local
    with pytest.raises(InputError, match="relaxation"):
        ConsensusADMM(relaxation=1.01)
