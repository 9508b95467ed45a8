"""The same lasso with sound accounting: every way keeps its total epsilon for the observer it is meant for.

The loss is Huber's, which is the squared loss with each record's residual clipped, so that it is Lipschitz. A user has
one record and may be replaced. Nothing is computed from private data without noise: kappa, bounds, steps and numbers of
rounds follow from the law of the data, which is public here, and from the budget.

One rule sets how far to go. A user's turns with steps t spend the time T = (number of turns) t. With c the curvature of
the mean loss and v^2 T the variance of the noise in a unit of time, all coordinates together, the expected error is

    |w|^2 exp(-2 c T) + v^2 T (1 - exp(-2 c T)) / (2 c)

(consenso.theory, for short steps), and T is where this is least. The prox of one record with step t goes 1 / (1 + t
|row|^2) of the way of a gradient step: for ADMM the exponent has the shorter time S = T / (1 + T |row|^2 / turns), and
the second term T^2 / S in place of T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.stateless_walk import StatelessWalk
from consenso.datasets import Dataset
from consenso.engine.run import run
from consenso.losses import Huber
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Eavesdropper, Observer, Peer, Public
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1
from consenso.schedules import Everyone, PoissonSubset, RandomWalk, Schedule
from consenso.shards import Shards
from consenso.trust import Trust
from experiments.cards import checked
from experiments.paper000.published import (
    DELTA,
    FEATURES,
    LABEL_NOISE,
    SUPPORT,
    Law,
    cross_validated,
    data,
    objective,
)

LONGEST = 10.0  # time in units of 1 / curvature: exp(-10) is left of the start
RATE = 0.1  # of the users, as in the paper
COEFFICIENTS = math.sqrt(SUPPORT / 3)  # expected length of a model whose 8 coefficients are uniform on [0, 1]
# Huber's threshold in standard deviations of the labels' signal, chosen on draws of the law with other seeds.
SLOPE = 0.3
SHORT = 0.1  # step of the walk, times |row|^2
UNCLIPPED = math.erf(SLOPE / math.sqrt(2))  # share of residuals below it at the start, which alone have curvature


# Not the paper's algorithm, which keeps the noise in the states: the variant with exact states and noise on the sum.
ON_SUMS = "ADMM, noise on the sum of duals"


@dataclass(frozen=True, kw_only=True)
class Way:
    """An algorithm in a setting, and the observer against whom it is calibrated."""

    setting: str
    method: str
    build: Callable[[float], Any]  # of the step
    release: str
    observer: Observer
    trust: Trust
    schedule: Schedule


WAYS = {
    "central-admm": Way(
        setting="centralized",
        method=ON_SUMS,
        build=lambda step: DualConsensusADMM(level="record", step=step),
        release="dual",
        observer=Public(),
        trust="curator",
        schedule=Everyone(),
    ),
    "central-sgd": Way(
        setting="centralized",
        method="proximal DP-SGD",
        build=lambda step: DPSGD(step=step),
        release="gradient",
        observer=Public(),
        trust="curator",
        schedule=Everyone(),
    ),
    "federated-admm": Way(
        setting="federated",
        method=ON_SUMS,
        build=lambda step: DualConsensusADMM(level="party", step=step),
        release="dual",
        observer=Public(),
        trust="secure-sum",
        schedule=PoissonSubset(RATE),
    ),
    "federated-sgd": Way(
        setting="federated",
        method="proximal DP-SGD",
        build=lambda step: DPSGD(step=step),
        release="gradient",
        observer=Public(),
        trust="secure-sum",
        schedule=PoissonSubset(RATE),
    ),
    "federated-local-admm": Way(
        setting="federated, every message seen",
        method="private ADMM",
        build=lambda step: ConsensusADMM(step=step),
        release="residual",
        observer=Eavesdropper(),
        trust="local",
        schedule=Everyone(),  # nothing is hidden by sampling from whoever sees every message
    ),
    "walk": Way(
        setting="decentralized",
        method="private ADMM, stateless walk",
        build=lambda step: StatelessWalk(step=step),
        release="residual",
        observer=Peer(party=0),
        trust="local",
        schedule=RandomWalk(),
    ),
    "walk-local-admm": Way(
        setting="decentralized, every message seen",
        method="private ADMM",
        build=lambda step: ConsensusADMM(step=step),
        release="residual",
        observer=Eavesdropper(),
        trust="local",
        schedule=RandomWalk(),
    ),
}


def problem(law: Law, users: int) -> Problem:
    """The problem from public facts only: the law's row norm, signal and noise."""
    row_bound = math.sqrt(FEATURES) if law == "code" else 1.0
    signal = COEFFICIENTS * row_bound / math.sqrt(FEATURES)
    return Problem(
        loss=Huber(threshold=max(SLOPE * signal, LABEL_NOISE)),
        regularizer=L1(strength=LABEL_NOISE * row_bound * math.sqrt(2 * math.log(FEATURES) / (FEATURES * users))),
        features=FEATURES,
        sizes=np.ones(users, dtype=np.int64),
        row_bound=row_bound,
        target_bound=4 * signal,
        unit="party",
        adjacency="replace-one",
    )


def planned(name: str, law: Law, epsilon: float, users: int, rounds: int) -> Plan:
    """The plan of a way: noise from the budget, then the step from the noise. A round of a walk is one visit."""
    way, asked = WAYS[name], problem(law, users)
    common: dict[str, Any] = {"rounds": rounds, "schedule": way.schedule, "trust": way.trust, "sampler": Seeded(0)}
    target = EpsilonDelta(epsilon=epsilon, delta=DELTA)
    # The multiplier does not depend on the step, with which bounds grow in proportion.
    first = plan(asked, way.build(1.0), target=target, observer=way.observer, **common)
    noise = first.noise_for(way.release)
    return plan(asked, at_time(way, best_time(way, first), rounds, asked), noise=noise, **common)


def best_time(way: Way, first: Plan) -> float:
    """The time of the least expected error; the noise in a unit of time is that of all turns with steps 1 / turns."""
    facts, rounds = first.facts, first.rounds
    contributors = _contributors(way, facts.parties)
    noise = facts.noise[way.release]
    # Noise on a sum is divided by how many contribute; noise of each of them averages out over them.
    heard = noise / contributors if _is_sum(way) else noise / math.sqrt(contributors)
    variance = heard**2 * facts.dim / rounds
    curvature = UNCLIPPED * facts.problem.row_bound**2 / FEATURES
    times = np.geomspace(1e-6, 1.0, 2001) * LONGEST / curvature
    shorter = times / (1 + times * _damping(way, first))
    left = np.exp(-2 * curvature * shorter)
    errors = COEFFICIENTS**2 * left + variance * times**2 / shorter * (1 - left) / (2 * curvature)
    return float(times[np.argmin(errors)])


def at_time(way: Way, time: float, rounds: int, asked: Problem) -> Any:
    """The algorithm whose turns spend this time."""
    if isinstance(way.build(1.0), StatelessWalk):
        step = SHORT / asked.row_bound**2  # its bias grows with the step
        return StatelessWalk(step=step, relaxation=time * asked.parties / (2 * rounds * step))
    return way.build(time / _turns(way, rounds, asked.parties))


def _turns(way: Way, rounds: int, users: int) -> float:
    """How many steps a run makes: rounds for a sum that is divided by its contributors, else the turns of a user."""
    return rounds if _is_sum(way) else rounds * _contributors(way, users) / users


def _damping(way: Way, first: Plan) -> float:
    """By how much the prox of one record shortens a step, for a unit of time."""
    squared = first.problem.row_bound**2
    match first.algorithm:
        case DPSGD():
            return 0.0
        case StatelessWalk():
            return 0.0  # its step is short by itself
    return squared / _turns(way, first.rounds, first.parties)


def _contributors(way: Way, users: int) -> float:
    """How many users a round is expected to have."""
    match way.schedule:
        case PoissonSubset(rate=rate):
            return rate * users
        case RandomWalk():
            return 1.0
    return float(users)


def _is_sum(way: Way) -> bool:
    return way.release != "residual"


def train(*, way: str, law: Law, epsilon: float, seeds: int, rounds: int) -> dict[str, Any]:
    """Runs of a way with several seeds: test objectives by the paper's measure, parameters and the card."""
    drawn, (kappa, _) = data(law), cross_validated(law)
    made = planned(way, law, epsilon, len(drawn.y), rounds)
    noise = made.noise_for(WAYS[way].release)
    return {
        "objective": [score(drawn, kappa, reseeded(made, seed)) for seed in range(seeds)],
        "step": made.algorithm.step,
        "multiplier": noise.multiplier if isinstance(noise, GaussianNoise) else None,
        **checked(made.card(DELTA)),
    }


def score(drawn: Dataset, kappa: float, made: Plan) -> float:
    """The test objective of one run's released model. Kappa is the paper's, as part of the measure."""
    shards = Shards.build(made.problem, drawn.X, drawn.y, np.arange(len(drawn.y) + 1))
    return objective(drawn.X_test, drawn.y_test, kappa, run(made, shards).model)


def reseeded(made: Plan, seed: int) -> Plan:
    """The same plan with noise from another seed: what it promises does not change."""
    return replace(made, sampler=Seeded(seed))
