"""The round of one node of a graph, which speaks for itself and has heard its neighbours."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.engine.round import Neighbourhood, take_peer_round
from consenso.planning.plan import Plan
from consenso.public_facts import PublicFacts


def take_node_round(plan: Plan, facts: PublicFacts, state: Any, said: Mapping[int, Any]) -> Any:
    """The state after a round of a node whose step left `state`; `said` has its message and those of its neighbours."""
    node = _Node(plan, facts, state, said)
    take_peer_round(plan.algorithm, node)
    return node.state


class _Node:
    def __init__(self, plan: Plan, facts: PublicFacts, state: Any, said: Mapping[int, Any]) -> None:
        self._plan, self._facts, self._said, self.state = plan, facts, said, state

    def cohorts(self) -> list[IntArray]:
        return [self._facts.cohort]

    def say(self, cohort: IntArray) -> list[Any]:
        return [self._said[int(cohort[0])]]

    def exchange(self, messages: list[Any]) -> Any:
        return spread_messages(self._said, self._plan.parties)

    def stand(self, cohort: IntArray) -> tuple[PublicFacts, Any]:
        return self._facts, self.state

    def listen(self, cohort: IntArray, said: Any) -> Neighbourhood:
        assert self._plan.topology is not None
        return Neighbourhood(said, cohort, self._plan.topology)

    def keep(self, cohort: IntArray, states: Any) -> None:
        self.state = states


def spread_messages(said: Mapping[int, Any], parties: int) -> Any:
    """One record with a row for every party: zeros where nothing is known, which no neighbour's sum touches."""
    first = next(iter(said.values()))
    values: dict[str, Array] = {}
    for each in dataclasses.fields(first):
        like = getattr(first, each.name)
        values[each.name] = np.zeros((parties, *like.shape[1:]), dtype=like.dtype)
        for party, message in said.items():
            values[each.name][party] = getattr(message, each.name)[0]
    return type(first)(**values)
