"""Adult on a graph of 100 silos: what peer algorithms reach when every message is seen.

Adult as Huang and Gong prepare it (45,222 records, 104 features), 100 nodes of equal size, logistic loss, L2 1e-4, one
record replaced, delta 1e-5, every message seen. The risk is the mean logistic loss over all records, without the L2
term; the released model is the mean over the nodes.

    CONSENSO_DATA=folder python -m experiments.adult_peers [--seeds 3] [--graphs complete regular ring]

Penalty, proximity and number of rounds follow from public numbers and the budget by `pace` and `recommended`. Two
constants in them, REACH and CLIP, were chosen by looking at Adult, so on Adult they are not untuned. Elsewhere, in a
simulation of the mean of the nodes with one seed (MNIST even or odd, with steps of 16; California housing above the
median or not; a synthetic logistic model; epsilon 0.5, 1 and 3): of REACH 3.5, 7, 14 and 28 the best was 28, the end of
the grid, or level with it on the first two, and 7 or 14 on the third; at REACH 14, CLIP 0.7 beat no clip in all nine
cases.

Why these rules. On a regular graph the duals add up to zero, so the mean of the nodes takes gradient steps of length
1/D with noise of standard deviation s sqrt(rounds) / D, where s = bound / (sqrt(nodes) sqrt(2 rho)) is what the noise
of the mean gradient would be if the whole budget went into one round. After a time rounds/D this noise is a random walk
of length s sqrt(dim) rounds/D, whatever the number of rounds: only the time matters. Directions of little curvature are
still being learned while the walk grows, so `pace` stops when it is REACH long, in units of 1/row_bound, the scale at
which margins are of order one. The step is 1/smoothness, which public facts promise to descend.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consenso import theory
from consenso.algorithms.ipadmm import IPADMM
from consenso.algorithms.networked import NetworkedADMM
from consenso.arrays import Array
from consenso.datasets import load_adult
from consenso.facts import Facts
from consenso.losses import Logistic
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.runtime.plan import plan
from consenso.runtime.run import run
from consenso.shards import Shards
from consenso.topology import Topology

NODES, DELTA, EPSILONS = 100, 1e-5, (0.5, 1.0, 3.0)
REACH = 14.0  # length of the noise walk at which to stop, in units of 1/row_bound
CLIP = 0.7  # of a record's Lipschitz constant: few records of a useful model have steeper losses
FEWEST, MOST = 10, 1000
# Distributed noisy gradient descent with a server, 100 rounds of step 16, averaged; same trust, same adjacency.
WITH_A_SERVER = {0.5: 0.539, 1.0: 0.419, 3.0: 0.379}


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How far and how often to step."""

    step: float
    rounds: int


def pace(problem: Problem, algorithm: Any, degrees: Any, rho: float, *, reach: float = REACH) -> Pace:
    """Step and number of rounds from public facts and the budget, for releases whose bound does not depend on them."""
    (release,) = algorithm.releases(Facts.everyone(problem, rounds=1, degrees=degrees))
    bounds = np.broadcast_to(release.bounds.at(problem.unit, problem.adjacency), (problem.parties,))
    std = math.sqrt(float(np.mean(bounds**2)) / problem.parties / (2 * rho))
    step = 1 / float(np.mean(problem.smoothness))
    longest = reach / (problem.row_bound * std * math.sqrt(problem.dim))
    return Pace(step=step, rounds=int(np.clip(math.ceil(longest / step), FEWEST, MOST)))


def recommended(problem: Problem, topology: Topology, rho: float) -> Iterator[tuple[str, Any, int]]:
    """Peer algorithms with parameters from public facts: a name, the algorithm, the number of rounds."""
    clip = CLIP * problem.loss.lipschitz(problem.row_bound)
    options = {"clip": clip, "at_average": True, "averaging": 0.5}
    found = pace(problem, IPADMM(clip=clip), topology.degrees, rho)
    degree = float(topology.degrees.mean())
    penalty = 1 / (2 * degree * found.step)
    # Half of the denominator from the penalty and half from the step, since a step cannot be infinite.
    yield "IPADMM", IPADMM(penalty=penalty, proximity=0.0, **options), found.rounds
    yield (
        "NetworkedADMM",
        NetworkedADMM(penalty=penalty / 2, step=2 * found.step, proximal=True, **options),
        found.rounds,
    )
    yield "IPADMM, options off", IPADMM(penalty=penalty, proximity=0.0), found.rounds


def graphs() -> dict[str, Topology]:
    """The graphs that are compared."""
    return {
        "complete": Topology.complete(NODES),
        "regular": Topology.random_regular(NODES, 6, seed=1),
        "ring": Topology.ring(NODES),
    }


def data() -> tuple[Problem, Shards, Array, Array]:
    """The problem, its shards, rows and labels; records are shuffled before they are dealt to the nodes."""
    adult = load_adult(preprocessing="paper", split=False)
    order = np.random.default_rng(0).permutation(len(adult.y))
    rows, labels = adult.X[order], adult.y[order]
    sizes = np.full(NODES, len(labels) // NODES)
    sizes[: len(labels) % NODES] += 1
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=1e-4), features=rows.shape[1], sizes=sizes, row_bound=1.0
    )
    return problem, Shards.build(problem, rows, labels, np.concatenate([[0], np.cumsum(sizes)])), rows, labels


def measure(rows: Array, labels: Array, model: Array) -> tuple[float, float]:
    """Risk and accuracy of a model."""
    margins = labels * (rows @ model)
    return float(np.logaddexp(0.0, -margins).mean()), float(np.mean(margins > 0))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--graphs", nargs="+", default=list(graphs()), choices=list(graphs()))
    arguments = parser.parse_args()
    problem, shards, rows, labels = data()
    print("graph     algorithm            epsilon rounds    risk  spread accuracy  server")
    for name in arguments.graphs:
        topology = graphs()[name]
        for epsilon in EPSILONS:
            rho = theory.budget(epsilon, DELTA)
            for label, algorithm, rounds in recommended(problem, topology, rho):
                target = EpsilonDelta(epsilon=epsilon, delta=DELTA)
                made = plan(
                    problem, algorithm, rounds=rounds, target=target, observer=Eavesdropper(), topology=topology
                )
                started, found = time.perf_counter(), []
                for seed in range(arguments.seeds):
                    doorway = replace(made.setting.doorway, sampler=Seeded(seed))
                    seeded = replace(made, setting=replace(made.setting, doorway=doorway))
                    found.append(measure(rows, labels, run(seeded, shards).model))
                (risk, accuracy), spread = np.mean(found, axis=0), np.std(found, axis=0)[0]
                print(
                    f"{name:9} {label:20} {epsilon:7.1f} {rounds:6d} {risk:7.4f} {spread:7.4f} {accuracy:8.4f} "
                    f"{WITH_A_SERVER[epsilon]:7.3f}   {time.perf_counter() - started:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
