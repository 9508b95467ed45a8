"""Rules of PreconditionedGossip: peers on a graph that share a second moment, and step in its metric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.solvers import forecast, gossip
from consenso.solvers.preconditioned import MOST_FEATURES
from consenso.solvers.request import Request
from consenso.topology import Topology

NAME = "preconditioned-gossip"
PLACE = 9
GOSSIPS = True
# Noise of a score at which so many steps are enough: iterates wander on, and noise that is halved is worth twice the
# steps.
STEPS, FEWEST, MOST = 30, 20, 120
# A graph that mixes slowly is not waited for: the second moment is then that of a neighbourhood.
MOST_MIXING = 100
# Rounds of its neighbourhood that a node has heard when a step is taken, before the next one moves on.
HEARD = 4


def refusal(request: Request) -> str | None:
    """Gossip with a second moment that a message can carry."""
    if request.problem.features > MOST_FEATURES:
        return f"the second moment of more than {MOST_FEATURES} features is too large to be passed around"
    return gossip.refusal(request)


def excess(request: Request) -> float:
    """That of steps in whitened directions, with the noise that is left in a node's step by what it has heard."""
    assert request.topology is not None
    return forecast.whitened_excess(request) * request.problem.parties / _count_averaged(request.topology, HEARD)


def recipe(request: Request) -> tuple[Any, int]:
    """As many steps as the noise is worth, after as much mixing as the graph needs."""
    # Only the chosen solver's is needed.
    from consenso.algorithms.preconditioned_gossip import PreconditionedGossip, rounds_to_mix

    topology = request.topology
    assert topology is not None
    mixing = min(rounds_to_mix(topology), MOST_MIXING)
    algorithm = PreconditionedGossip(
        steps=int(np.clip(math.ceil(STEPS / forecast.score_noise(request)), FEWEST, MOST)),
        mixing=mixing,
        averages=_count_averaged(topology, mixing + 1),
    )
    return algorithm, algorithm.rounds


def _count_averaged(topology: Topology, rounds: int) -> float:
    """How many nodes' noises so many rounds of gossip average, over the nodes"""
    weights = np.linalg.matrix_power(topology.metropolis.toarray(), rounds)
    return 1 / float(np.mean(np.sum(weights**2, axis=1)))
