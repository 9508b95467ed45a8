"""The data, the graph and the three objectives, with the central solution that the error is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.datasets import make_graph
from consenso.losses import Absolute, Squared
from consenso.problem import Problem
from consenso.regularizers import L2, ElasticNet, NoPenalty
from consenso.shards import Shards
from consenso.solvers.exact import fit_exact
from consenso.topology import Topology

NODES, OBSERVATIONS, FEATURES, DEGREE = 50, 50, 8, 3
ITERATIONS = 200
SHARE = 0.001  # of |X'y|_inf: the l1 penalty of the paper
SQUARE = 1.0  # the l2 penalty of the paper, beside sums over all records
DELTA = 1e-5
# Public bounds of the corrected runs: rows and targets beyond them are shortened.
ROW_BOUND, TARGET_BOUND = 4.5, 9.0
TASKS = ("elastic net", "least absolute deviations", "ridge")


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """One draw of the data with its graph, its problem and its central solution."""

    shards: Shards
    topology: Topology
    X: Array  # (nodes, observations, features), as the problem bounds them
    y: Array  # (nodes, observations)
    solution: Array  # (features,)

    @property
    def problem(self) -> Problem:
        """What is minimised."""
        return self.shards.problem


def world(task: str, seed: int, *, bounded: bool) -> World:
    """A draw. `bounded` states public bounds; otherwise bounds are read from the data, as a private run must not."""
    data = make_graph(seed=seed, nodes=NODES, observations=OBSERVATIONS, features=FEATURES)
    X, y = np.asarray(data.X), np.asarray(data.y)
    row_bound = ROW_BOUND if bounded else float(np.linalg.norm(X, axis=1).max())
    target_bound = TARGET_BOUND if bounded else float(np.abs(y).max())
    strength = SHARE * (1.0 if bounded else float(np.abs(X.T @ y).max()) / len(y))
    problem = Problem(
        loss=Absolute() if task == "least absolute deviations" else Squared(),
        regularizer=_regularizer(task, strength),
        features=FEATURES,
        sizes=np.full(NODES, OBSERVATIONS),
        row_bound=row_bound,
        target_bound=target_bound,
        adjacency="replace-one",
    )
    shards = Shards.build(problem, X, y, np.arange(NODES + 1) * OBSERVATIONS)
    topology = Topology.erdos_renyi(NODES, float(DEGREE), seed=seed)
    scale = np.minimum(1.0, row_bound / np.linalg.norm(X, axis=1))
    return World(
        shards=shards,
        topology=topology,
        X=(X * scale[:, None]).reshape(NODES, OBSERVATIONS, FEATURES),
        y=np.clip(y, -target_bound, target_bound).reshape(NODES, OBSERVATIONS),
        solution=fit_exact(problem, shards),
    )


def _regularizer(task: str, strength: float) -> Any:
    square = SQUARE / (NODES * OBSERVATIONS)
    if task == "elastic net":
        return ElasticNet(l1=strength, l2=square)
    return L2(strength=square) if task == "ridge" else NoPenalty()


def error(models: Array, solution: Array) -> float:
    """The paper's measure: squared distances of all nodes to the central solution, over its own square."""
    return float(((models - solution) ** 2).sum() / (solution @ solution))
