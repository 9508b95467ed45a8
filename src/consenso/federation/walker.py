"""The life of one party of a walk: waits for the token, takes its step, and hands the token on.

The token is the hub. Its number is the round, and whoever gets it takes the step of that round, draws the next holder
from its own entropy, and has all of that on its disk before it acknowledges: so a token that was acknowledged is never
lost, and one that comes a second time is acknowledged and otherwise ignored. The token of a walk leaves only from the
disk that the party's ledger knows as the one that goes on.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.algorithms.shape import Finishes
from consenso.arrays import Array
from consenso.engine.codec import MessageError, decode, decode_values, encode, encode_values
from consenso.engine.coins import make_coins
from consenso.engine.round import take_hub_round
from consenso.engine.sums import RoundSum
from consenso.errors import InputError
from consenso.federation.attendance import Attendance
from consenso.federation.budget_guard import BudgetGuard, NoBudget, go_on_with
from consenso.federation.disk import Disk, bind_disk
from consenso.federation.message_schemas import HubMessageSchemas
from consenso.federation.party import NEVER, model_schema
from consenso.federation.ranges import check_numbers, cut_numbers, largest_number
from consenso.federation.single_party_step import SinglePartyStep, Taken
from consenso.planning.plan import Plan
from consenso.schedules import RandomWalk
from consenso.shards import Shards

START, MODEL = "start", "model"  # what goes around: who has the token first, and the model in the end
FIRST = 0  # the party that draws who has the token first


@dataclass(frozen=True, kw_only=True)
class Hop:
    """A token on its way."""

    number: int
    to: int
    token: bytes


class Walker:
    """One party of a walk."""

    item, wanted = START, (START, MODEL)

    def __init__(self, plan: Plan, shards: Shards, party: int, disk: Disk, *, guard: BudgetGuard | None = None) -> None:
        check_walk(plan)
        self.plan, self.index, self.disk = plan, party, disk
        self.neighbours = _neighbours(plan, party)
        self._step = SinglePartyStep(plan, shards, party)
        self._guard = guard or NoBudget(plan)
        self._live = go_on_with(disk, self._guard)
        bind_disk(disk, self._step.cohort)
        self._attendance = Attendance(plan, party)
        self._schemas = HubMessageSchemas(plan)
        self._mutex = threading.RLock()

    @property
    def round(self) -> int:
        """The last round in which the token was here; -1 before the first."""
        return int(self._place["seen"])

    def largest(self) -> int:
        """Bytes of the longest message."""
        return self._schemas.largest()

    def begin(self) -> None:
        """One party draws who has the token first; whoever knows that it does takes the first step."""
        with self._mutex:
            self._live.go_on()
            if self.index == FIRST and self.disk.read_bytes("item/start") is None:
                first = self._draw(0, None)
                self.disk.commit({"item/start": json.dumps(first).encode()}, [{"what": "start"}])
            self.take_first_step()
            self._stay()

    def take_first_step(self) -> None:
        """Take the first step, if the token starts here and has not been here."""
        blob = self.disk.read_bytes("item/start")
        if blob is None or json.loads(blob) != self.index or self.round != NEVER:
            return
        self.receive(0, encode(self.plan.algorithm.start(self.plan.facts)))

    def receive(self, number: int, token: bytes) -> None:
        """Take the token; when this returns, what follows from it is on the disk."""
        with self._mutex:
            if not 0 <= number < self.plan.rounds:
                raise MessageError("the token has a number that no round of the plan has.")
            self._live.go_on()
            if number <= self.round:
                return  # it was here before: whoever sends it did not hear that it arrived
            self._visit(number, token)
            self._stay()

    def hop(self) -> Hop | None:
        """The last token that left here; None if there was none, or if the walk ended here."""
        with self._mutex:
            place, token = self._place, self.disk.read_bytes("token")
            if token is not None:
                self._live.go_on()
        if token is None or place["to"] is None:
            return None
        return Hop(number=place["seen"] + 1, to=place["to"], token=token)

    def check_item(self, name: str, blob: bytes) -> None:
        """Refuse what does not go around on a walk."""
        if name == MODEL:
            decode_values(blob, model_schema(self.plan))
            return
        parties = [json.dumps(party).encode() for party in range(self.plan.parties)]
        if name != START or blob not in parties:
            raise MessageError("something goes around that is neither a start nor a model.")

    def owner(self, name: str) -> int | None:
        """Who may say it; None for the model, which whoever had the token last signs, and nobody else knows who."""
        return FIRST if name == START else None

    def item_bytes(self, name: str) -> bytes | None:
        """What goes around under a name, if it is here and this disk is the one that goes on."""
        with self._mutex:
            self._live.go_on()
            return self.disk.read_bytes(f"item/{name}")

    def model(self) -> Array:
        """The model, once it is here."""
        blob = self.item_bytes(MODEL)
        assert blob is not None
        model: Array = decode_values(blob, model_schema(self.plan))["model"]
        return model

    def end(self) -> None:
        """The run has ended."""
        if self.round != NEVER:
            self._guard.open()
            self._guard.close()

    # --- inside -------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> dict[str, Any]:
        place: dict[str, Any] = self.disk.read_json("place") or {"seen": NEVER, "to": None, "steps": 0, "spent": {}}
        return place

    def _stay(self) -> None:
        """A walk without a graph may draw the same party again."""
        while (hop := self.hop()) is not None and hop.to == self.index:
            self._visit(hop.number, hop.token)

    def _visit(self, number: int, token: bytes) -> None:
        """The step of one round, and who has the token next."""
        algorithm, place = self.plan.algorithm, self._place
        self._attendance.check(number, place["steps"])
        self._guard.open()
        forms, facts = self._schemas.at(number), self.plan.facts.at(number)
        hub = decode(type(algorithm.start(self.plan.facts)), token, forms.hub)
        check_numbers(hub, largest_number(self.plan.facts.problem))
        kept = self.disk.read_bytes("state")
        state = self._step.enroll() if kept is None else decode(self._step.state_kind, kept)
        made: list[Taken] = []

        def add_up(down: Any) -> Any:
            taken = self._step.take(number, state, place["spent"], down)
            made.append(taken)
            total = RoundSum(self.plan, facts)
            total.add(taken.message, np.array([self.index], dtype=np.int64))
            return total.open()

        after = take_hub_round(algorithm, facts, hub, add_up)
        (taken,) = made
        after = cut_numbers(after, largest_number(self.plan.facts.problem))
        following = self.plan.facts.at(number + 1)
        over = number + 1 == self.plan.rounds or (
            isinstance(algorithm, Finishes) and algorithm.finished(following, after)
        )
        to = None if over else self._draw(number + 1, self.index)
        changes: dict[str, Any] = {
            "state": encode(taken.state),
            "token": encode(after),
            "place": {"seen": number, "to": to, "steps": place["steps"] + 1, "spent": taken.spent},
        }
        if over:
            model = np.asarray(algorithm.model(following, after), dtype=np.float64)
            changes["item/model"] = encode_values("Model", {"model": model})
        self._live.commit(changes, [{"what": "step", "round": number, "releases": list(taken.releases)}])

    def _draw(self, round_: int, here: int | None) -> int:
        """Who has the token in a round, by this party's own coin."""
        previous = None if here is None else np.array([here], dtype=np.int64)
        return int(self.plan.schedule.active(round_, previous, self.plan.parties, make_coins(self.plan.sampler))[0])


def check_walk(plan: Plan) -> None:
    """Refuse what a walk cannot run, before anything starts."""
    name = type(plan.algorithm).__name__
    if plan.shape != "hub" or not isinstance(plan.schedule, RandomWalk):
        raise InputError(
            f"{name}: on a graph run algorithms of neighbours, and hub algorithms that walk; set the schedule to "
            "'random-walk', or use `consenso serve`."
        )
    if not plan.mode.noise_on_messages:
        raise InputError(
            f"{name}: on a walk everybody adds its own noise, there is no curator and no sum; set trust to 'local'."
        )


def _neighbours(plan: Plan, party: int) -> tuple[int, ...]:
    """Whom a party may hand the token to, and from whom it may get it."""
    schedule = plan.schedule
    assert isinstance(schedule, RandomWalk)
    if schedule.topology is not None:
        return tuple(int(other) for other in schedule.topology.neighbors(party))
    return tuple(other for other in range(plan.parties) if other != party)
