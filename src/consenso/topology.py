"""Graphs of peers: generators, Laplacians and mixing facts. A graph is public."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from consenso.arrays import IntArray
from consenso.errors import InputError

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Topology:
    """An undirected connected graph on parties 0..n-1, as sorted pairs (i, j) with i < j."""

    parties: int
    edges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if self.parties < 1:
            raise InputError(f"Topology(parties={self.parties}): a graph needs at least one party.")
        tidy = sorted({(min(i, j), max(i, j)) for i, j in self.edges})
        if tidy != list(self.edges):
            raise InputError("Topology(edges=...): edges are sorted distinct pairs (i, j), i < j; use from_edges().")
        for i, j in tidy:
            if i == j or i < 0 or j >= self.parties:
                raise InputError(
                    f"Topology(edges=...): edge ({i}, {j}) must join two different parties of 0..{self.parties - 1}."
                )
        if self.parties > 1:
            count, labels = sparse.csgraph.connected_components(self.adjacency, directed=False)
            if count > 1:
                alone = int(np.flatnonzero(labels != labels[0])[0])
                raise InputError(
                    f"Topology: the graph is not connected, party {alone} cannot be reached from party 0; "
                    "add an edge or drop the party."
                )

    # --- ways to make one ---------------------------------------------------------------------------------------

    @classmethod
    def from_edges(cls, parties: int, edges: Iterable[tuple[int, int]]) -> Topology:
        """A graph from any list of pairs."""
        return cls(parties, tuple(sorted({(min(int(i), int(j)), max(int(i), int(j))) for i, j in edges})))

    @classmethod
    def ring(cls, parties: int) -> Topology:
        """Each party has two neighbours."""
        return cls.from_edges(parties, ((i, (i + 1) % parties) for i in range(parties) if parties > 1))

    @classmethod
    def path(cls, parties: int) -> Topology:
        return cls.from_edges(parties, ((i, i + 1) for i in range(parties - 1)))

    @classmethod
    def star(cls, parties: int) -> Topology:
        """Party 0 is next to everyone."""
        return cls.from_edges(parties, ((0, i) for i in range(1, parties)))

    @classmethod
    def complete(cls, parties: int) -> Topology:
        """Everyone is next to everyone."""
        rows, columns = np.triu_indices(parties, 1)
        return cls(parties, tuple(zip(rows.tolist(), columns.tolist(), strict=True)))

    @classmethod
    def grid(cls, rows: int, columns: int) -> Topology:
        return cls._lattice(rows, columns, periodic=False)

    @classmethod
    def torus(cls, rows: int, columns: int) -> Topology:
        """A grid that wraps around."""
        return cls._lattice(rows, columns, periodic=True)

    @classmethod
    def random_regular(cls, parties: int, degree: int, seed: int) -> Topology:
        """A random graph in which every party has `degree` neighbours."""
        if not 0 < degree < parties or parties * degree % 2:
            raise InputError(
                f"random_regular(parties={parties}, degree={degree}): the degree lies in 1..parties-1 and "
                "parties*degree is even; change one of them."
            )
        import networkx as nx

        return cls._first_connected(lambda s: nx.random_regular_graph(degree, parties, seed=s), seed)

    @classmethod
    def erdos_renyi(cls, parties: int, mean_degree: float, seed: int) -> Topology:
        """A random graph with exactly round(parties*mean_degree/2) edges, connected.

        A random spanning tree first, the other edges uniform: rejection alone would never end on sparse graphs.
        """
        most = parties * (parties - 1) // 2
        count = round(parties * mean_degree / 2)
        if not parties - 1 <= count <= most:
            raise InputError(
                f"erdos_renyi(parties={parties}, mean_degree={mean_degree}): a connected graph has between "
                f"{parties - 1} and {most} edges, this asks for {count}; choose a mean degree in "
                f"[{2 * (parties - 1) / parties:.3g}, {parties - 1}]."
            )
        rng = np.random.default_rng(seed)
        order = rng.permutation(parties)
        tree = {
            (min(a, b), max(a, b)) for a, b in ((int(order[i]), int(order[rng.integers(i)])) for i in range(1, parties))
        }
        while len(tree) < count:
            i, j = sorted(rng.integers(parties, size=2).tolist())
            if i != j:
                tree.add((i, j))
        return cls(parties, tuple(sorted(tree)))

    @classmethod
    def small_world(cls, parties: int, degree: int, rewiring: float, seed: int) -> Topology:
        """Watts and Strogatz: a ring of `degree` nearest neighbours, each edge rewired with probability `rewiring`."""
        if not 2 <= degree < parties or not 0 <= rewiring <= 1:
            raise InputError(
                f"small_world(parties={parties}, degree={degree}, rewiring={rewiring}): the degree lies in "
                "2..parties-1 and the rewiring probability in [0, 1]."
            )
        import networkx as nx

        return cls._first_connected(lambda s: nx.watts_strogatz_graph(parties, degree, rewiring, seed=s), seed)

    # --- facts --------------------------------------------------------------------------------------------------

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """Symmetric 0/1 matrix (parties, parties)."""
        pairs = np.array(self.edges, dtype=np.int64).reshape(-1, 2)
        rows, columns = np.concatenate([pairs[:, 0], pairs[:, 1]]), np.concatenate([pairs[:, 1], pairs[:, 0]])
        ones = np.ones(len(rows))
        return sparse.coo_array((ones, (rows, columns)), shape=(self.parties, self.parties)).tocsr()

    @cached_property
    def degrees(self) -> IntArray:
        """Number of neighbours of each party."""
        counts: IntArray = np.diff(self.adjacency.indptr).astype(np.int64)
        return counts

    def neighbors(self, party: int) -> IntArray:
        """Neighbours of a party, in order."""
        start, stop = self.adjacency.indptr[party], self.adjacency.indptr[party + 1]
        return np.sort(self.adjacency.indices[start:stop]).astype(np.int64)

    @cached_property
    def metropolis(self) -> sparse.csr_array:
        """Doubly stochastic mixing matrix: 1/(1 + larger degree) on an edge, the rest on the diagonal."""
        edges = self.adjacency.tocoo()
        weights = 1.0 / (1.0 + np.maximum(self.degrees[edges.row], self.degrees[edges.col]))
        off = sparse.coo_array((weights, (edges.row, edges.col)), shape=(self.parties, self.parties)).tocsr()
        return (off + sparse.diags_array(1.0 - np.asarray(off.sum(axis=1)).ravel())).tocsr()

    @cached_property
    def spectral_gap(self) -> float:
        """1 minus the second largest modulus of an eigenvalue of the Metropolis matrix: how fast gossip mixes."""
        if self.parties == 1:
            return 1.0
        if self.parties <= 500:
            moduli = np.sort(np.abs(np.linalg.eigvalsh(self.metropolis.toarray())))
            return float(1.0 - moduli[-2])
        deflated = sparse.linalg.LinearOperator(
            (self.parties, self.parties), matvec=lambda v: self.metropolis @ v - np.mean(v), dtype=np.float64
        )
        start = np.cos(np.arange(self.parties, dtype=float))
        return float(1.0 - np.abs(sparse.linalg.eigsh(deflated, k=1, which="LM", v0=start)[0][0]))

    @property
    def digest(self) -> str:
        """Hash of the graph, by which a checkpoint knows that it has not changed."""
        return hashlib.sha256(repr((self.parties, self.edges)).encode()).hexdigest()

    @classmethod
    def _lattice(cls, rows: int, columns: int, *, periodic: bool) -> Topology:
        if rows < 1 or columns < 1:
            raise InputError(f"grid(rows={rows}, columns={columns}): both are at least 1.")
        import networkx as nx

        lattice = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns, periodic=periodic))
        return cls.from_edges(rows * columns, lattice.edges)

    @classmethod
    def _first_connected(cls, make: Callable[[int], nx.Graph], seed: int) -> Topology:
        import networkx as nx

        for attempt in range(1000):
            graph = make(seed * 1000 + attempt)
            if nx.is_connected(graph):
                return cls.from_edges(graph.number_of_nodes(), graph.edges)
        raise InputError(f"No connected graph among 1000 draws from seed {seed}; ask for a larger degree.")
