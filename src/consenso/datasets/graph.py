"""Data spread over the nodes of a graph, in the sizes of Gauthier et al.: 50 nodes, 50 observations, 8 features.

Reference: F. Gauthier et al., "Private networked federated learning for nonsmooth objectives", 2023, arXiv:2306.14012.
The paper states no law: here features and model are standard Gaussian and the noise has standard deviation 0.1. The
graph itself is a matter of `consenso.topology`.
"""

from __future__ import annotations

import numpy as np

from consenso.datasets.description import Dataset, Description

DESCRIPTION = Description(
    name="graph",
    title="Linear regression over the nodes of a graph: 50 nodes with 50 observations of 8 features",
    task="regression",
    rows=2_500,
    test_rows=0,
    features=8,
    licence="generated; no terms",
    origin="sizes of F. Gauthier et al. (zCDP-NFL), which states no data law",
    notes="`users` is the node of each record. Gaussian rows are unbounded: clip or scale them before private use.",
)


def make_graph(*, seed: int, nodes: int = 50, observations: int = 50, features: int = 8, noise: float = 0.1) -> Dataset:
    """Gaussian rows and a Gaussian model shared by all nodes; records are sorted by node, `users` is the node."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=features)
    X = rng.normal(size=(nodes * observations, features))
    return Dataset(
        description=DESCRIPTION,
        X=X,
        y=X @ truth + noise * rng.normal(size=nodes * observations),
        names=tuple(f"x{position}" for position in range(features)),
        users=np.repeat(np.arange(nodes, dtype=np.int64), observations),
        truth=truth,
    )
