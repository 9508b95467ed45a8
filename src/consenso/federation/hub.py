"""The hub of a deployed run: asks the parties round by round, adds up, and keeps every finished round on its disk.

The hub's next state is on the disk before anything made from it is sent, and so is whom a round asks: a restarted hub
asks the same parties the same question again, and they repeat their answers. Noise that a trusted hub drew for a total
it did not keep was seen by nobody. A trusted hub that draws noise has a token outside of its disk, so that a copy of
the disk cannot draw noise anew for the same answers.

Where parties are Poisson-sampled each draws its own coin, and a party that does not answer in time counts as one that
was not sampled: it adds zero, and sums are divided by what the plan says, never by how many answered. That never makes
the guarantee better: it is the schedule that hides a party, not its silence, so everything stays charged in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from consenso.algorithms.shape import Finishes
from consenso.arrays import Array, IntArray
from consenso.engine.codec import decode, encode, encode_values
from consenso.engine.coins import make_coins
from consenso.engine.continuation import UserTokens, draws_private_noise
from consenso.engine.round import take_hub_round
from consenso.errors import InputError
from consenso.federation.disk import Disk, LiveDisk
from consenso.federation.message_schemas import HubMessageSchemas
from consenso.federation.party import NEVER
from consenso.federation.ranges import cut_numbers, largest_number
from consenso.federation.round_log import RoundLog
from consenso.federation.single_party_step import require_sampler
from consenso.federation.sum_protocol import Check, Gathered, HubTurn, Summation, own_coins, plain_parts
from consenso.planning.plan import Plan
from consenso.schedules import Coins, RandomWalk


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a hub asks one party."""

    round: int
    stage: str
    body: bytes
    counted: int  # the party's last round that entered a sum


class Conversation(Protocol):
    """How a hub reaches its parties: an engine."""

    def ask(self, questions: Mapping[int, Question], check: Check, *, partial: bool) -> dict[int, bytes]:
        """Ask every party its question, again and again, until its answer passes the check.

        With `partial`, go on without those who have not answered when the engine's patience ends; never without any.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Round:
    """What may be told of a finished round: not who was sampled."""

    round: int
    missing: tuple[int, ...]  # parties that did not answer in time


class HubRun:
    """Runs a plan from where its disk stands."""

    def __init__(self, plan: Plan, disk: Disk, *, summation: Summation | None = None) -> None:
        check_star(plan)
        require_sampler(plan)
        self.plan, self.disk = plan, disk
        draws = plan.mode.noise_at_hub and draws_private_noise(plan)
        self._live = LiveDisk(disk, UserTokens() if draws else None, f"{disk.run}/{disk.owner}")
        self._summation = summation or plain_parts(plan)[0]
        self._schemas = HubMessageSchemas(plan)
        self._partial = own_coins(plan)
        if disk.read_json("place") is None:
            place = dict(_PLACE, counted=[NEVER] * plan.parties)
            coins = self._coins(place)
            place["last"] = plan.schedule.length(plan.rounds, coins)
            place["active"] = self._active(place)
            disk.commit({"place": place, "hub": encode(plan.algorithm.start(plan.facts))})

    @property
    def round(self) -> int:
        """The next round, or the number of rounds that were run."""
        return int(self._place["round"])

    @property
    def finished(self) -> bool:
        """Whether no round is left."""
        place = self._place
        algorithm, facts = self.plan.algorithm, self.plan.facts.at(place["round"])
        if place["round"] >= place["last"]:
            return True
        return isinstance(algorithm, Finishes) and algorithm.finished(facts, self._hub)

    def rounds(self, conversation: Conversation) -> Iterator[Round]:
        """Run the rounds that are left; yields after each is kept."""
        self._live.go_on()
        while not self.finished:
            yield self._round(conversation)

    def model(self) -> Array:
        """The model as it stands."""
        self._live.go_on()
        model: Array = self.plan.algorithm.model(self.plan.facts.at(self.round), self._hub)
        return model

    def model_bytes(self) -> bytes:
        """The model as it is sent to the parties."""
        return encode_values("Model", {"model": np.asarray(self.model(), dtype=np.float64)})

    # --- inside -------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> dict[str, Any]:
        place: dict[str, Any] = self.disk.read_json("place") or {}
        return place

    @property
    def _hub(self) -> Any:
        blob = self.disk.read_bytes("hub")
        assert blob is not None
        kind: type[Any] = type(self.plan.algorithm.start(self.plan.facts))
        return decode(kind, blob)

    def _round(self, conversation: Conversation) -> Round:
        place, hub = self._place, self._hub
        round_: int = place["round"]
        facts, algorithm = self.plan.facts.at(round_), self.plan.algorithm
        asked = np.array(place["active"], dtype=np.int64)
        book = RoundLog(place["spent"])
        silent: set[int] = set()

        def ask(stage: str, bodies: Mapping[int, bytes], check: Check, *, partial: bool = False) -> dict[int, bytes]:
            questions = {
                party: Question(round=round_, stage=stage, body=body, counted=place["counted"][party])
                for party, body in bodies.items()
            }
            # A run begins when everybody has come; afterwards it goes on without those who left.
            answers = conversation.ask(questions, check, partial=partial or (self._partial and round_ > 0))
            silent.update(set(questions) - set(answers))
            return answers

        memory = {
            name.removeprefix("memory/"): self.disk.read_bytes(name) or b"" for name in self.disk.names("memory/")
        }
        before = set(memory)
        made: list[Gathered] = []

        def add_up(down: Any) -> Any:
            down = cut_numbers(down, largest_number(self.plan.problem))
            turn = HubTurn(
                plan=self.plan,
                facts=facts,
                down=down,
                down_bytes=encode(down),
                asked=asked,
                schemas=self._schemas,
                record=book.record,
                ask=ask,
                memory=memory,
            )
            made.append(self._summation.gather(turn))
            return made[0].total

        after = take_hub_round(algorithm, facts, hub, add_up)
        (gathered,) = made
        for party in gathered.counted:
            place["counted"][party] = round_
        place.update(round=round_ + 1, previous=place["active"], spent=book.spent)
        place["active"] = self._active(place) if place["round"] < place["last"] else []
        told = Round(round=round_, missing=tuple(sorted(set(silent) - set(gathered.counted))))
        row = {"what": "round", "round": round_, "missing": list(told.missing), "releases": book.releases}
        changes: dict[str, Any] = {f"memory/{name}": memory.get(name) for name in before | set(memory)}
        self._live.commit({**changes, "hub": encode(after), "place": place}, [row])
        return told

    def _coins(self, place: dict[str, Any]) -> Coins:
        return make_coins(self.plan.sampler, place["coins"])

    def _active(self, place: dict[str, Any]) -> list[int]:
        """Whom the next round asks."""
        if self._partial:
            return list(range(self.plan.parties))
        previous: IntArray | None = None
        if place["previous"] is not None:
            previous = np.array(place["previous"], dtype=np.int64)
        active = self.plan.schedule.active(place["round"], previous, self.plan.parties, self._coins(place))
        return [int(party) for party in active]


_PLACE: dict[str, Any] = {
    "round": 0,
    "last": 0,
    "previous": None,
    "active": [],
    "counted": [],  # by party, the last of its rounds that entered a sum
    "coins": {},
    "spent": {},
}


def check_star(plan: Plan) -> None:
    """Refuse what a server and its clients cannot run, before anything starts."""
    name = type(plan.algorithm).__name__
    if plan.shape == "peer":
        raise InputError(f"{name}: it has no hub, its nodes talk to their neighbours; run it with `consenso peer`.")
    if plan.mode.on_graph:
        raise InputError(f"{name}: its sums go from peer to peer, without a server; run it with `consenso peer`.")
    if isinstance(plan.schedule, RandomWalk):
        raise InputError(
            f"{name}: a walk goes from party to party, and a server would see every step of it; run it with "
            "`consenso peer`."
        )
    if plan.parties == 1 and plan.mode.noise_at_hub:
        raise InputError(
            f"{name}: its one party is its own curator, and a server would receive what only the curator may see; "
            "run it with `consenso train`, or set trust to 'local'."
        )
