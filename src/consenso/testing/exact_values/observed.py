"""What a run of the real engine shows, and who sees which of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.engine.in_process import InProcessEngine
from consenso.engine.run import coins_of, get_model
from consenso.planning.plan import Plan
from consenso.privacy.observers import Eavesdropper, Observer, Public, Server, members
from consenso.privacy.releaser import SumToken
from consenso.shards import Shards
from consenso.testing.exact_values.scripted import Scripted

Active = tuple[frozenset[int], ...]  # who took part, by round


@dataclass(frozen=True, eq=False)
class Seen:
    """One value of a run: a message of a party, the sum that the hub opened, what it sent, or the final model."""

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

    def positions(self, plan: Plan, observer: Observer) -> Array:
        """Which of the numbers are in an observer's view, as a mask."""
        return np.concatenate(
            [np.full(len(seen.value), _sees(plan, observer, seen, self.active)) for seen in self.values]
        )


def observe(plan: Plan, shards: Shards, sampler: Scripted) -> Observed:
    """Run a plan with scripted noise and coins."""
    log: list[Seen] = []
    active: list[frozenset[int]] = []
    plan = replace(plan, algorithm=_recording(plan.algorithm, log), sampler=sampler)
    engine = InProcessEngine()
    progress = engine.start(plan.algorithm, plan.spec, shards)

    def watch(round_: int, total: Any, hub: Any) -> None:
        everyone = range(plan.spec.parties)
        active.append(frozenset(everyone if progress.previous is None else map(int, progress.previous)))
        if hub is not None:
            log.extend(Seen("total", round_, -1, value) for value in _numbers(total))

    for _ in engine.rounds(plan.algorithm, plan.spec, shards, progress, coins_of(plan, progress), watch):
        pass
    log.append(Seen("model", progress.round, -1, np.ravel(get_model(plan, progress))))
    # Where nobody was sampled the engine lets party 0 take a step that is not sent.
    sent = [seen for seen in log if seen.kind != "up" or seen.party in active[seen.round]]
    return Observed(tuple(sent), tuple(active))


def _recording(algorithm: Any, log: list[Seen]) -> Any:
    """The same algorithm, writing down what its parties send and are sent."""
    kind: Any = type(algorithm)
    twin = object.__new__(_recording_class(kind))
    twin.__dict__.update(algorithm.__dict__, log=log)
    return twin


@cache
def _recording_class(kind: Any) -> Any:
    """A subclass that notes in `log` what passes. SumToken messages have no value."""

    def local(self: Any, facts: Any, *rest: Any) -> Any:
        state, up = kind.local(self, facts, *rest)
        for each in dataclasses.fields(up):
            value = getattr(up, each.name)
            if not isinstance(value, SumToken):
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


def _sees(plan: Plan, observer: Observer, seen: Seen, active: Active) -> bool:
    if seen.kind == "model" or isinstance(observer, Public):
        return seen.kind == "model"
    insiders = members(observer)
    if plan.spec.shape == "peer":
        graph = plan.spec.topology
        assert graph is not None
        return not insiders or any(seen.party == i or seen.party in graph.neighbors(i) for i in insiders)
    if not insiders:
        return seen.kind != "up" or plan.spec.policy.trust != "secure-sum"
    return bool(insiders & active[seen.round]) if seen.kind == "down" else seen.party in insiders


def known_coins(plan: Plan, observer: Observer, active: Active) -> Hashable:
    """What an observer knows of the coins of the schedule.

    The whole of them for whoever is on the wire (under a secure sum all parties answer, so only how many rounds there
    were), its own rounds for a party, nothing for the public.
    """
    if isinstance(observer, Eavesdropper | Server):
        return len(active) if plan.spec.policy.trust == "secure-sum" else active
    insiders = members(observer)
    return tuple((round_, insiders & there) for round_, there in enumerate(active) if insiders & there)


def noise_owners_known(plan: Plan, observer: Observer, attacked: int) -> frozenset[int]:
    """The parties whose noise an observer knows: its members, and for the server those that collude with it."""
    if not isinstance(observer, Server):
        return members(observer)
    others = [party for party in range(plan.spec.parties) if party != attacked]
    return frozenset(others[: plan.spec.colluders])
