"""Adult on a graph of 100 silos: what peer algorithms reach when every message is seen.

Adult as Huang and Gong prepare it (45,222 records, 104 features), 100 nodes of equal size, logistic loss, L2 1e-4, one
record replaced, delta 1e-5, every message seen. The risk is the mean logistic loss over all records, without the L2
term; the released model is the mean over the nodes.

    CONSENSO_DATA=folder python -m experiments.adult_peers --out DIR [--seeds 1] [--minutes 12]
                                                           [--graphs complete regular ring]

writes DIR/adult_peers.csv, with all parameters, and DIR/adult_peers.md, and brings both up to date after every cell. A
cell that `--minutes` leaves no time to begin says "not run".

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

Exact local minimisation is stable with any step, so `exact` fixes the number of rounds and takes the step that spends
the same time. The gamma-norm noise of `DualPerturbation` and `RecycledADMM` is purely private: n noisy rounds multiply
its scale by about n, so that the walk is longer by sqrt(n) for the same time, and few rounds are used. Their models are
last iterates, without an average of late ones, hence a second row of each with a quarter of the reach (SHORT). SHORT
and EXACT, too, were set after trial runs on Adult.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from consenso import theory
from consenso.algorithms.distributed_admm import DistributedADMM
from consenso.algorithms.dual_perturbation import DualPerturbation
from consenso.algorithms.graph_dp_admm import GraphDPADMM
from consenso.algorithms.ipadmm import IPADMM
from consenso.algorithms.networked import NetworkedADMM
from consenso.algorithms.padmm import PADMM
from consenso.algorithms.primal_perturbation import PrimalPerturbation
from consenso.algorithms.recycled_admm import RecycledADMM, noisy_rounds
from consenso.algorithms.subgradient import DistributedSubgradient
from consenso.arrays import Array
from consenso.datasets import load_adult
from consenso.engine.run import run
from consenso.losses import Logistic
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GammaNormNoise, GaussianNoise, Geometric, Noise, NoNoise
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.topology import Topology

NODES, DELTA, EPSILONS = 100, 1e-5, (0.5, 1.0, 3.0)
REACH = 14.0  # length of the noise walk at which to stop, in units of 1/row_bound
CLIP = 0.7  # of a record's Lipschitz constant: few records of a useful model have steeper losses
FEWEST, MOST = 10, 1000
EXACT, PURE = 40, 6  # rounds with exact local minimisation, under Gaussian and under gamma-norm noise
SHORT = REACH / 4
# Exact solvers are charged for what they leave over: far below the noise here, and cheaper than the default.
TOLERANCE, COVER = 1e-6, 1e-4


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How far and how often to step."""

    step: float
    rounds: int


@dataclass(frozen=True)
class Entry:
    """An algorithm of the table; without `noise`, constant Gaussian noise is calibrated."""

    label: str
    algorithm: Any
    rounds: int
    noise: Callable[[float], Noise] | None = None  # of a multiplier


def longest(problem: Problem, algorithm: Any, degrees: Any, rho: float, *, reach: float = REACH) -> float:
    """The time, rounds times step, after which Gaussian noise within the budget has walked the reach."""
    (release,) = algorithm.releases(PublicFacts.everyone(problem, rounds=1, degrees=degrees))
    bounds = np.broadcast_to(release.bounds.at(problem.unit, problem.adjacency), (problem.parties,))
    std = math.sqrt(float(np.mean(bounds**2)) / problem.parties / (2 * rho))
    return reach / (problem.row_bound * std * math.sqrt(problem.dim))


def pace(problem: Problem, algorithm: Any, degrees: Any, rho: float, *, reach: float = REACH) -> Pace:
    """Step and number of rounds from public facts and the budget, for releases whose bound does not depend on them."""
    step = 1 / float(np.mean(problem.smoothness))
    time_ = longest(problem, algorithm, degrees, rho, reach=reach)
    return Pace(step=step, rounds=int(np.clip(math.ceil(time_ / step), FEWEST, MOST)))


def recommended(problem: Problem, topology: Topology, rho: float) -> Iterator[Entry]:
    """First-order peer algorithms with parameters from public facts."""
    clip = CLIP * problem.loss.lipschitz(problem.row_bound)
    options: dict[str, Any] = {"clip": clip, "at_average": True, "averaging": 0.5}
    found = pace(problem, IPADMM(clip=clip), topology.degrees, rho)
    degree, rounds = float(topology.degrees.mean()), found.rounds
    penalty = 1 / (2 * degree * found.step)
    yield Entry("IPADMM", IPADMM(penalty=penalty, proximity=0.0, **options), rounds)
    yield Entry("IPADMM, options off", IPADMM(penalty=penalty, proximity=0.0), rounds)
    # Half of the denominator from the penalty and half from the step, since a step cannot be infinite.
    networked = NetworkedADMM(penalty=penalty / 2, step=2 * found.step, proximal=True, **options)
    yield Entry("NetworkedADMM", networked, rounds)
    yield Entry("DistributedSubgradient", DistributedSubgradient(step=found.step, proximal=True, **options), rounds)
    # The same halves in the last round; the proximity grows as in the paper, so that earlier steps are up to twice as
    # long.
    proximity = 1 / (2 * found.step * math.sqrt(rounds))
    graph = GraphDPADMM(penalty=penalty / 2, proximity=proximity, growth=0.5, clip=clip, averaging=0.5)
    yield Entry("GraphDPADMM", graph, rounds)


def exact(problem: Problem, topology: Topology, rho: float, epsilon: float) -> Iterator[Entry]:
    """Peer algorithms that minimise locally, with a number of rounds that is affordable."""
    degree = float(topology.degrees.mean())
    # A minimiser moves by the gradient's bound times the step, so this is the time of an unclipped gradient.
    step = longest(problem, IPADMM(), topology.degrees, rho) / EXACT
    penalty = 1 / (2 * degree * step)
    yield Entry("PrimalPerturbation", PrimalPerturbation(penalty=penalty, tolerance=TOLERANCE), EXACT)

    def falling(multiplier: float) -> Noise:
        # The noise halves over the run.
        return GaussianNoise(multiplier=Geometric(first=multiplier, ratio=0.5 ** (1 / EXACT)))

    yield Entry("PADMM", PADMM(penalty=penalty, averaging=0.5, tolerance=TOLERANCE), EXACT, falling)
    for suffix, reach in (("", REACH), (", short", SHORT)):
        for name, noisy in (("DualPerturbation", PURE), ("RecycledADMM", len(noisy_rounds(PURE)))):
            gap = float(np.mean(2 * problem.record_lipschitz))
            # Epsilon is shared evenly; the length of the noise has a Gamma(dim) law.
            length = gap * noisy / epsilon * math.sqrt(problem.dim * (problem.dim + 1) / problem.parties)
            step = reach / (problem.row_bound * length * math.sqrt(noisy))
            penalty = 1 / (2 * degree * step)
            algorithm: Any = DualPerturbation(penalty=penalty, tolerance=TOLERANCE, cover=COVER)
            if name == "RecycledADMM":
                algorithm = RecycledADMM(penalty=penalty, proximity=1 / step, tolerance=TOLERANCE, cover=COVER)
            yield Entry(name + suffix, algorithm, PURE, lambda multiplier: GammaNormNoise(multiplier=multiplier))


def reference(problem: Problem, topology: Topology) -> Entry:
    """The method without privacy, with the penalty of the largest budget."""
    rho = theory.budget(max(EPSILONS), DELTA)
    (primal,) = (e for e in exact(problem, topology, rho, max(EPSILONS)) if e.label == "PrimalPerturbation")
    return Entry("DistributedADMM, not private", DistributedADMM(penalty=primal.algorithm.penalty), EXACT)


def calibrated(problem: Problem, entry: Entry, topology: Topology, target: EpsilonDelta) -> Plan:
    """The plan with the least noise of the entry's kind that meets the target against an eavesdropper."""
    rounds, observer = entry.rounds, Eavesdropper()
    if entry.noise is None:
        return plan(problem, entry.algorithm, rounds=rounds, target=target, observer=observer, topology=topology)
    noise = entry.noise

    def at(multiplier: float) -> Plan:
        return plan(problem, entry.algorithm, rounds=rounds, noise=noise(multiplier), topology=topology)

    def spent(multiplier: float) -> float:
        return at(multiplier).guarantee(observer, target.delta).epsilon(target.delta)

    low = high = 1.0
    while spent(high) > target.epsilon:
        high = 2 * high
    while spent(low) <= target.epsilon:
        low = low / 2
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle) <= target.epsilon else (middle, high)
    return at(high)


def graphs() -> dict[str, Topology]:
    """The graphs that are compared."""
    return {
        "complete": Topology.complete(NODES),
        "regular": Topology.random_regular(NODES, 6, seed=1),
        "ring": Topology.ring(NODES),
    }


def data(strength: float = 1e-4) -> tuple[Problem, Shards, Array, Array]:
    """The problem, its shards, rows and labels; records are shuffled before they are dealt to the nodes."""
    adult = load_adult(preprocessing="paper", split=False)
    order = np.random.default_rng(0).permutation(len(adult.y))
    rows, labels = adult.X[order], adult.y[order]
    sizes = np.full(NODES, len(labels) // NODES)
    sizes[: len(labels) % NODES] += 1
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=strength), features=rows.shape[1], sizes=sizes, row_bound=1.0
    )
    return problem, Shards.build(problem, rows, labels, np.concatenate([[0], np.cumsum(sizes)])), rows, labels


def measure(rows: Array, labels: Array, model: Array) -> tuple[float, float]:
    """Risk and accuracy of a model."""
    margins = labels * (rows @ model)
    return float(np.logaddexp(0.0, -margins).mean()), float(np.mean(margins > 0))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the CSV file."""

    graph: str
    algorithm: str
    epsilon: float  # asked for, infinite without privacy
    spent: float  # of the worst node, against an eavesdropper
    rounds: int
    seeds: int
    risk: float
    spread: float  # standard deviation of the risk over the seeds, nan for one
    accuracy: float
    seconds: float
    parameters: str
    noise: str


def evaluate(
    problem: Problem,
    shards: Shards,
    entry: Entry,
    graph: str,
    epsilon: float,
    seeds: int,
    test: Callable[[Array], tuple[float, float]],
) -> Cell:
    """Run an entry with several seeds."""
    topology, started = graphs()[graph], time.perf_counter()
    if math.isinf(epsilon):
        made = plan(problem, entry.algorithm, rounds=entry.rounds, noise=NoNoise(), topology=topology)
    else:
        made = calibrated(problem, entry, topology, EpsilonDelta(epsilon=epsilon, delta=DELTA))
    found = []
    for seed in range(seeds):
        seeded = replace(made, sampler=Seeded(seed), sampler_chosen=True)
        found.append(test(run(seeded, shards).model))
    (risk, accuracy), spread = np.mean(found, axis=0), np.std(found, axis=0)[0] if seeds > 1 else math.nan
    return Cell(
        graph=graph,
        algorithm=entry.label,
        epsilon=epsilon,
        spent=math.inf if math.isinf(epsilon) else made.guarantee(Eavesdropper(), DELTA).epsilon(DELTA),
        rounds=entry.rounds,
        seeds=seeds,
        risk=float(risk),
        spread=float(spread),
        accuracy=float(accuracy),
        seconds=time.perf_counter() - started,
        parameters=repr(entry.algorithm),
        noise=repr(next(iter(made.noise.values()))),
    )


def entries(problem: Problem, graph: str) -> Iterator[tuple[float, Entry]]:
    """What is run on a graph, with its epsilon."""
    topology = graphs()[graph]
    yield math.inf, reference(problem, topology)
    for epsilon in EPSILONS:
        rho = theory.budget(epsilon, DELTA)
        yield from ((epsilon, entry) for entry in recommended(problem, topology, rho))
        yield from ((epsilon, entry) for entry in exact(problem, topology, rho, epsilon))


def markdown(cells: list[Cell], planned: list[tuple[str, str, float]]) -> str:
    """A row for each graph and algorithm, a column for each epsilon."""
    found = {(cell.graph, cell.algorithm, cell.epsilon): cell for cell in cells}
    columns = sorted({epsilon for _, _, epsilon in planned})
    heads = ["no privacy" if math.isinf(epsilon) else f"epsilon {epsilon:g}" for epsilon in columns]
    lines = [
        "Risk / accuracy (rounds).",
        "",
        "| graph | algorithm | " + " | ".join(heads) + " |",
        "| --- | --- |" + " --- |" * len(columns),
    ]
    for graph, label in dict.fromkeys((graph, label) for graph, label, _ in planned):
        texts = []
        for epsilon in columns:
            cell = found.get((graph, label, epsilon))
            missing = "not run" if (graph, label, epsilon) in planned else ""
            texts.append(f"{cell.risk:.4f} / {cell.accuracy:.4f} ({cell.rounds})" if cell else missing)
        lines.append(f"| {graph} | {label} | " + " | ".join(texts) + " |")
    seeds = sorted({cell.seeds for cell in cells})
    seconds = sum(cell.seconds for cell in cells)
    worst = max((cell.spent / cell.epsilon for cell in cells if math.isfinite(cell.epsilon)), default=0.0)
    lines += [
        "",
        f"Seeds per cell: {', '.join(map(str, seeds))}. Cells run: {len(cells)} of {len(planned)}, in {seconds:.0f} s "
        f"on {datetime.now(UTC):%Y-%m-%d}. Largest share of its epsilon that a cell spent: {worst:.6f}.",
    ]
    return "\n".join(lines) + "\n"


def write(folder: Path, cells: list[Cell], planned: list[tuple[str, str, float]]) -> None:
    """Both files."""
    with (folder / "adult_peers.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, [field.name for field in fields(Cell)])
        table.writeheader()
        table.writerows(asdict(cell) for cell in cells)
    (folder / "adult_peers.md").write_text(markdown(cells, planned))


def main() -> None:
    """Run all cells and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--graphs", nargs="+", default=list(graphs()), choices=list(graphs()))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    problem, shards, rows, labels = data()
    started, cells = time.perf_counter(), []
    todo = [(graph, epsilon, entry) for graph in arguments.graphs for epsilon, entry in entries(problem, graph)]
    planned = [(graph, entry.label, epsilon) for graph, epsilon, entry in todo]
    for graph, epsilon, entry in todo:
        if time.perf_counter() - started > 60 * arguments.minutes:
            break
        test = partial(measure, rows, labels)
        cell = evaluate(problem, shards, entry, graph, epsilon, arguments.seeds, test)
        cells.append(cell)
        write(arguments.out, cells, planned)
        print(
            f"{graph:9} {entry.label:28} {epsilon:5.1f} {cell.spent:9.6f} {entry.rounds:5d} {cell.risk:8.4f} "
            f"{cell.accuracy:8.4f} {cell.seconds:6.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
