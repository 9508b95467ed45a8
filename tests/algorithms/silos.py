"""Problems of nodes on a graph."""

from __future__ import annotations

import numpy as np

from consenso.algorithms.shape import RING_WITH_CHORD
from consenso.problem import Problem
from consenso.shards import Shards
from consenso.topology import Topology

CHORD = RING_WITH_CHORD  # degrees 3, 2, 2, 3, 2, 2
SIZES = np.array([4, 7, 5, 6, 4, 5])
EIGHT = np.array([8, 12, 10, 9, 11, 10, 7, 13])
GRAPHS = {"ring": Topology.ring(8), "random": Topology.erdos_renyi(8, 3, seed=1), "complete": Topology.complete(8)}


def silos(loss, regularizer, sizes=SIZES, *, features=3, seed=0, **options):
    """A problem, its shards and each party's rows and targets, from a noisy linear model."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(1.0, -0.5, features)
    parts = []
    for size in sizes:
        rows = rng.normal(size=(size, features))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        targets = rows @ truth + 0.3 * rng.normal(size=size)
        parts.append((rows, np.where(targets > 0, 1.0, -1.0) if loss.targets == "sign" else targets))
    bound = {} if loss.targets == "sign" else {"target_bound": 3.0}
    problem = Problem(
        loss=loss,
        regularizer=regularizer,
        features=features,
        sizes=np.asarray(sizes),
        row_bound=1.0,
        **bound,
        **options,
    )
    return problem, Shards.from_parties(problem, parts), parts
