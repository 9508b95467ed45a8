"""Spanning trees and mask graphs are public, shallow and hold together."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.graph_sum import add_mask_edges, find_component, is_connected_without, spanning_tree
from consenso.topology import Topology

GRAPHS = {
    "ring": Topology.ring(12),
    "grid": Topology.grid(4, 5),
    "star": Topology.star(7),
    "complete": Topology.complete(6),
    "regular": Topology.random_regular(20, 4, seed=1),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("number", [None, 0, 3])
def test_a_tree_spans_the_graph_along_its_edges(name: str, number: int | None) -> None:
    graph = GRAPHS[name]
    tree = spanning_tree(graph, number)
    links = {(min(i, j), max(i, j)) for i, j in enumerate(tree.parents) if j >= 0}
    assert links <= set(graph.edges)
    assert len(links) == graph.parties - 1
    assert tree.sizes[tree.root] == graph.parties
    assert tree.component(tree.root, frozenset()) == frozenset(range(graph.parties))


def test_the_root_is_where_the_tree_is_shallow() -> None:
    assert spanning_tree(Topology.path(9)).root == 4
    assert spanning_tree(Topology.star(7)).depth == 1
    assert spanning_tree(Topology.grid(5, 5)).depth == 4


def test_another_round_has_another_tree_and_the_same_round_the_same() -> None:
    graph = Topology.random_regular(20, 4, seed=1)
    assert len({spanning_tree(graph, round_) for round_ in range(10)}) > 7
    assert spanning_tree(graph, 3) == spanning_tree(Topology(graph.parties, graph.edges), 3)


def test_branches_at_a_node() -> None:
    tree = spanning_tree(Topology.path(5))
    assert [sorted(branch) for branch in tree.branches(1, frozenset())] == [[2, 3, 4], [0]]
    assert [sorted(branch) for branch in tree.branches(1, frozenset({3}))] == [[0], [2]]


@given(parties=st.integers(4, 7), coalition=st.integers(1, 4), ring=st.booleans())
def test_no_coalition_takes_the_mask_graph_apart(parties: int, coalition: int, ring: bool) -> None:
    coalition = min(coalition, parties - 2)
    graph = add_mask_edges((Topology.ring if ring else Topology.path)(parties), coalition)
    for gone in itertools.combinations(range(parties), coalition):
        left = set(range(parties)) - set(gone)
        reached = find_component(lambda node: graph.neighbors(node).tolist(), min(left), frozenset(gone))
        assert reached == left


@pytest.mark.parametrize(
    ("graph", "coalition", "holds"),
    [
        (Topology.ring(6), 1, True),
        (Topology.ring(6), 2, False),
        (Topology.path(4), 1, False),
        (Topology.complete(5), 3, True),
        (Topology.complete(5), 4, False),
        (Topology.from_edges(5, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)]), 1, False),  # a cut node
    ],
)
def test_connectivity_is_counted(graph: Topology, coalition: int, holds: bool) -> None:
    assert is_connected_without(graph, coalition) == holds


def test_a_graph_that_holds_gets_no_further_edges() -> None:
    assert add_mask_edges(Topology.ring(6), 1) == Topology.ring(6)
