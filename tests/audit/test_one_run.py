"""One run, many canaries: the test of Steinke, Nasr and Jagielski, on real training runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.audit import canaries, one_run
from consenso.audit.one_run import lower_bound, p_value
from consenso.errors import InputError
from consenso.losses import Huber, Logistic
from consenso.planning.plan import plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Peer, Public
from consenso.problem import Problem
from consenso.regularizers import L2, NoPenalty


def test_published_values() -> None:
    assert p_value(100, 100, 75, math.log(3), 0.0) == pytest.approx(0.5535, abs=1e-4)
    assert p_value(1000, 100, 75, 0.0, 0.0) == pytest.approx(binom.sf(74, 100, 0.5))
    assert p_value(1000, 100, 75, 1.0, 1e-4) > p_value(1000, 100, 75, 1.0, 0.0)
    assert lower_bound(100, 100, 50, delta=1e-5, confidence=0.95) == 0.0
    found = lower_bound(1000, 100, 75, delta=1e-4, confidence=0.95)
    assert p_value(1000, 100, 75, found, 1e-4) == pytest.approx(0.05, abs=1e-6)


def problem(features: int, records: int, parties: int = 1, adjacency="replace-one") -> Problem:
    return Problem(
        loss=Huber(threshold=1.0),
        regularizer=NoPenalty(),
        features=features,
        sizes=np.full(parties, records // parties),
        row_bound=1.0,
        target_bound=1e3,
        adjacency=adjacency,
    )


def silent(of: Problem):
    return [(np.zeros((int(size), of.features)), np.full(int(size), 1e3)) for size in of.sizes]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_run_at_epsilon_eight_is_seen_and_not_overrated(adjacency) -> None:
    chosen = problem(400, 400, adjacency=adjacency)
    made = plan(chosen, DPSGD(step=1.0), rounds=10, target=EpsilonDelta(epsilon=8.0, delta=1e-5), observer=Public())
    found = one_run(made, silent(chosen), canaries(chosen, 300, seed=1), seed=2)
    assert 1.0 < found.lower <= 8.0
    assert found.right > 0.75 * found.guesses
    # From the final model alone the linear loss gives the same scores.
    last = one_run(made, silent(chosen), canaries(chosen, 300, seed=1), seed=2, view="model")
    assert last.lower == pytest.approx(found.lower, rel=0.2)


def test_forgotten_noise_is_caught_in_one_run() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Whisper(GaussianNoise):
        def sample(self, values, sensitivity, round, key, sampler):  # noqa: A002
            return sampler.gaussian(values, self.scale(sensitivity, round) / 20, key, sensitivity=sensitivity)

    chosen = problem(400, 400)
    made = plan(chosen, DPSGD(step=1.0), rounds=10, noise=Whisper(multiplier=10.0))
    claimed = made.guarantee(Public(), 1e-5).epsilon(1e-5)
    found = one_run(made, silent(chosen), canaries(chosen, 300, seed=1), seed=2)
    assert claimed < 1.6
    assert found.lower > claimed


def test_real_data_in_several_parties() -> None:
    rng = np.random.default_rng(0)
    chosen = Problem(loss=Logistic(), regularizer=L2(strength=0.01), features=200, sizes=np.full(4, 100), row_bound=1.0)
    made = plan(
        chosen,
        DualConsensusADMM(step=1.0),
        rounds=8,
        noise=GaussianNoise(multiplier=0.7),
        trust="curator",
    )
    data = [(rng.normal(size=(100, 200)) / 15, rng.choice([-1.0, 1.0], size=100)) for _ in range(4)]
    claimed = made.guarantee(Peer(party=0), 1e-5).epsilon(1e-5)
    found = one_run(made, data, canaries(chosen, 120, seed=3), seed=4)
    assert 0.0 < found.lower < claimed
    assert found.canaries == 120


def test_honest_over_repetitions() -> None:
    """At epsilon 0.5 a bound above it has probability at most 5 %: 8 of 40 happen by chance less than once in 1e3."""
    chosen = problem(60, 120)
    made = plan(chosen, DPSGD(step=1.0), rounds=2, target=EpsilonDelta(epsilon=0.5, delta=1e-5), observer=Public())
    some = canaries(chosen, 60, seed=0)
    over = sum(one_run(made, silent(chosen), some, seed=seed).lower > 0.5 for seed in range(40))
    assert over <= 7


def test_refusals() -> None:
    with pytest.raises(InputError, match="10"):
        canaries(problem(3, 10), 11, seed=0)
    with pytest.raises(InputError, match="ask for fewer"):
        canaries(
            Problem(loss=Logistic(), regularizer=NoPenalty(), features=2, sizes=np.array([1, 20]), row_bound=1.0),
            10,
            seed=0,
        )
    with pytest.raises(InputError, match="at most all"):
        p_value(10, 11, 3, 1.0, 0.0)
