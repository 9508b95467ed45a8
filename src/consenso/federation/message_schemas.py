"""What the messages of a run must look like, found by running it on made-up rows of zeros, without noise.

Nothing private is looked at: from public facts an engine finds out which messages it may receive, and refuses every
other one. Where two rounds that release the same values had the same messages, all such rounds are taken to have them,
so that a run of many rounds costs a few trial rounds. An algorithm whose messages change their shape without any sign
of it in its releases would find its own messages refused.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from consenso.algorithms.shape import HubAlgorithm, PeerAlgorithm
from consenso.arrays import Array
from consenso.engine.codec import MessageError, RecordSchema, decode_values, encode_values
from consenso.engine.round import take_hub_round
from consenso.engine.step import make_zero_rows, take_step
from consenso.engine.sums import RoundSum
from consenso.federation.node_round import take_node_round
from consenso.planning.plan import Plan
from consenso.privacy.noise import NoNoise
from consenso.privacy.releaser import SumTerm
from consenso.public_facts import PublicFacts

BOUND, SHARE = ":bound", ":share"  # the term of a sum travels as its value, its bound and its share


@dataclass(frozen=True, kw_only=True)
class MessageSchema:
    """How a party's message travels: its record, and for each term of a sum the release that it belongs to."""

    record: type[Any]
    schema: RecordSchema
    terms: Mapping[str, SumTerm]

    @classmethod
    def of(cls, message: Any) -> tuple[MessageSchema, bytes]:
        """The form of a message, and the message itself in bytes."""
        values: dict[str, Any] = {}
        terms: dict[str, SumTerm] = {}
        for each in dataclasses.fields(message):
            value = getattr(message, each.name)
            if isinstance(value, SumTerm):
                values[each.name], values[each.name + BOUND] = value.value, float(value.bound)
                values[each.name + SHARE] = float(value.share)
                terms[each.name] = value.change(np.zeros_like(value.value))
            else:
                values[each.name] = value
        kind = type(message)
        form = cls(record=kind, schema=RecordSchema.of_values(kind.__name__, values), terms=terms)
        return form, encode_values(kind.__name__, values)

    def read(self, blob: bytes) -> Any:
        """The message in bytes that came from outside."""
        values = decode_values(blob, self.schema)
        for name, like in self.terms.items():
            bound, share = values.pop(name + BOUND), values.pop(name + SHARE)
            if not (bound > 0 and 0 < share <= 1):
                raise MessageError(f"{self.schema.record}: the bound or the share of {name!r} is out of range.")
            values[name] = like.change(values[name], bound, share)
        return self.record(**values)

    def silence(self, costs: Mapping[str, tuple[float, float]]) -> Any:
        """A message that adds nothing to a sum, with the bound and share of each term of a sum."""
        zeros: dict[str, Any] = {
            each.name: np.zeros(each.shape) for each in self.schema.fields if not each.name.endswith((BOUND, SHARE))
        }
        for name, like in self.terms.items():
            zeros[name] = like.change(like.value, *costs[name])
        return self.record(**zeros)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSchema) and (self.record, self.schema) == (other.record, other.schema)

    def __hash__(self) -> int:
        return hash((self.record, self.schema))


@dataclass(frozen=True)
class HubRoundSchemas:
    """The messages of one round around a hub."""

    hub: RecordSchema  # before the round
    down: RecordSchema
    down_record: type[Any]
    up: MessageSchema


@dataclass(frozen=True)
class PeerRoundSchemas:
    """The messages of one round between neighbours."""

    said: RecordSchema
    record: type[Any]
    model: RecordSchema


Forms = TypeVar("Forms", HubRoundSchemas, PeerRoundSchemas)


class _Rounds(Generic[Forms]):
    """The schemas of rounds, tried one after the other as far as somebody asks."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.spec = plan, _quiet(plan)
        self._next, self._mutex = 0, threading.Lock()  # messages are checked in whatever thread they come in
        self._rounds: dict[int, Forms] = {}
        self._last: dict[Any, Forms] = {}  # by what is released
        self._settled: dict[Any, Forms] = {}

    def at(self, round_: int) -> Forms:
        """The forms of a round."""
        if round_ in self._rounds:
            return self._rounds[round_]
        released = self._describe_releases(round_)
        with self._mutex:
            while released not in self._settled and self._next <= round_:
                self._advance()
        return self._rounds.get(round_) or self._settled.get(released) or self._last[released]

    def _advance(self) -> None:
        round_, released = self._next, self._describe_releases(self._next)
        found = self._try_round(self.spec.facts.at(round_))
        if self._last.get(released) == found:
            self._settled[released] = found
        self._last[released] = self._rounds[round_] = found
        self._next += 1

    def _describe_releases(self, round_: int) -> Any:
        one = self.spec.facts.only(self.spec.facts.cohort[:1]).at(round_)
        return tuple(
            (each.name, each.size, each.times) for each in self.spec.remember(self.plan.algorithm.releases)(one)
        )

    def _try_round(self, facts: PublicFacts) -> Forms:
        raise AssertionError


class HubMessageSchemas(_Rounds[HubRoundSchemas]):
    """The messages of a hub algorithm."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        algorithm: HubAlgorithm = plan.algorithm
        self._party = self.spec.facts.cohort[:1]
        self._rows = make_zero_rows(self.spec.facts.problem, 0, 1)
        self._hub = algorithm.start(self.spec.facts)
        self._state = algorithm.enroll(self.spec.facts.only(self._party), self._rows)
        self._asked = self._state
        self._parts: dict[Any, tuple[Any, dict[str, SumTerm]]] = {}  # by what is released, with what was sent down

    def largest(self) -> int:
        """Bytes of the longest message of the run, the final model included."""
        rounds = {0, min(1, self.spec.rounds - 1), self.spec.rounds - 1}
        forms = [self.at(round_) for round_ in sorted(rounds)]
        model = RecordSchema.of_values("Model", {"model": np.empty(self.spec.facts.dim)})
        return max(model.size, *(max(each.hub.size, each.down.size, each.up.schema.size) for each in forms))

    def costs(self, facts: PublicFacts, down: Any) -> dict[str, tuple[float, float]]:
        """Bound and share that every party names for each term of a sum, given what the hub really sends down."""
        parts = self.contributions(facts, down)
        return {name: (float(part.bound), float(part.share)) for name, part in parts.items()}

    def contributions(self, facts: PublicFacts, down: Any) -> dict[str, SumTerm]:
        """Which fields of a message are parts of a sum, and of which: as if a curator added the noise."""
        released = self._describe_releases(facts.round)
        asked, parts = self._parts.get(released, (None, {}))
        # Only bounds that are adaptive and costs in parts follow what is sent down.
        follows = any(part.release.adaptive or part.release.parts for part in parts.values())
        if released not in self._parts or (follows and asked is not down):
            trusting, facts = replace(self.spec, trust="curator"), replace(facts, problem=self.spec.problem)
            # Its own state is kept, so that what took a party long to check once is not checked in every round.
            self._asked, up = self._step(trusting, facts, self._asked, down)
            fields = {each.name: getattr(up, each.name) for each in dataclasses.fields(up)}
            parts = {name: part for name, part in fields.items() if isinstance(part, SumTerm)}
            self._parts[released] = down, parts
        return parts

    def _step(self, plan: Plan, facts: PublicFacts, state: Any, down: Any) -> tuple[Any, Any]:
        return take_step(plan, facts.only(self._party), self._rows, state, down)

    def _try_round(self, facts: PublicFacts) -> HubRoundSchemas:
        before = self._hub
        seen: list[HubRoundSchemas] = []

        def add_up(down: Any) -> Any:
            self._state, up = self._step(self.spec, facts, self._state, down)
            form, blob = MessageSchema.of(up)
            hub = RecordSchema.of(before)
            seen.append(HubRoundSchemas(hub=hub, down=RecordSchema.of(down), down_record=type(down), up=form))
            total = RoundSum(self.spec, facts)
            total.add(form.read(blob), self._party)
            return total.open()

        self._hub = take_hub_round(self.plan.algorithm, facts, before, add_up)
        return seen[0]


class PeerMessageSchemas(_Rounds[PeerRoundSchemas]):
    """The messages of a peer algorithm, as one node says them."""

    def largest(self) -> int:
        """Bytes of the longest message of the run, the final model included."""
        forms = [self.at(round_) for round_ in sorted({0, self.spec.rounds - 1})]
        return max(max(each.said.size, each.model.size) for each in forms)

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        algorithm: PeerAlgorithm = plan.algorithm
        self._party = self.spec.facts.cohort[:1]
        self._rows = make_zero_rows(self.spec.facts.problem, 0, 1)
        self._state = algorithm.enroll(self.spec.facts.only(self._party), self._rows)

    def _try_round(self, facts: PublicFacts) -> PeerRoundSchemas:
        here = facts.only(self._party)
        state, said = take_step(self.spec, here, self._rows, self._state)
        self._state = take_node_round(self.spec, here, state, {0: said})
        model: Array = self.plan.algorithm.models(here, self._state)
        return PeerRoundSchemas(
            said=RecordSchema.of(said), record=type(said), model=RecordSchema.of_values("Model", {"model": model[0]})
        )


def _quiet(plan: Plan) -> Plan:
    """The plan with one record for every party, without noise; what is public and heard of the noise stays."""
    problem = replace(plan.problem, sizes=np.ones(plan.parties, dtype=np.int64))
    silent = dict.fromkeys(plan.noise, NoNoise())
    return replace(plan, facts=replace(plan.facts, problem=problem), noise=silent, probe=None)
