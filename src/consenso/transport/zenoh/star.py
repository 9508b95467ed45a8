"""The star: a server that asks its clients, and clients that only dial out."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from consenso.engine.codec import MessageEnvelope, MessageError
from consenso.errors import BudgetError, ConsensoError, InputError
from consenso.federation.hub import Question
from consenso.federation.party import Party
from consenso.federation.sum_protocol import Check
from consenso.transport.zenoh.access import HUB, star_hub, star_party
from consenso.transport.zenoh.channel import Channel, Identity, OpenQuestion
from consenso.transport.zenoh.reasons import watch_links
from consenso.transport.zenoh.session import configuration, open_session
from consenso.transport.zenoh.tls import Credentials

log = logging.getLogger(__name__)

SERVER = "server"  # the name on the certificate of a hub; no party may have it
STILL_THERE = 5.0  # seconds that a client stays after the end, in case the server did not hear that it knows


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """The run was stopped on request; it goes on from its disk when it is started again."""


def check_names(names: Mapping[int, str]) -> None:
    """Names are on certificates, and one of them is taken."""
    for name in names.values():
        if name == SERVER or len(name.encode()) > 64:
            raise InputError(
                f"party {name!r}: a name has at most 64 bytes and is not {SERVER!r}, which is the hub's; rename it."
            )


class StarHub:
    """The server's end of the star: a `Conversation` over the network.

    patience: seconds after which a round goes on without those who did not answer, where the schedule allows it.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        *,
        run: str,
        listen: str,
        credentials: Credentials,
        limit: int,
        patience: float = 60.0,
        changed: Callable[[int | str, bool], None] | None = None,
        refused: Callable[[int | str, str], None] | None = None,
    ) -> None:
        check_names(names)
        if credentials.name != SERVER:
            raise InputError(f"{credentials.folder}: a server's certificate is of {SERVER!r}; issue one of that name.")
        self._names, self._patience, self._stop = names, patience, threading.Event()
        self._away: set[int] = set()  # parties that did not answer in time and have not been heard since
        config = configuration(
            mode="peer", credentials=credentials, access=star_hub(names), listen=[listen], limit=limit
        )
        identity = Identity(run=run, me=HUB, name=SERVER, others=dict(names.items()))
        self.channel = Channel(open_session(config), identity, limit=limit, changed=changed, refused=refused)

    def ask(self, questions: Mapping[int, Question], check: Check, *, partial: bool) -> dict[int, bytes]:
        """Ask every party its question until its answer passes the check."""
        answers: dict[int, bytes] = {}
        calls = {party: self._call(party, question, check, answers) for party, question in questions.items()}

        def who_is_missing() -> set[int]:
            """Who did not answer the last time and is not there is not waited for again."""
            if not partial:
                return set(questions)
            return {party for party in questions if party not in self._away or self.channel.up[party]}

        def done() -> bool:
            return self._stop.is_set() or (bool(answers) and who_is_missing() <= set(answers))

        while not self.channel.wait(done, self._patience if partial else None) and not answers:
            log.warning("nobody answers; the run goes on when somebody does")
        for call in calls.values():
            self.channel.drop(call)
        if self._stop.is_set():
            raise Stopped
        if partial:
            silent = set(questions) - set(answers)
            if silent - self._away:
                missing = sorted(self._names[party] for party in silent - self._away)
                log.warning("the run goes on without %s, who did not answer in time", ", ".join(missing))
            self._away = silent
        return dict(answers)

    def _call(self, party: int, question: Question, check: Check, answers: dict[int, bytes]) -> OpenQuestion:
        def accept(envelope: MessageEnvelope) -> bool:
            if (envelope.kind, envelope.round, envelope.stage) != ("answer", question.round, question.stage):
                raise MessageError("an answer to another question came.")
            check(party, envelope.body)
            answers[party] = envelope.body
            return True

        content: dict[str, Any] = {"round": question.round, "stage": question.stage, "counted": question.counted}
        return self.channel.call(party, self.channel.envelope(party, kind="ask", body=question.body, **content), accept)

    def end(self, model: bytes, *, seconds: float) -> tuple[int, ...]:
        """Tell everybody that the run has ended with this model; the parties that know it when the time is over."""
        know: set[int] = set()

        def tell(party: int) -> Callable[[MessageEnvelope], bool]:
            def accept(envelope: MessageEnvelope) -> bool:
                if envelope.kind == "done":
                    know.add(party)
                return envelope.kind == "done"

            return accept

        for party in self._names:
            self.channel.call(party, self.channel.envelope(party, kind="end", body=model), tell(party))
        self.channel.wait(lambda: len(know) == len(self._names) or self._stop.is_set(), seconds)
        return tuple(sorted(know))

    def stop(self) -> None:
        self._stop.set()
        self.channel.notify()

    def close(self) -> None:
        self.channel.close()


class StarParty:
    """A client's end of the star: dials the server and answers it."""

    def __init__(
        self,
        party: Party,
        name: str,
        *,
        run: str,
        server: str,
        credentials: Credentials,
        limit: int,
        changed: Callable[[int | str, bool], None] | None = None,
        answered: Callable[[], None] | None = None,
    ) -> None:
        check_names({party.index: name})
        if credentials.name != name:
            raise InputError(f"{credentials.folder}: the certificate is of {credentials.name!r}, not of {name!r}.")
        self._party, self._limit, self._changed, self._answered = party, limit, changed, answered
        self._config = configuration(
            mode="client",
            credentials=credentials,
            access=star_party(party.index, SERVER),
            connect=[server],
            limit=limit,
        )
        self._credentials, self._server = credentials, server
        self._identity = Identity(run=run, me=party.index, name=name, others={HUB: SERVER})
        self._stop, self._failure = threading.Event(), list[Exception]()
        self.channel: Channel | None = None

    def run(self) -> None:
        """Answer until the server says that the run has ended; raises what kept this party from going on."""
        with watch_links(self._credentials, {SERVER: self._server}, lambda name: self._is_up()):
            self._run()

    def _is_up(self) -> bool:
        return self.channel is not None and self.channel.up[HUB]

    def _run(self) -> None:
        session = open_session(self._config, self._stop)
        if session is None:
            raise Stopped
        self.channel = channel = Channel(session, self._identity, limit=self._limit, changed=self._changed)
        try:
            channel.answer(HUB, self._handle)
            channel.wait(lambda: self._stop.is_set() or bool(self._failure) or self._party.finished)
            if self._failure:
                time.sleep(0.2)  # so that the refusal is still sent
                raise self._failure[0]
            if not self._party.finished:
                raise Stopped
            channel.wait(lambda: self._stop.is_set() or not channel.up[HUB], STILL_THERE)
        finally:
            channel.close()

    def stop(self) -> None:
        """Leave; the party goes on from its disk when it is started again."""
        self._stop.set()
        if self.channel is not None:
            self.channel.notify()

    def _handle(self, envelope: MessageEnvelope) -> MessageEnvelope:
        assert self.channel is not None
        if self._failure:
            raise MessageError("this party cannot go on; its operator sees why.")
        try:
            if envelope.kind == "end":
                self._party.end(envelope.body)
                self.channel.notify()
                return self.channel.envelope(HUB, kind="done")
            if envelope.kind != "ask":
                raise MessageError("a server asks and ends, and something else came.")
            answer = self._party.answer(
                round_=envelope.round, stage=envelope.stage, body=envelope.body, counted=envelope.counted
            )
        except MessageError:
            raise
        except Exception as error:
            # What went wrong may depend on data, so the server hears only that it did.
            self._failure.append(error)
            self.channel.notify()
            why = "its ledger does not allow the run" if isinstance(error, BudgetError) else "its operator sees why"
            if not isinstance(error, ConsensoError):
                log.error("a step failed: %s", type(error).__name__)
            raise MessageError(f"this party cannot go on; {why}.") from error
        if self._answered is not None:
            self._answered()
        return self.channel.envelope(HUB, kind="answer", round=envelope.round, stage=envelope.stage, body=answer)
