"""The life of one party around a hub: a cohort of one, on its own disk.

Whatever it is asked, it first looks whether it answered that before: then it repeats the stored bytes. A new answer is
on its disk, with the state and the journal that belong to it, before it is handed to whoever sends it, and its ledger
knows that this disk is the one that goes on. So a restarted party goes on at its round, a copy of its disk sends
nothing, no exact value ever gets a second noise that leaves, and the journal has exactly what left.

The hub tells with every question which of the party's rounds it counted last. A party whose answer came too late to be
counted takes its step back, so that its state is what the hub's sum is made of; what was released stays in the journal.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.engine.codec import MessageError, RecordSchema, decode, decode_values, encode
from consenso.engine.row_binding import ROWS
from consenso.errors import InputError
from consenso.federation.attendance import Attendance
from consenso.federation.budget_guard import BudgetGuard, NoBudget, go_on_with
from consenso.federation.disk import Disk, bind_disk
from consenso.federation.message_schemas import HubMessageSchemas, MessageSchema
from consenso.federation.single_party_step import SinglePartyStep, Taken
from consenso.federation.sum_protocol import Contributor, PartyTurn, plain_parts
from consenso.planning.plan import Plan
from consenso.shards import Shards

log = logging.getLogger(__name__)

NEVER = -1
MEMORY = "memory/"


def model_schema(plan: Plan) -> RecordSchema:
    """What the final model looks like on its way to the parties."""
    return RecordSchema.of_values("Model", {"model": np.empty(plan.problem.dim)})


class Party:
    """Answers a hub. One object per process; safe to call from several threads, which take turns."""

    def __init__(
        self,
        plan: Plan,
        shards: Shards,
        party: int,
        disk: Disk,
        *,
        guard: BudgetGuard | None = None,
        contributor: Contributor | None = None,
    ) -> None:
        if plan.shape != "hub":
            raise InputError(f"Party: {type(plan.algorithm).__name__} has no hub; run it with its neighbours.")
        self.plan, self.index, self.disk = plan, party, disk
        self._step = SinglePartyStep(plan, shards, party)
        self._guard = guard or NoBudget(plan)
        self._live = go_on_with(disk, self._guard)
        if not self.finished:
            bind_disk(disk, self._step.cohort)
        self._contributor = contributor or plain_parts(plan)[1]
        self._attendance = Attendance(plan, party)
        self._schemas = HubMessageSchemas(plan)
        self._mutex = threading.Lock()
        if disk.read_json("place") is None:
            disk.commit({"place": _PLACE, "settled": encode(self._step.enroll())})

    @property
    def round(self) -> int:
        """The last round that was answered; -1 before the first."""
        return int(self._place["round"])

    @property
    def finished(self) -> bool:
        """Whether the hub told that the run has ended."""
        return self.disk.read_bytes("model") is not None

    @property
    def model(self) -> Array | None:
        """The final model, once it is there."""
        blob = self.disk.read_bytes("model")
        return None if blob is None else decode_values(blob, model_schema(self.plan))["model"]

    def answer(self, *, round_: int, stage: str, body: bytes, counted: int) -> bytes:
        """The answer to a question of the hub; the same question gets the same bytes.

        MessageError says why a question is refused; nothing is released then.
        """
        with self._mutex:
            place = self._place
            self._check_round(round_, place)
            self.go_on()
            if round_ == place["round"]:
                stored = self.disk.read_bytes(f"answer/{stage}")
                if stored is not None:
                    if self.disk.read_json(f"asked/{stage}") != _digest(body):
                        log.warning("round %d was asked again with another content; the same answer goes out", round_)
                    return stored
            else:
                place = self._leave_round(place, round_, counted)
            self._guard.open()
            return self._make_answer(place, round_, stage, body)

    def end(self, body: bytes) -> None:
        """The run has ended with this model."""
        with self._mutex:
            decode_values(body, model_schema(self.plan))
            if self.finished:
                return
            if self.round != NEVER:
                self.go_on()
                self._guard.open()
                self._guard.close()
            # The exact states served their purpose; the journal stays.
            private = [*self.disk.names("answer/"), *self.disk.names("asked/"), *self.disk.names(MEMORY)]
            private += ["settled", "pending", "said", "said/down", ROWS]
            self.disk.commit({**dict.fromkeys(private), "model": body}, [{"what": "ended"}])

    def go_on(self) -> None:
        """Be the one continuation of this run, or raise."""
        self._live.go_on()

    # --- inside -------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> dict[str, Any]:
        place: dict[str, Any] = self.disk.read_json("place") or dict(_PLACE)
        return place

    def _check_round(self, round_: int, place: dict[str, Any]) -> None:
        if self.finished:
            raise MessageError("the run has ended for this party.")
        if not 0 <= round_ < self.plan.rounds:
            raise MessageError(f"the plan has rounds 0 to {self.plan.rounds - 1}, and another was asked for.")
        if round_ < place["round"]:
            raise MessageError(f"round {round_} is over for this party, which is at round {place['round']}.")

    def _leave_round(self, place: dict[str, Any], round_: int, counted: int) -> dict[str, Any]:
        """The place of a party that leaves its last round behind, as the hub counted it."""
        moved = {**place, "round": round_, "drawn": None, "pending": NEVER}
        if counted == place["pending"] != NEVER:
            moved["settled"] = counted
        elif counted != place["settled"]:
            raise MessageError("the hub counts a round that this party did not answer, or forgot one that it counted.")
        return moved

    def _make_answer(self, place: dict[str, Any], round_: int, stage: str, body: bytes) -> bytes:
        making = _Making(self.disk, self._step, self._attendance, self._schemas, place, round_)
        memory = {name: self.disk.read_bytes(MEMORY + name) or b"" for name in self._list_memory()}
        before = set(memory)
        answer = self._contributor.answer(
            PartyTurn(
                plan=self.plan,
                party=self.index,
                facts=self._step.facts(round_),
                stage=stage,
                body=body,
                memory=memory,
                takes_part=making.takes_part,
                step=making.step,
                silent=making.silent,
                form=lambda: self._schemas.at(round_).up,
            )
        )
        changes: dict[str, Any] = {MEMORY + name: memory.get(name) for name in before | set(memory)}
        changes |= {f"answer/{stage}": answer, f"asked/{stage}": _digest(body)}
        sent = {"what": "sent", "round": round_, "stage": stage, "bytes": len(answer), "sha256": _digest(answer)}
        self._live.commit({**making.changes, **changes, "place": place}, [*making.journal, sent])
        return answer

    def _list_memory(self) -> list[str]:
        return [name.removeprefix(MEMORY) for name in self.disk.names(MEMORY)]


class _Making:
    """An answer in the making: the step is taken once a round, and what it changes is not yet on the disk."""

    def __init__(
        self,
        disk: Disk,
        step: SinglePartyStep,
        attendance: Attendance,
        schemas: HubMessageSchemas,
        place: dict[str, Any],
        round_: int,
    ) -> None:
        self._disk, self._step, self._attendance, self._schemas = disk, step, attendance, schemas
        self._place, self._round = place, round_
        self.journal: list[dict[str, Any]] = []
        self.changes: dict[str, Any] = {}
        known: dict[str, Any] = disk.read_json("place") or dict(_PLACE)
        if round_ != known["round"]:
            if place["settled"] != known["settled"]:
                self.changes["settled"] = disk.read_bytes("pending")
            old = [*disk.names("answer/"), *disk.names("asked/"), "said", "said/down", "pending"]
            self.changes |= dict.fromkeys(old)

    def takes_part(self) -> bool:
        """The party's coin of this round, drawn once."""
        drawn: bool | None = self._place["drawn"]
        if drawn is None:
            drawn = self._place["drawn"] = self._attendance.draw(self._round)
            if drawn:
                self._attendance.check(self._round, self._place["steps"])
        return drawn

    def step(self, down: bytes) -> bytes:
        """The message of this round."""
        return self._message(down, silent=False)

    def silent(self, down: bytes) -> bytes:
        """The message of a party that was not sampled: noise alone."""
        return self._message(down, silent=True)

    def _message(self, down: bytes, *, silent: bool) -> bytes:
        said = self._read_pending("said")
        if said is not None:
            if self._read_pending("said/down") != _digest(down).encode():
                raise MessageError("the hub sends another content for a step that was taken already.")
            return said
        forms, state = self._schemas.at(self._round), self._read_pending("settled")
        heard = decode(forms.down_record, down, forms.down)
        assert state is not None
        before = decode(self._step.state_kind, state)
        taken = self._step.take(self._round, before, self._place["spent"], heard, silent=silent)
        message = _message(taken, forms.up)
        what = "silent" if silent else "step"
        self.journal.append({"what": what, "round": self._round, "releases": list(taken.releases)})
        self.changes |= {"said": message, "said/down": _digest(down).encode(), "pending": encode(taken.state)}
        steps = self._place["steps"] + (not silent)
        self._place.update(pending=self._round, spent=taken.spent, steps=steps)
        return message

    def _read_pending(self, name: str) -> bytes | None:
        """Bytes as they will be once this answer is written."""
        changed: bytes | None = self.changes[name] if name in self.changes else self._disk.read_bytes(name)
        return changed


_PLACE: dict[str, Any] = {
    "round": NEVER,  # the last one answered
    "settled": NEVER,  # the round whose state is kept under "settled"
    "pending": NEVER,  # the round whose state is kept under "pending", until the hub counts it
    "drawn": None,  # the party's coin of this round
    "steps": 0,
    "spent": {},
}


def _message(taken: Taken, expected: MessageSchema) -> bytes:
    form, message = MessageSchema.of(taken.message)
    if form != expected:
        raise InputError(f"{form.schema.record}: the step made another message than public facts tell; report this.")
    return message


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
