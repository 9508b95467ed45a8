"""Corrected runs on the same nodes: exact composition, the denominator that is really used, one record replaced."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

from consenso import theory
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.ipadmm import IPADMM, RootGrowth
from consenso.engine.run import run
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import NoNoise
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.topology import Topology
from experiments import adult_peers
from experiments.cards import checked
from experiments.paper002.published import DELTA, GROWTH, NODES, PENALTY, ROUNDS

# The paper's names for the methods that are compared, and the entries of `adult_peers` behind them.
BASELINES = {
    "IPADMM, free options": "IPADMM",
    "DP-ADMM": "GraphDPADMM",
    "PVP": "PrimalPerturbation",
    "DVP": "DualPerturbation, short",
    "R-ADMM": "RecycledADMM, short",
}
SERVER_STEP, SERVER_ROUNDS = 16.0, 100


@cache
def _data() -> Any:
    return adult_peers.data()


def inner_steps(*, epsilon: float, inner: int, seed: int, carded: bool) -> dict[str, Any]:
    """The paper's form with its own parameters and the right denominator."""
    problem = _data()[0]
    algorithm = IPADMM(penalty=PENALTY, proximity=RootGrowth(first=GROWTH), inner_steps=inner)
    made = plan(
        problem,
        algorithm,
        rounds=ROUNDS,
        target=EpsilonDelta(epsilon=epsilon, delta=DELTA),
        observer=Eavesdropper(),
        topology=Topology.complete(NODES),
        sampler=Seeded(seed),
    )
    return _measured(made, carded=carded)


def baseline(*, method: str, epsilon: float, seed: int, carded: bool) -> dict[str, Any]:
    """A method with the rules of `adult_peers`, which use public facts; infinite epsilon is ADMM without noise."""
    problem = _data()[0]
    graph = Topology.complete(NODES)
    if epsilon == math.inf:
        entry = adult_peers.reference(problem, graph)
        made = plan(problem, entry.algorithm, rounds=entry.rounds, noise=NoNoise(), topology=graph)
        return _measured(made, carded=False)
    target = EpsilonDelta(epsilon=epsilon, delta=DELTA)
    if method == "DP gradient descent, server":
        made = plan(
            problem,
            DPSGD(step=SERVER_STEP, averaging=0.5),
            rounds=SERVER_ROUNDS,
            target=target,
            observer=Eavesdropper(),
            trust="local",
        )
    else:
        rho = theory.budget(epsilon, DELTA)
        offered = [*adult_peers.recommended(problem, graph, rho), *adult_peers.exact(problem, graph, rho, epsilon)]
        (entry,) = (each for each in offered if each.label == BASELINES[method])
        made = adult_peers.calibrated(problem, entry, graph, target)
    return _measured(_seeded(made, seed), carded=carded)


def _seeded(made: Plan, seed: int) -> Plan:
    return replace(made, sampler=Seeded(seed), sampler_chosen=True)


def _measured(made: Plan, *, carded: bool) -> dict[str, Any]:
    _, shards, rows, labels = _data()
    risk, accuracy = adult_peers.measure(rows, labels, run(made, shards).model)
    private = not any(isinstance(noise, NoNoise) for noise in made.spec.policy.noise.values())
    card = {"card": checked(made.card(DELTA))} if carded else {}
    spent = made.guarantee(Eavesdropper(), DELTA).epsilon(DELTA) if private else math.inf
    return {"risk": risk, "accuracy": accuracy, "spent": spent, "rounds": made.spec.rounds, **card}
