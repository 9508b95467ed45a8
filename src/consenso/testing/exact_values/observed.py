"""What a run of the real engine shows, and who sees which of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.engine.in_process import InProcessRun
from consenso.engine.sums import RoundSum
from consenso.planning.plan import Plan
from consenso.privacy.graph_views import find_coalition
from consenso.privacy.observers import Eavesdropper, Observer, Public, Server
from consenso.privacy.releaser import Record, SumTerm
from consenso.privacy.run_spec import PrivacyQuery
from consenso.public_facts import PublicFacts
from consenso.shards import Shards

Active = tuple[frozenset[int], ...]  # who took part, by round


@dataclass(frozen=True, eq=False)
class Seen:
    """One value of a run: a message of a party, the sum that the hub opened, what it sent, or the final model.

    On a graph a "link" is what a node sends to its parent in the tree: the sum over its subtree.
    """

    kind: str
    round: int
    party: int
    value: Array


@dataclass(frozen=True, eq=False)
class Observed:
    """All that could be seen of a run, and who took part in each round."""

    values: tuple[Seen, ...]
    active: Active

    @property
    def flat(self) -> Array:
        """All numbers one after the other."""
        return np.concatenate([seen.value for seen in self.values])

    def positions(self, plan: Plan, observer: Observer, attacked: int) -> Array:
        """Which of the numbers are in an observer's view, as a mask."""
        inside = noise_owners_known(plan, observer, attacked)
        return np.concatenate(
            [np.full(len(seen.value), _sees(plan, observer, inside, seen, self.active)) for seen in self.values]
        )


def record_runs(plan: Plan) -> Plan:
    """The same plan, whose parties write down what they send and are sent. Many runs share what it declares."""
    return replace(plan, algorithm=_record(plan.algorithm))


def observe(plan: Plan, shards: Shards) -> Observed:
    """Run a plan of `record_runs` with its scripted sampler."""
    log: list[Seen] = plan.algorithm.log
    log.clear()
    active: list[frozenset[int]] = []
    on_tree = plan.mode.has_open_tree

    def watch(round_: int, total: Any, hub: Any) -> None:
        everyone = range(plan.parties)
        active.append(frozenset(everyone if run.previous is None else map(int, run.previous)))
        if hub is not None:
            log.extend(Seen("total", round_, -1, value) for value in _numbers(total))

    linked: dict[str, Any] = {"make_sum": partial(_LinkSums, log)} if on_tree else {}
    run = InProcessRun(plan, shards, watch=watch, **linked)
    for _ in run.rounds():
        pass
    log.append(Seen("model", run.round, -1, np.ravel(run.model)))
    # Where nobody was sampled the engine lets party 0 take a step that is not sent.
    sent = [seen for seen in log if seen.kind != "up" or seen.party in active[seen.round]]
    return Observed(tuple(sent), tuple(active))


class _LinkSums(RoundSum):
    """The sum of a round, writing down what each node of a tree sends to its parent."""

    def __init__(self, log: list[Seen], plan: Plan, facts: PublicFacts, record: Record) -> None:
        super().__init__(plan, facts, record, on_grid=True)
        self._log, self._rows = log, dict[str, dict[int, Array]]()

    def add_row_values(self, name: str, values: Array, cohort: IntArray, weight: float = 1.0) -> None:
        """Note each node's contribution."""
        super().add_row_values(name, values, cohort, weight)
        if weight:
            self._rows.setdefault(name, {}).update(zip(cohort.tolist(), np.array(values), strict=True))

    def open(self) -> Any:
        """The total, once every link is written down."""
        round_ = self.facts.round
        tree = self.plan.tree(round_)
        for rows in self._rows.values():
            for node in tree.upwards[:-1]:
                rows[tree.parents[node]] = rows[tree.parents[node]] + rows[node]
                self._log.append(Seen("link", round_, node, rows[node].ravel()))
        return super().open()


def _record(algorithm: Any) -> Any:
    kind: Any = type(algorithm)
    twin = object.__new__(_make_recording_class(kind))
    twin.__dict__.update(algorithm.__dict__, log=[])
    return twin


@cache
def _make_recording_class(kind: Any) -> Any:
    """A subclass that notes in `log` what passes. Parts of sums have no value yet."""

    def local(self: Any, facts: Any, *rest: Any) -> Any:
        state, up = kind.local(self, facts, *rest)
        for each in dataclasses.fields(up):
            value = getattr(up, each.name)
            if not isinstance(value, SumTerm):
                rows = zip(facts.cohort, value, strict=True)
                self.log.extend(Seen("up", facts.round, int(party), np.array(row).ravel()) for party, row in rows)
        return state, up

    def down(self: Any, facts: Any, hub: Any) -> Any:
        sent = kind.down(self, facts, hub)
        self.log.extend(Seen("down", facts.round, -1, value) for value in _numbers(sent))
        return sent

    return type(kind.__name__, (kind,), {"local": local} | ({"down": down} if hasattr(kind, "down") else {}))


def _numbers(message: Any) -> list[Array]:
    values = [getattr(message, each.name) for each in dataclasses.fields(message)]
    return [np.array(value).ravel() for value in values if isinstance(value, np.ndarray) and value.dtype.kind == "f"]


def _sees(plan: Plan, observer: Observer, inside: frozenset[int], seen: Seen, active: Active) -> bool:
    trust = plan.mode
    if seen.kind == "link":
        # Planned colluders tell whoever looks what is on their own links, the public, too.
        ends = {seen.party, plan.tree(seen.round).parents[seen.party]}
        return isinstance(observer, Eavesdropper) or bool(ends & inside)
    if trust.on_graph and seen.kind != "model":
        return not isinstance(observer, Public) or bool(inside)  # every node learns the total
    if seen.kind == "model" or isinstance(observer, Public):
        return seen.kind == "model"
    insiders = observer.insiders
    if plan.shape == "peer":
        graph = plan.topology
        assert graph is not None
        return not insiders or any(seen.party == i or seen.party in graph.neighbors(i) for i in insiders)
    if not insiders:
        return seen.kind != "up" or (observer.reads_messages and not trust.has_secure_sum)
    return bool(insiders & active[seen.round]) if seen.kind == "down" else seen.party in insiders


def known_coins(plan: Plan, observer: Observer, active: Active) -> Hashable:
    """What an observer knows of the coins of the schedule.

    The whole of them for whoever is on the wire (under a secure sum all parties answer, so only how many rounds there
    were), its own rounds for a party, nothing for the public.
    """
    if observer.reads_messages:
        return len(active) if plan.mode.sums_in_steps else active
    insiders = observer.insiders
    return tuple((round_, insiders & there) for round_, there in enumerate(active) if insiders & there)


def noise_owners_known(plan: Plan, observer: Observer, attacked: int) -> frozenset[int]:
    """The parties whose noise an observer knows: its members, and for the server those that collude with it.

    On a graph the planned colluders are with every observer.
    """
    if plan.mode.on_graph:
        unit, adjacency = plan.problem.unit, plan.problem.adjacency
        query = PrivacyQuery(observer=observer, unit=unit, adjacency=adjacency, party=attacked)
        return find_coalition(plan, query, 0)
    if not isinstance(observer, Server):
        return observer.insiders
    others = [party for party in range(plan.parties) if party != attacked]
    return frozenset(others[: plan.colluders])
