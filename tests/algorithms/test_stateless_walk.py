"""The walk without states, in the words of docs/privacy.md ("Random walk")."""

from __future__ import annotations

import numpy as np
from tests.algorithms.transcription import (
    SEED,
    drawn,
    minimise_logistic,
    noise_of,
    silos,
    soft,
    with_and_without_noise,
)

from consenso.algorithms.stateless_walk import StatelessWalk
from consenso.engine.coins import make_coins
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.samplers import Seeded
from consenso.regularizers import L1
from consenso.schedules import RandomWalk
from consenso.testing.plans import execute


@with_and_without_noise
def test_iterates_follow_the_paper(multiplier) -> None:
    """z <- prox_{t r}(z + t/step (prox_{step f_l}(z) - z + noise)), t = 2 relaxation step / n."""
    n, rounds, step, relaxation, strength, tolerance = 4, 12, 0.6, 0.8, 0.05, 1e-13
    problem, shards, parties = silos(Logistic(), L1(strength=strength), [4, 6, 5, 5], weighting="party", unit="party")
    made = plan(
        problem,
        StatelessWalk(step=step, relaxation=relaxation, tolerance=tolerance),
        rounds=rounds,
        noise=noise_of(multiplier),
        schedule=RandomWalk(),
        sampler=Seeded(SEED),
        trust="local",
    )
    model, _ = execute(made, shards)

    coins, visited = make_coins(Seeded(SEED)), None
    z, t = np.zeros(3), 2 * relaxation * step / n
    for k in range(rounds):
        visited = RandomWalk().active(k, visited, n, coins)
        (party,) = visited
        rows, targets = parties[party]
        x = minimise_logistic(rows, targets, 1 / len(rows), 1 / step, z / step)
        eta = drawn("gaussian", k, party, 3, multiplier * (2 * step + 2 * tolerance))[0]
        z = soft(z + t / step * (x - z + eta), t * strength)
    np.testing.assert_allclose(model, z, atol=1e-12)
