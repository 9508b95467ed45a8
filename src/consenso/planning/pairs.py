"""What each node of a graph learns of each other one: an epsilon for every ordered pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.planning.parties import find_alike
from consenso.planning.plan import Plan
from consenso.privacy.graph_views import count_hiding
from consenso.privacy.observers import Peer
from consenso.privacy.run_spec import PrivacyQuery, stretches

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_OBSERVERS = 200  # of larger graphs so many nodes look, evenly spaced


@dataclass(frozen=True, eq=False)
class PairCosts:
    """Epsilon by observer and by node, at the plan's own unit and adjacency; nan for a node's own data."""

    observers: tuple[int, ...]
    epsilons: Array  # (observers, parties)
    distances: Array  # (observers, parties), in links

    def quantiles(self) -> list[tuple[str, int, list[float]]]:
        """By distance, and over all: what, how many ordered pairs, the quantiles of their epsilons."""
        found = []
        for label, which in self._groups():
            values = self.epsilons[which]
            if values.size:
                found.append((label, int(values.size), np.quantile(values, QUANTILES).tolist()))
        return found

    def _groups(self) -> list[tuple[str, Any]]:
        other = self.distances > 0
        near = [(f"distance {steps}", self.distances == steps) for steps in (1, 2, 3)]
        return [*near, ("distance 4 or more", self.distances > 3), ("all pairs", other)]


def pair_costs(plan: Plan, delta: float) -> PairCosts:
    """Epsilon at a delta for every ordered pair of nodes, by the strongest theorem that is proved for it.

    For sums along a plain tree this depends on how many nodes hide the one from the other; for masked sums it is the
    same for all. For algorithms that gossip it is the composition of all messages of a node, however far it is away.
    """
    if plan.topology is None:
        raise InputError("pair_costs(plan=...): pairs of peers are those of a graph; plan with a topology.")
    parties = plan.parties
    step = max(1, -(-parties // MOST_OBSERVERS))
    observers = tuple(range(0, parties, step))
    kinds = {int(party): kind for kind in plan.facts.classes() for party in find_alike(plan, int(kind))}
    known: dict[Any, float] = {}

    def cost(observer: int, party: int) -> float:
        query = PrivacyQuery(observer=Peer(party=observer), unit="record", adjacency="add-remove", party=party)
        key = kinds[party], _profile(plan, query)
        if key not in known:
            known[key] = plan.prove(query.observer, party, delta).epsilon(delta)
        return known[key]

    epsilons = np.array([[cost(u, v) if u != v else np.nan for v in range(parties)] for u in observers])
    links = sparse.csgraph.shortest_path(
        plan.topology.adjacency, directed=False, unweighted=True, indices=list(observers)
    )
    return PairCosts(observers, epsilons, links)


def _profile(plan: Plan, query: PrivacyQuery) -> tuple[int, ...]:
    """What the cost of a pair depends on besides the kind of its node."""
    if not plan.mode.has_open_tree:
        return ()
    if plan.trees == "one":
        return (count_hiding(plan, query, 0),)
    found = [count_hiding(plan, query, round_) for round_ in range(plan.rounds)]
    # Where all rounds cost the same their order does not matter.
    alike = len(stretches(plan, query.party, plan.algorithm.releases)) == 1
    return tuple(sorted(found) if alike else found)
