"""Spanning trees of a graph, from public facts alone: everybody who knows the graph knows the tree of every round."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse

from consenso.topology import Topology

ROOT = -1
MOST_COMPARED = 2000  # nodes of which every one is tried as the root


@dataclass(frozen=True)
class Tree:
    """A rooted spanning tree: each node's parent, ROOT for the root's."""

    parents: tuple[int, ...]

    @cached_property
    def root(self) -> int:
        """The node without a parent."""
        return self.parents.index(ROOT)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Each node's children, in order."""
        found: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                found[parent].append(node)
        return tuple(map(tuple, found))

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Each node's neighbours in the tree."""
        return tuple(
            (*below, parent) if parent != ROOT else below
            for below, parent in zip(self.children, self.parents, strict=True)
        )

    @cached_property
    def upwards(self) -> tuple[int, ...]:
        """All nodes, every child before its parent."""
        order, waiting = [], deque([self.root])
        while waiting:
            node = waiting.popleft()
            order.append(node)
            waiting.extend(self.children[node])
        return tuple(reversed(order))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes each node's subtree has, itself included."""
        sizes = [1] * len(self.parents)
        for node in self.upwards[:-1]:
            sizes[self.parents[node]] += sizes[node]
        return tuple(sizes)

    @cached_property
    def depth(self) -> int:
        """Links from the root to the farthest node."""
        depths = [0] * len(self.parents)
        for node in reversed(self.upwards[:-1]):
            depths[node] = depths[self.parents[node]] + 1
        return max(depths)

    def component(self, node: int, without: frozenset[int]) -> frozenset[int]:
        """The nodes that a node can reach in the tree once others are taken out."""
        return find_component(lambda here: self.neighbours[here], node, without)

    def branches(self, node: int, without: frozenset[int]) -> list[frozenset[int]]:
        """The parts into which the rest of a node's component falls if the node is taken out, largest first."""
        gone = without | {node}
        parts = [self.component(other, gone) for other in self.neighbours[node] if other not in without]
        return sorted(parts, key=lambda part: (-len(part), min(part)))


@lru_cache(maxsize=4096)
def spanning_tree(topology: Topology, number: int | None = None) -> Tree:
    """A breadth-first tree; with a number, the one that public coins draw for that round.

    Without one the root is a node from which the tree is shallowest; in a large graph, one in the middle of a longest
    path that two searches find. With one, root and order of the neighbours are drawn from the graph itself, which no
    peer chooses.
    """
    if number is None:
        return Tree(_search(topology, _find_middle(topology), list))
    seed = hashlib.sha256(f"consenso tree {topology.digest} {number}".encode()).digest()
    coins = np.random.default_rng(int.from_bytes(seed, "little"))

    def shuffle(nodes: Sequence[int]) -> list[int]:
        return [nodes[int(place)] for place in coins.permutation(len(nodes))]

    return Tree(_search(topology, int(coins.integers(topology.parties)), shuffle))


def find_component(neighbours: Callable[[int], Sequence[int]], node: int, without: frozenset[int]) -> frozenset[int]:
    """The nodes that a node can reach once others are taken out."""
    reached, waiting = {node}, [node]
    while waiting:
        for other in neighbours(waiting.pop()):
            if other not in reached and other not in without:
                reached.add(other)
                waiting.append(other)
    return frozenset(reached)


def _search(topology: Topology, root: int, order: Callable[[Sequence[int]], list[int]]) -> tuple[int, ...]:
    parents: dict[int, int] = {root: ROOT}
    waiting = deque([root])
    while waiting:
        node = waiting.popleft()
        for other in order(topology.neighbors(node).tolist()):
            if other not in parents:
                parents[other] = node
                waiting.append(other)
    return tuple(parents[node] for node in range(topology.parties))


def _find_middle(topology: Topology) -> int:
    if topology.parties <= MOST_COMPARED:
        links = sparse.csgraph.shortest_path(topology.adjacency, directed=False, unweighted=True)
        return int(np.argmin(links.max(axis=1)))
    first = Tree(_search(topology, 0, list)).upwards[0]
    tree = Tree(_search(topology, first, list))
    path = [tree.upwards[0]]
    while tree.parents[path[-1]] != ROOT:
        path.append(tree.parents[path[-1]])
    return path[len(path) // 2]
