"""Runs with exact composition on the same nodes, every method in two forms, one record replaced.

*Its own*: as its paper has it, with the penalty that Huang and Gong use for all of them, and nothing of ours. *Free*:
with everything that costs no privacy and that the method can take: a horizon from the budget, shortened gradients, an
average of late iterates, gradients at the average of what was heard (`experiments.adult_peers`, whose constants were
set by looking at Adult).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np

from consenso import theory
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_perturbation import DualPerturbation
from consenso.algorithms.graph_dp_admm import GraphDPADMM
from consenso.algorithms.ipadmm import IPADMM, RootGrowth
from consenso.algorithms.primal_perturbation import PrimalPerturbation
from consenso.algorithms.recycled_admm import RecycledADMM
from consenso.engine.in_process import InProcessRun
from consenso.engine.run import run
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GammaNormNoise, Noise
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.solvers.exact import solve_exact
from consenso.topology import Topology
from experiments import adult_peers
from experiments.adult_peers import COVER, EXACT, PURE, TOLERANCE, Entry
from experiments.cards import checked
from experiments.paper002.published import DELTA, GROWTH, NODES, PENALTY, ROUNDS, STRENGTH

Form = Literal["own", "free"]
SERVER = "DP gradient descent, server"
SERVER_STEP, SERVER_ROUNDS = 16.0, 100
# The entries of `adult_peers` behind the paper's names, with their free options.
FREE = {
    "IPADMM": "IPADMM",
    "DP-ADMM": "GraphDPADMM",
    "PVP": "PrimalPerturbation",
    "DVP": "DualPerturbation, short",
    "R-ADMM": "RecycledADMM, short",
}
INNER = 10  # of IPADMM's own form, as in Figure 1


@cache
def _data() -> Any:
    return adult_peers.data(STRENGTH)


def own(method: str, inner: int = INNER) -> Entry:
    """A method as its paper has it, with this paper's penalty and growth of the proximity."""

    def pure(multiplier: float) -> Noise:
        return GammaNormNoise(multiplier=multiplier)

    common: dict[str, Any] = {"penalty": PENALTY, "tolerance": TOLERANCE}
    algorithms = {
        "IPADMM": IPADMM(penalty=PENALTY, proximity=RootGrowth(first=GROWTH), inner_steps=inner),
        "DP-ADMM": GraphDPADMM(penalty=PENALTY, proximity=GROWTH, growth=0.5),
        "PVP": PrimalPerturbation(**common),
        "DVP": DualPerturbation(**common, cover=COVER),
        "R-ADMM": RecycledADMM(**common, proximity=GROWTH, cover=COVER),
    }
    if method in ("DVP", "R-ADMM"):
        return Entry(method, algorithms[method], PURE, pure)
    return Entry(method, algorithms[method], EXACT if method == "PVP" else ROUNDS)


def inner_steps(*, epsilon: float, inner: int, seed: int, carded: bool) -> dict[str, Any]:
    """IPADMM in its own form at a total epsilon."""
    return _measured(_planned(own("IPADMM", inner), epsilon), seed, carded=carded)


def baseline(*, method: str, form: Form, epsilon: float, seed: int, carded: bool) -> dict[str, Any]:
    """A method in one of its two forms, at a total epsilon."""
    problem, graph = _data()[0], Topology.complete(NODES)
    if method == SERVER:
        target = EpsilonDelta(epsilon=epsilon, delta=DELTA)
        algorithm = DPSGD(step=SERVER_STEP, averaging=0.5)
        made = plan(problem, algorithm, rounds=SERVER_ROUNDS, target=target, observer=Eavesdropper(), trust="local")
        return _measured(made, seed, carded=carded)
    if form == "own":
        return _measured(_planned(own(method), epsilon), seed, carded=carded)
    rho = theory.budget(epsilon, DELTA)
    offered = [*adult_peers.recommended(problem, graph, rho), *adult_peers.exact(problem, graph, rho, epsilon)]
    (entry,) = (each for each in offered if each.label == FREE[method])
    return _measured(_planned(entry, epsilon), seed, carded=carded)


def exact() -> dict[str, Any]:
    """The minimiser without privacy, to its certified optimum."""
    problem, shards, rows, labels = _data()
    found = solve_exact(problem, shards)
    risk, accuracy = adult_peers.measure(rows, labels, found.model)
    return {"risk": risk, "accuracy": accuracy, "gap": found.gap}


def _planned(entry: Entry, epsilon: float) -> Plan:
    target = EpsilonDelta(epsilon=epsilon, delta=DELTA)
    return adult_peers.calibrated(_data()[0], entry, Topology.complete(NODES), target)


def _measured(made: Plan, seed: int, *, carded: bool) -> dict[str, Any]:
    """Risk of the mean of the nodes' models, by round where there is no server."""
    _, shards, rows, labels = _data()
    made = replace(made, sampler=Seeded(seed), sampler_chosen=True)
    risks: list[float] = []
    if isinstance(made.algorithm, DPSGD):
        model = run(made, shards).model
    else:
        at = InProcessRun(made, shards)
        model = np.zeros(made.problem.dim)
        for done in at.rounds():
            model = made.algorithm.models(made.facts.at(done - 1), at.state).mean(axis=0)
            risks.append(adult_peers.measure(rows, labels, model)[0])
    risk, accuracy = adult_peers.measure(rows, labels, model)
    card = {"card": checked(made.card(DELTA))} if carded else {}
    spent = made.guarantee(Eavesdropper(), DELTA).epsilon(DELTA)
    return {"risk": risk, "risks": risks, "accuracy": accuracy, "spent": spent, "rounds": made.rounds, **card}
