"""Mask graphs: which pairs of nodes share a mask, so that no coalition can take the graph of the others apart."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from consenso.topology import Topology

# Beyond this many nodes the graph's own edges are not counted on: counting their connectivity takes too long.
MOST_COUNTED = 300


@lru_cache(maxsize=64)
def add_mask_edges(topology: Topology, coalition: int) -> Topology:
    """The graph's own edges, and random ones where they are needed so that no coalition takes the rest apart.

    The added ones join each node to the nearest few on a ring in random order: k on either side make a graph that
    2k - 1 missing nodes cannot take apart, whatever else is joined. The order follows from the graph, which nobody
    chooses for this.
    """
    if topology.parties <= MOST_COUNTED and is_connected_without(topology, coalition):
        return topology
    parties, aside = topology.parties, -(-(coalition + 1) // 2)
    if 2 * aside >= parties - 1:
        return Topology.complete(parties)
    seed = hashlib.sha256(f"consenso masks {topology.digest} {coalition}".encode()).digest()
    order = np.random.default_rng(int.from_bytes(seed, "little")).permutation(parties)
    added = [(int(order[i]), int(order[(i + k) % parties])) for i in range(parties) for k in range(1, aside + 1)]
    return Topology.from_edges(parties, [*topology.edges, *added])


@lru_cache(maxsize=64)
def is_connected_without(topology: Topology, coalition: int) -> bool:
    """Whether the others stay connected whichever `coalition` nodes are taken out: node connectivity above it."""
    if topology.parties - 1 <= coalition or int(topology.degrees.min()) <= coalition:
        return False
    if coalition == 0:
        return True
    import networkx as nx

    graph = nx.Graph(topology.edges)
    return bool(nx.is_biconnected(graph) if coalition == 1 else nx.node_connectivity(graph) > coalition)
