"""A round, written once: parties step, sums or messages travel, the hub or the peers go on.

Engines say where parties live and how messages travel: all in this process, at the other end of a network, one alone
that holds the token of a walk, one that is made up (a dry run), or many trials side by side (the audit).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from consenso.algorithms.shape import PeerAlgorithm
from consenso.arrays import Array, IntArray
from consenso.engine.sums import RoundSum
from consenso.public_facts import PublicFacts
from consenso.topology import Topology


class Hub(Protocol):
    """The hub's half of an algorithm."""

    def down(self, facts: PublicFacts, hub: Any) -> Any: ...

    def combine(self, facts: PublicFacts, hub: Any, total: Any) -> Any: ...


def take_hub_round(algorithm: Hub, facts: PublicFacts, hub: Any, add_up: Callable[[Any], Any]) -> Any:
    """The hub after a round; `add_up` takes what it sends to the parties and brings back the sum of their answers."""
    return algorithm.combine(facts, hub, add_up(algorithm.down(facts, hub)))


class Parties(Protocol):
    """The parties of a round whose messages a hub adds up."""

    def active(self) -> Sequence[IntArray]:
        """Cohorts of those who take part."""
        ...

    def send(self, cohort: IntArray, down: Any) -> Iterable[Any]:
        """Take the step of a cohort: its messages."""
        ...

    def stand_in(self, down: Any) -> Any:
        """A message that has its form and counts for nothing, where nobody takes part."""
        ...

    def silent(self) -> Iterable[IntArray]:
        """Cohorts of those who were not sampled and add their share of a sum's noise all the same."""
        ...


def add_messages(parties: Parties, down: Any, total: RoundSum) -> Any:
    """The sum of a round's messages, each sum of terms opened."""
    active = parties.active()
    for cohort in active:
        for message in parties.send(cohort, down):
            total.add(message, cohort)
    if not active:
        # Nobody was sampled. The hub hears noise all the same, or the silence would be a message.
        total.add(parties.stand_in(down), np.zeros(1, dtype=np.int64), weight=0.0)
    for cohort in parties.silent():
        total.add_silence(cohort)
    return total.open()


class Peers(Protocol):
    """Nodes on a graph: all of it, or one of them."""

    def cohorts(self) -> Sequence[IntArray]: ...

    def say(self, cohort: IntArray) -> Iterable[Any]:
        """Take the step of a cohort and keep its states: its messages, in the order of its nodes."""
        ...

    def exchange(self, messages: list[Any]) -> Any:
        """What everybody said, as one."""
        ...

    def stand(self, cohort: IntArray) -> tuple[PublicFacts, Any]:
        """Facts and states of a cohort that has spoken."""
        ...

    def listen(self, cohort: IntArray, said: Any) -> Any:
        """What the neighbours of a cohort said."""
        ...

    def keep(self, cohort: IntArray, states: Any) -> None: ...


def take_peer_round(algorithm: PeerAlgorithm, peers: Peers) -> None:
    """A round between neighbours: everybody speaks, then everybody has heard its neighbours."""
    cohorts = peers.cohorts()
    said = peers.exchange([message for cohort in cohorts for message in peers.say(cohort)])
    for cohort in cohorts:
        facts, states = peers.stand(cohort)
        peers.keep(cohort, algorithm.absorb(facts, states, peers.listen(cohort, said)))


def stack_messages(messages: Sequence[Any]) -> Any:
    """The messages of several cohorts as one."""
    if len(messages) == 1:
        return messages[0]
    names = [each.name for each in dataclasses.fields(messages[0])]
    return type(messages[0])(**{name: np.concatenate([getattr(m, name) for m in messages]) for name in names})


@dataclass(frozen=True)
class Neighbourhood:
    """What the neighbours of a cohort's nodes said; `said` has a row for every node of the graph."""

    said: Any
    cohort: IntArray
    topology: Topology

    def sum(self, name: str) -> Array:
        return self._product(self.topology.adjacency, name)

    def mix(self, name: str) -> Array:
        """Metropolis average over the node and its neighbours."""
        return self._product(self.topology.metropolis, name)

    def _product(self, matrix: sparse.csr_array, name: str) -> Array:
        values = getattr(self.said, name)
        rows = matrix if len(self.cohort) == matrix.shape[0] else matrix[self.cohort]
        return np.asarray(rows @ values)
