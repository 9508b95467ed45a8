"""Asking over a session, again and again until an answer comes, and answering what others ask."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from consenso.engine.codec import MessageEnvelope, MessageError, pack, unpack
from consenso.errors import InputError
from consenso.transport.zenoh.access import presence_key, question_key

log = logging.getLogger(__name__)

FIRST_RETRY, LAST_RETRY, AFTER_REFUSAL, WHILE_AWAY = 0.05, 1.0, 2.0, 5.0  # seconds


@dataclass
class Traffic:
    """Bytes that went out and came in."""

    sent: int = 0
    received: int = 0


@dataclass(eq=False)
class OpenQuestion:
    """One question to one recipient, until it is answered or dropped."""

    recipient: int | str
    blob: bytes
    accept: Callable[[MessageEnvelope], bool]
    answered: bool = False
    dropped: bool = False
    refusal: str | None = None
    in_flight: bool = False
    due: float = 0.0
    wait: float = FIRST_RETRY


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who this process is in a run, and the names of those it talks to."""

    run: str
    me: int | str
    name: str
    others: Mapping[int | str, str]


class Channel:
    """What one process says to its others, and hears of them: presence, questions, retries."""

    def __init__(
        self,
        session: Any,
        identity: Identity,
        *,
        limit: int,
        timeout: float = 60.0,
        changed: Callable[[int | str, bool], None] | None = None,
        refused: Callable[[int | str, str], None] | None = None,
    ) -> None:
        self.identity, self.limit, self.traffic = identity, limit, Traffic()
        self.up: dict[int | str, bool] = dict.fromkeys(identity.others, False)
        self.refusals: dict[int | str, str] = {}
        self._session, self._changed, self._refused = session, changed, refused
        self._condition = threading.Condition()
        self._calls: list[OpenQuestion] = []
        self._declared: list[Any] = []
        self._queriers = {
            other: session.declare_querier(question_key(other, identity.me), timeout=timeout, express=True)
            for other in identity.others
        }
        for other in identity.others:
            self._watch(other)
        self._declared.append(session.liveliness().declare_token(presence_key(identity.me)))

    # --- asking -------------------------------------------------------------------------------------------------

    def call(
        self, recipient: int | str, envelope: MessageEnvelope, accept: Callable[[MessageEnvelope], bool]
    ) -> OpenQuestion:
        """Ask. `accept` gets the answer; where it returns False or raises MessageError, the question is asked again."""
        call = OpenQuestion(recipient, pack(envelope), accept)
        with self._condition:
            self._calls.append(call)
        self._dial(call)
        return call

    def drop(self, call: OpenQuestion) -> None:
        with self._condition:
            call.dropped = True
            if call in self._calls:
                self._calls.remove(call)

    def wait(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until `done`, asking again what is due; False when the time is over."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            with self._condition:
                now = time.monotonic()
                if done():
                    return True
                if end is not None and now >= end:
                    return False
                due = [call for call in self._calls if not call.in_flight and call.due <= now]
                if not due:
                    ahead = [call.due for call in self._calls if not call.in_flight]
                    # Without anything due, whatever changes notifies; a pause bounds what a lost notice could cost.
                    pause = min([*ahead, *([] if end is None else [end]), now + 1.0]) - now
                    self._condition.wait(max(pause, 0.001))
            for call in due:
                self._dial(call)

    def pause(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until `done` without asking anything; for whoever answers. False when the time is over."""
        with self._condition:
            return self._condition.wait_for(done, seconds)

    def notify(self) -> None:
        """Something changed that somebody may wait for."""
        with self._condition:
            self._condition.notify_all()

    def _dial(self, call: OpenQuestion) -> None:
        import zenoh

        with self._condition:
            if call.in_flight or call.answered or call.dropped:
                return
            call.in_flight = True
            if self.up[call.recipient]:
                self.traffic.sent += len(call.blob)
        handler: Any = zenoh.handlers.Callback(lambda reply: self._hear(call, reply), lambda: self._hung_up(call))
        self._queriers[call.recipient].get(handler, payload=call.blob)

    def _hear(self, call: OpenQuestion, reply: Any) -> None:
        if reply.ok is None or call.dropped:
            return  # the question timed out or found nobody, and is asked again; or nobody waits any more
        blob = reply.ok.payload.to_bytes()
        identity = self.identity
        try:
            envelope = unpack(
                blob,
                run=identity.run,
                recipient=identity.name,
                sender=identity.others[call.recipient],
                limit=self.limit,
            )
            if envelope.kind == "refusal":
                raise MessageError(envelope.body.decode("ascii", errors="replace")[:300])
            if not call.accept(envelope):
                return
        except InputError as error:
            call.refusal = str(error)
            if self._note_refusal(call.recipient, str(error)):
                log.warning("%s: %s", identity.others[call.recipient], error)
            return
        with self._condition:
            self.traffic.received += len(blob)
            self.refusals.pop(call.recipient, None)
            call.answered = True
            if call in self._calls:
                self._calls.remove(call)
            self._condition.notify_all()

    def _note_refusal(self, other: int | str, reason: str) -> bool:
        """Tell the operator; whether it is news."""
        with self._condition:
            known = self.refusals.get(other)
            self.refusals[other] = reason
            self._condition.notify_all()
        if known != reason and self._refused is not None:
            self._refused(other, reason)
        return known != reason

    def _hung_up(self, call: OpenQuestion) -> None:
        with self._condition:
            call.in_flight = False
            if call.answered:
                return
            # Who is away is asked again as soon as it is back.
            pause = call.wait if self.up[call.recipient] else WHILE_AWAY
            call.due = time.monotonic() + (AFTER_REFUSAL if call.refusal is not None else pause)
            call.wait = min(2 * call.wait, LAST_RETRY)
            self._condition.notify_all()

    # --- presence -----------------------------------------------------------------------------------------------

    def _watch(self, other: int | str) -> None:
        import zenoh

        def see(sample: Any) -> None:
            here = sample.kind == zenoh.SampleKind.PUT
            with self._condition:
                self.up[other] = here
                for call in self._calls:
                    if call.recipient == other and here:
                        call.due, call.wait = 0.0, FIRST_RETRY
                self._condition.notify_all()
            if self._changed is not None:
                self._changed(other, here)

        self._declared.append(self._session.liveliness().declare_subscriber(presence_key(other), see, history=True))

    # --- answering ----------------------------------------------------------------------------------------------

    def answer(self, asker: int | str, handle: Callable[[MessageEnvelope], MessageEnvelope]) -> None:
        """Answer what one other asks, one question at a time; MessageError is answered with a refusal."""
        import zenoh

        identity = self.identity
        key, name = question_key(identity.me, asker), identity.others[asker]

        def take_query(query: Any) -> None:
            with query:
                blob = query.payload.to_bytes() if query.payload is not None else b""
                try:
                    envelope = unpack(blob, run=identity.run, recipient=identity.name, sender=name, limit=self.limit)
                    reply = handle(envelope)
                except MessageError as error:
                    if self._note_refusal(asker, f"refused what {name} sent: {error}"):
                        log.warning("refused a message of %s: %s", name, error)
                    reply = self.refuse(asker, str(error))
                with self._condition:
                    self.traffic.received += len(blob)
                    answer = pack(reply)
                    self.traffic.sent += len(answer)
                with contextlib.suppress(zenoh.ZError):  # whoever asked is gone, or this session is
                    query.reply(key, answer, express=True)

        self._declared.append(self._session.declare_queryable(key, take_query))

    def envelope(self, recipient: int | str, **content: Any) -> MessageEnvelope:
        """An envelope of this process to another."""
        identity = self.identity
        return MessageEnvelope(run=identity.run, sender=identity.name, recipient=identity.others[recipient], **content)

    def refuse(self, recipient: int | str, reason: str) -> MessageEnvelope:
        """A refusal with its reason, which quotes nothing."""
        return self.envelope(recipient, kind="refusal", body=reason.encode("ascii", errors="replace")[:300])

    def close(self) -> None:
        """Leave; the session is closed with it."""
        self._session.close()
