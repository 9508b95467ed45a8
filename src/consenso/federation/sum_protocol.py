"""How a hub turns the messages of a round into their total, and what a party does on its side.

A summation is a pair: the hub's `Summation` asks in one or more stages, the party's `Contributor` answers each of them.
Engines carry the bytes, keep them on disk and ask again where nothing came; they know nothing of what is in them.
`PlainSum` adds messages as they come: for local noise, and for a hub that is trusted and adds the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from consenso.arrays import IntArray
from consenso.engine.codec import MessageError
from consenso.engine.round import add_messages
from consenso.engine.sums import RoundSum
from consenso.errors import InputError
from consenso.federation.message_schemas import HubMessageSchemas, MessageSchema
from consenso.federation.ranges import largest_contribution, largest_number
from consenso.planning.plan import Plan
from consenso.privacy.releaser import Record, SumTerm
from consenso.privacy.run_spec import largest_bounds
from consenso.public_facts import PublicFacts
from consenso.schedules import PoissonSubset

STEP = "step"

# Refuses an answer by raising MessageError.
Check = Callable[[int, bytes], None]


class Asking(Protocol):
    """Reaches parties within one round."""

    def __call__(
        self, stage: str, bodies: Mapping[int, bytes], check: Check, *, partial: bool = False
    ) -> dict[int, bytes]:
        """Send each party its bytes; the answers that pass the check, in any order.

        Waits for everybody. With `partial`, or where the schedule allows it, goes on after the engine's timeout without
        those who did not answer.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class HubTurn:
    """One round as the hub sees it."""

    plan: Plan
    facts: PublicFacts  # of everyone, at this round
    down: Any
    down_bytes: bytes
    asked: IntArray  # the parties of this round, or everybody where parties draw their own coins
    schemas: HubMessageSchemas
    record: Record
    ask: Asking
    memory: dict[str, bytes]  # what the summation keeps between rounds; saved with the round


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """The total of a round, and the parties that are in it."""

    total: Any
    counted: tuple[int, ...]


class Summation(Protocol):
    """How a hub adds up the messages of a round."""

    def gather(self, turn: HubTurn) -> Gathered:
        """Ask, and add up."""
        ...


@dataclass(frozen=True, kw_only=True)
class PartyTurn:
    """One stage of one round as a party sees it."""

    plan: Plan
    party: int
    facts: PublicFacts  # of this party alone, at this round
    stage: str
    body: bytes
    memory: dict[str, bytes]  # what the contributor keeps between stages and rounds; saved with the answer
    takes_part: Callable[[], bool]  # whether the schedule, or the party's own coin, has it in this round
    step: Callable[[bytes], bytes]  # the message, from what the hub sent down: made once a round, then repeated
    silent: Callable[[bytes], bytes]  # the message with the noise alone, of a party that was not sampled
    form: Callable[[], MessageSchema]  # what both look like


class Contributor(Protocol):
    """How a party answers a hub that adds up."""

    def answer(self, turn: PartyTurn) -> bytes:
        """The answer to one stage. What it releases it takes from `step` or `silent`."""
        ...


class PlainSum:
    """Adds the messages up in the order of the parties; an empty message is that of a party that sits out."""

    def gather(self, turn: HubTurn) -> Gathered:
        """One question to each party, one sum."""
        form = turn.schemas.at(turn.facts.round).up
        expected, may_sit_out = expect_costs(turn, form), own_coins(turn.plan)
        parts = turn.schemas.contributions(turn.facts, turn.down)
        read: dict[int, tuple[bytes, Any]] = {}  # what has passed the check, by party

        def check(party: int, blob: bytes) -> None:
            if blob:
                message = form.read(blob)
                check_costs(message, expected)
                check_contribution(turn, party, message, parts)
                read[party] = blob, message
            elif not may_sit_out:
                raise MessageError("an empty message came in a round that everybody who was asked takes part in.")

        answers = turn.ask(STEP, dict.fromkeys((int(party) for party in turn.asked), turn.down_bytes), check)
        counted = tuple(party for party in sorted(answers) if answers[party])
        for party in counted:
            if party not in read or read[party][0] != answers[party]:
                check(party, answers[party])  # a conversation may hand back what it did not check
        parties = _Answers(form, {party: read[party][1] for party in counted}, expected)
        total = RoundSum(turn.plan, turn.facts, turn.record)
        return Gathered(total=add_messages(parties, turn.down, total), counted=counted)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Parties of which a hub has the answers."""

    form: MessageSchema
    answers: Mapping[int, Any]  # in the order of the parties
    costs: Mapping[str, tuple[float, float]]

    def active(self) -> list[IntArray]:
        """Those who took part, each by itself."""
        return [np.array([party], dtype=np.int64) for party in self.answers]

    def send(self, cohort: IntArray, down: Any) -> list[Any]:
        """What a party has answered."""
        return [self.answers[int(cohort[0])]]

    def stand_in(self, down: Any) -> Any:
        """Nothing: a trusted hub adds its noise to it."""
        return self.form.silence(self.costs)

    def silent(self) -> list[IntArray]:
        """Nobody: without a secure sum, no party adds a share of noise for others."""
        return []


class PlainContributor:
    """Takes the step, or sits out with an empty message."""

    def answer(self, turn: PartyTurn) -> bytes:
        """The message of the one stage that there is."""
        if turn.stage != STEP:
            raise MessageError(f"the hub asks for a stage that a plain sum does not have; its one stage is {STEP!r}.")
        return turn.step(turn.body) if turn.takes_part() else b""


def expect_costs(turn: HubTurn, form: MessageSchema) -> dict[str, tuple[float, float]]:
    """Bound and share of each term of a sum, which follow from what the hub sent down and are the same for everyone."""
    plain = dict.fromkeys(form.terms, (1.0, 1.0))
    if not any(part.release.adaptive or part.release.parts for part in form.terms.values()):
        return plain
    return turn.schemas.costs(turn.facts, turn.down)


def check_costs(message: Any, expected: Mapping[str, tuple[float, float]]) -> None:
    """Refuse a message that claims another cost than everybody's."""
    for name, (bound, share) in expected.items():
        part = getattr(message, name)
        if (part.bound, part.share) != (bound, share):
            raise MessageError(f"{type(message).__name__}: the bound or the share of {name!r} is not everybody's.")


def check_contribution(turn: HubTurn, party: int, message: Any, parts: Mapping[str, SumTerm]) -> None:
    """Refuse numbers that no honest party sends: parts of sums have a declared length, and noise does not go far."""
    spec, algorithm = turn.plan, turn.plan.algorithm
    facts = turn.facts.only(np.array([party], dtype=np.int64))
    declared = {release.name: release for release in spec.remember(algorithm.releases)(facts)}
    bounds = largest_bounds(spec, algorithm.releases, facts.round)
    for name, value in vars(message).items():
        numbers = value.value if isinstance(value, SumTerm) else value
        if not isinstance(numbers, np.ndarray):
            continue
        most = largest_number(facts.problem)
        if name in parts:
            part = parts[name]
            release, largest = declared[part.release.name], bounds[part.release.name]
            most = largest_contribution(spec, facts, release, largest, float(part.bound), float(part.share))
        if not np.abs(numbers).max(initial=0.0) <= most:
            raise MessageError(
                f"{type(message).__name__}: a number in {name!r} of party {party} is larger than the {most:.6g} that "
                "its declaration and its noise allow."
            )


def plain_parts(plan: Plan) -> tuple[Summation, Contributor]:
    """The plain sum, for the trusts that it serves."""
    if plan.mode.has_secure_sum:
        raise InputError("trust='secure-sum': a plain sum shows the hub every message; use the secure sum.")
    return PlainSum(), PlainContributor()


def own_coins(plan: Plan) -> bool:
    """Whether parties draw for themselves if they take part: Poisson sampling needs nobody else's word for it."""
    return isinstance(plan.schedule, PoissonSubset)
