"""Consensus ADMM with the noise on the sum, in the words of docs/privacy.md ("Clean variants", B and C)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.transcription import (
    SEED,
    drawn_on_sum,
    minimise_logistic,
    noise_of,
    sampled_records,
    silos,
    soft,
    with_and_without_noise,
)

from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.engine.coins import make_coins
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.samplers import Seeded
from consenso.regularizers import L1
from consenso.schedules import Everyone, PoissonSubset
from consenso.testing.plans import execute

STEP, RELAXATION, STRENGTH, ROUNDS, TOLERANCE = 0.8, 0.3, 0.05, 8, 1e-13
SIZES = [4, 6, 5, 5]


def planned(problem, multiplier, schedule=None, **parameters):
    algorithm = DualConsensusADMM(step=STEP, relaxation=RELAXATION, tolerance=TOLERANCE, **parameters)
    return plan(
        problem,
        algorithm,
        rounds=ROUNDS,
        noise=noise_of(multiplier),
        schedule=schedule or Everyone(),
        sampler=Seeded(SEED),
        trust="curator",
    )


@with_and_without_noise
@pytest.mark.parametrize("form", ["all", "sampled", "clipped", "state"])
def test_iterates_follow_the_paper(form, multiplier) -> None:
    """A party is the unit of consensus; noise once on the sum of g_i, or (variant B) on the sum of p_i."""
    problem, shards, parties = silos(Logistic(), L1(strength=STRENGTH), SIZES, weighting="party", unit="party")
    clip = 0.2 if form == "clipped" else None
    h = RELAXATION if form == "state" else 0.2
    released = {"released": "state"} if form == "state" else {"hub_relaxation": h}
    schedule, rate = (PoissonSubset(0.5), 0.5) if form == "sampled" else (Everyone(), 1.0)
    made = planned(problem, multiplier, schedule, level="party", clip=clip, **released)
    model, _ = execute(made, shards)

    coins, active, n = make_coins(Seeded(SEED)), None, len(SIZES)
    p, centre, dual, z = np.zeros((n, 3)), np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(ROUNDS):
        total = drawn_on_sum(k, 3, multiplier * 2 * (clip or STEP + TOLERANCE))
        active = schedule.active(k, active, n, coins)
        for i in active:
            rows, targets = parties[i]
            v = 2 * z - centre + p[i]
            g = v - minimise_logistic(rows, targets, 1 / len(rows), 1 / STEP, v / STEP)
            g = g * min(1, (clip or np.inf) / np.linalg.norm(g))
            p[i] = (1 - 2 * RELAXATION) * p[i] + 2 * RELAXATION * g
            total = total + (p[i] if form == "state" else g)
        centre = (1 - 2 * h) * centre + 2 * h * z
        mean = total / (rate * n)
        dual = mean if form == "state" else (1 - 2 * h) * dual + 2 * h * mean
        z = soft(centre - dual, STEP * STRENGTH)
    np.testing.assert_allclose(model, z, atol=1e-12)


@with_and_without_noise
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_iterates_follow_the_paper_with_records_as_units(rate, multiplier) -> None:
    """Every record keeps a p_i of its own and takes the prox of its own loss; who is not sampled keeps p_i."""
    problem, shards, parties = silos(Logistic(), L1(strength=STRENGTH), SIZES)
    model, _ = execute(planned(problem, multiplier, rate=rate), shards)

    h, records = RELAXATION, sum(SIZES)
    p = [np.zeros((size, 3)) for size in SIZES]
    centre, dual, z = np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(ROUNDS):
        total = drawn_on_sum(k, 3, multiplier * 2 * STEP)
        for i, (rows, targets) in enumerate(parties):
            taken = sampled_records(k, i, SIZES[i], rate)
            for j in np.flatnonzero(taken):
                v = 2 * z - centre + p[i][j]
                g = v - minimise_logistic(rows[j : j + 1], targets[j : j + 1], 1.0, 1 / STEP, v / STEP)
                p[i][j] = (1 - 2 * RELAXATION) * p[i][j] + 2 * RELAXATION * g
                total = total + g
        centre = (1 - 2 * h) * centre + 2 * h * z
        dual = (1 - 2 * h) * dual + 2 * h * total / (rate * records)
        z = soft(centre - dual, STEP * STRENGTH)
    np.testing.assert_allclose(model, z, atol=1e-12)


def test_without_noise_both_levels_of_one_record_a_party_agree() -> None:
    problem, shards, _ = silos(Logistic(), L1(strength=STRENGTH), [1] * 6)
    by_party, _ = execute(planned(problem, 0.0, level="party"), shards)
    by_record, _ = execute(planned(problem, 0.0), shards)
    np.testing.assert_allclose(by_party, by_record, atol=1e-12)
