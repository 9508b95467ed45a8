from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from consenso.errors import InputError
from consenso.topology import Topology

KINDS = {
    "ring": Topology.ring(7),
    "path": Topology.path(5),
    "star": Topology.star(6),
    "complete": Topology.complete(5),
    "grid": Topology.grid(3, 4),
    "torus": Topology.torus(3, 4),
    "random regular": Topology.random_regular(10, 4, seed=1),
    "erdos renyi": Topology.erdos_renyi(50, 3, seed=1),
    "small world": Topology.small_world(20, 4, 0.2, seed=3),
    "pair": Topology.ring(2),
    "alone": Topology.ring(1),
}


@pytest.mark.parametrize("graph", KINDS.values(), ids=KINDS)
def test_matrices_agree_with_networkx(graph: Topology) -> None:
    reference = nx.Graph()
    reference.add_nodes_from(range(graph.parties))
    reference.add_edges_from(graph.edges)
    np.testing.assert_array_equal(
        graph.adjacency.toarray(), nx.to_numpy_array(reference, nodelist=range(graph.parties))
    )
    assert all(list(graph.neighbors(i)) == sorted(reference[i]) for i in range(graph.parties))
    assert graph.degrees.tolist() == [len(graph.neighbors(i)) for i in range(graph.parties)]


@pytest.mark.parametrize("graph", KINDS.values(), ids=KINDS)
def test_metropolis_is_doubly_stochastic_and_mixes(graph: Topology) -> None:
    mixing = graph.metropolis.toarray()
    np.testing.assert_allclose(mixing.sum(axis=0), 1.0, atol=1e-14)
    np.testing.assert_allclose(mixing, mixing.T)
    assert mixing.min() >= 0
    assert 0 < graph.spectral_gap <= 1 + 1e-12
    start = np.arange(graph.parties, dtype=float)
    spread = np.linalg.norm(start - start.mean())
    after = mixing @ start
    assert np.linalg.norm(after - start.mean()) <= (1 - graph.spectral_gap) * spread + 1e-12


def test_degrees_of_the_regular_ones() -> None:
    assert set(Topology.torus(4, 5).degrees) == {4}
    assert set(Topology.random_regular(12, 5, seed=0).degrees) == {5}
    assert len(Topology.erdos_renyi(50, 3, seed=9).edges) == 75


def test_large_graphs_use_the_iterative_solvers_with_the_same_answer() -> None:
    graph = Topology.random_regular(600, 6, seed=0)
    moduli = np.sort(np.abs(np.linalg.eigvalsh(graph.metropolis.toarray())))
    assert graph.spectral_gap == pytest.approx(1 - moduli[-2], rel=1e-6)


def test_the_digest_tells_graphs_apart() -> None:
    assert Topology.ring(5).digest != Topology.path(5).digest
    assert Topology.from_edges(3, [(2, 1), (0, 1), (1, 2)]).digest == Topology.path(3).digest


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Topology.from_edges(4, [(0, 1), (2, 3)]), "not connected, party 2"),
        (lambda: Topology.from_edges(2, [(0, 0), (0, 1)]), "two different parties"),
        (lambda: Topology.from_edges(2, [(0, 2)]), "two different parties"),
        (lambda: Topology(3, ((1, 0), (1, 2))), "use from_edges"),
        (lambda: Topology.erdos_renyi(10, 1, seed=0), "a connected graph has between 9 and 45 edges"),
        (lambda: Topology.random_regular(5, 3, seed=0), "parties\\*degree is even"),
        (lambda: Topology.small_world(5, 9, 0.1, seed=0), "the degree lies in"),
        (lambda: Topology.grid(0, 3), "both are at least 1"),
        (lambda: Topology(0, ()), "at least one party"),
    ],
)
def test_bad_graphs_are_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]
