"""`python -m benchmarks.utility.graphs`: Adult over 100 peers, by graph and by how the peers learn without a server.

Masked sums, plain trees and "gossip" run the algorithm that `algorithm = "auto"` chooses; IPADMM has the steps of the
solver "gossip", and DistributedSubgradient is distributed DP gradient descent with the same steps and rounds. One
record replaced, delta 1e-5, L2 2e-6; every message is seen. Risk is the mean logistic loss over all records, without
the L2 term. "descent" is distributed DP gradient descent with a server, tuned on these very records: the best of a
grid of steps, rounds and clips, which costs it nothing here.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from experiments.adult_peers import data, measure

from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.ipadmm import IPADMM
from consenso.algorithms.subgradient import DistributedSubgradient
from consenso.arrays import Array
from consenso.engine.run import run
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.solvers.choose import choose
from consenso.solvers.request import Request
from consenso.topology import Topology
from consenso.trust import Trust

NODES, DELTA, EPSILONS = 100, 1e-5, (1.0, 3.0)
GRAPHS = {
    "ring": Topology.ring(NODES),
    "grid": Topology.grid(10, 10),
    "4-regular": Topology.random_regular(NODES, 4, seed=0),
    "complete": Topology.complete(NODES),
}
METHODS: dict[str, Trust] = {
    "masked sum": "masked-sum",
    "plain tree": "tree",
    "gossip": "local",
    "IPADMM": "local",
    "DistributedSubgradient": "local",
}

GRID = [(step, rounds, clip) for step in (8.0, 16.0, 32.0, 64.0) for rounds in (50, 100, 200) for clip in (None, 0.3)]


def main() -> None:
    """Measure every method on every graph, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", action="append", choices=list(GRAPHS), help="all if none is named")
    parser.add_argument("--method", action="append", choices=list(METHODS), help="all if none is named")
    parser.add_argument("--out", type=Path, default=Path("results/utility"))
    asked = parser.parse_args()
    problem, shards, rows, labels = read_adult()
    lines = ["| method | graph | algorithm | rounds | " + " | ".join(f"epsilon {each:g}" for each in EPSILONS) + " |"]
    lines.append("| --- | --- | --- | --- |" + " --- |" * len(EPSILONS))
    if asked.method is None:
        lines.append(descend(problem, shards, rows, labels))
    for method in asked.method or METHODS:
        for graph in asked.graph or GRAPHS:
            cells, names, rounds = [], set[str](), []
            for epsilon in EPSILONS:
                start = time.perf_counter()
                made = plan_for(problem, method, GRAPHS[graph], epsilon)
                result = run(made, shards)
                risk, accuracy = measure(rows, labels, result.model)
                cells.append(f"{risk:.4f} / {accuracy:.4f}")
                names.add(type(made.algorithm).__name__)
                rounds.append(str(result.rounds))
                print(f"{method}, {graph}, epsilon {epsilon:g}: {cells[-1]}, {time.perf_counter() - start:.0f} s")
            shown = ", ".join(sorted(names))
            lines.append(f"| {method} | {graph} | {shown} | {', '.join(rounds)} | " + " | ".join(cells) + " |")
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "graphs.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def descend(problem: Problem, shards: Shards, rows: Array, labels: Array) -> str:
    """The line of tuned distributed descent, everybody adding noise to what it sends."""
    cells, taken = [], []
    for epsilon in EPSILONS:
        tried = []
        for step, rounds, clip in GRID:
            made = plan(
                problem,
                DPSGD(step=step, clip=clip, averaging=0.5),
                rounds=rounds,
                target=EpsilonDelta(epsilon=epsilon, delta=DELTA),
                observer=Eavesdropper(),
                trust="local",
                sampler=Seeded(0),
            )
            tried.append((*measure(rows, labels, run(made, shards).model), rounds))
        risk, accuracy, rounds = min(tried)
        cells.append(f"{risk:.4f} / {accuracy:.4f}")
        taken.append(str(rounds))
        print(f"descent, the best of {len(GRID)}, epsilon {epsilon:g}: {cells[-1]}")
    return f"| descent, the best of {len(GRID)} | a server | DPSGD | {', '.join(taken)} | " + " | ".join(cells) + " |"


def plan_for(problem: Problem, method: str, topology: Topology, epsilon: float) -> Plan:
    """The plan of a method at a budget, for whoever sees every message."""
    target, trust = EpsilonDelta(epsilon=epsilon, delta=DELTA), METHODS[method]
    solver = "gossip" if method in ("IPADMM", "DistributedSubgradient") else "auto"
    choice = choose(Request(problem=problem, target=target, solver=solver, trust=trust, topology=topology))
    return plan(
        problem,
        choice.algorithm if method != "DistributedSubgradient" else _same_steps(choice.algorithm, topology),
        rounds=choice.rounds,
        target=target,
        observer=Eavesdropper(),
        trust=trust,
        topology=topology,
        sampler=Seeded(0),
        colluders=1 if trust == "masked-sum" else 0,
    )


def _same_steps(chosen: IPADMM, topology: Topology) -> DistributedSubgradient:
    """Distributed DP gradient descent with the steps, the clip and the averages of an IPADMM."""
    step = 1 / (2 * float(topology.degrees.mean()) * chosen.penalty)
    options: dict[str, Any] = {name: getattr(chosen, name) for name in ("clip", "at_average", "averaging")}
    return DistributedSubgradient(step=step, proximal=True, **options)


def read_adult() -> tuple[Problem, Shards, Array, Array]:
    """The nodes and records of experiments/adult_peers.py, with less of a penalty."""
    problem, _, rows, labels = data()
    problem = replace(problem, regularizer=L2(strength=2e-6))
    ends = np.concatenate([[0], np.cumsum(problem.sizes)])
    return problem, Shards.build(problem, rows, labels, ends), rows, labels


if __name__ == "__main__":
    main()
