"""Sums on a graph: which nodes' noise hides a node from an observer (docs/privacy.md#sums-on-a-graph)."""

from __future__ import annotations

from collections.abc import Iterator

from consenso.graph_sum import find_component
from consenso.privacy.declarations import Declaration
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, Stretch, stretches


def find_coalition(spec: RunSpec, query: PrivacyQuery, round_: int) -> frozenset[int]:
    """The observer's members and the planned colluders, placed where they see most of the party.

    On a plain tree the colluders come on top of the members, next to the party and before its largest branches: one
    further away cuts less off, and a second one on a branch cuts nothing. Under masks `colluders` counts the members:
    whoever they are, the mask graph holds together without so many.
    """
    inside = query.observer.insiders
    if spec.mode.has_open_tree:
        tree = spec.tree(round_)
        cut = tree.branches(query.party, inside)[: spec.colluders]
        nearest = {node for branch in cut for node in branch if node in tree.neighbours[query.party]}
        return inside | nearest
    others = [party for party in range(spec.parties) if party not in inside and party != query.party]
    return inside | frozenset(others[: max(0, spec.colluders - len(inside))])


def find_hiding(spec: RunSpec, query: PrivacyQuery, round_: int) -> frozenset[int]:
    """The nodes, the party among them, of which the observer sees no more than the sum, noise included."""
    gone = find_coalition(spec, query, round_)
    if spec.mode.has_open_tree:
        if query.observer.reads_messages:
            return frozenset((query.party,))
        return spec.tree(round_).component(query.party, gone)
    masks = spec.mask_graph
    return find_component(lambda node: masks.neighbors(node).tolist(), query.party, gone)


def count_hiding(spec: RunSpec, query: PrivacyQuery, round_: int) -> int:
    """How many nodes hide the party, itself included."""
    number = round_ if spec.trees == "each-round" else 0
    key = (count_hiding, query.observer, query.party, number)
    if key not in spec._computed:
        spec._computed[key] = len(find_hiding(spec, query, number))
    found: int = spec._computed[key]
    return found


def seen_stretches(spec: RunSpec, query: PrivacyQuery, declaration: Declaration) -> Iterator[Stretch]:
    """The rounds of a run as stretches of equal ones, for one observer: on another tree others hide the party."""
    for stretch in stretches(spec, query.party, declaration):
        if spec.trees == "one" or not spec.mode.has_open_tree:
            yield stretch
            continue
        first, end = stretch.first, stretch.first + stretch.count
        for round_ in range(first + 1, end + 1):
            if round_ == end or count_hiding(spec, query, round_) != count_hiding(spec, query, first):
                yield Stretch(first, round_ - first, stretch.releases, stretch.multipliers)
                first = round_
