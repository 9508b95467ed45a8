"""Flower carries a hub's questions and its parties' answers, for organisations that run it already.

Each question is a Flower message to one node with a time to live, so that a node that comes back late never answers a
round that is over; each answer is the reply. Both hold one envelope of `consenso.engine.codec`, which names run,
sender, recipient and round: what does not fit is refused on either side. Flower starts a process for every message, so
a party is built from its disk for each of them.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from consenso.engine.codec import MessageEnvelope, MessageError, pack, unpack
from consenso.errors import BudgetError, ConsensoError, InputError
from consenso.federation.hub import Question
from consenso.federation.party import Party
from consenso.federation.sum_protocol import Check

log = logging.getLogger(__name__)

HUB = "server"  # the hub's name on envelopes; no party may have it
RECORD, ENVELOPE, RUN, NAME = "consenso", "envelope", "run", "name"
ASK, WHO = "train", "query"  # Flower's types of messages
AFTER_REFUSAL = 5.0  # seconds until a refused question is asked again


@dataclass
class _Sent:
    """A question on its way."""

    party: int
    node: int
    until: float
    read: Callable[[bytes], None]


class FlowerHub:
    """The server's end: a `Conversation` over Flower's grid.

    patience: seconds after which a round goes on without those who did not answer, where the schedule allows it, and
    the time to live of every message. keys: for each party the hash of the public key that its node must have, see
    `key_hash`; without them a node is believed to be the party that it says it is.
    """

    def __init__(
        self,
        grid: Any,
        names: Mapping[int, str],
        *,
        run: str,
        limit: int,
        patience: float = 60.0,
        pause: float = 0.2,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        if HUB in names.values():
            raise InputError(f"party {HUB!r}: that is the hub's name on envelopes; rename the party.")
        self._grid, self._names, self._run, self._limit = grid, names, run, limit
        self._patience, self._pause, self._keys = patience, pause, keys or {}
        self._nodes: dict[int, int] = {}  # of each party
        self._doubted: set[int] = set()  # parties whose node let a question expire: they may be here as another node
        self._asked_who: dict[int, tuple[str, float]] = {}  # by node: the message, and when to ask again
        self._away: set[int] = set()  # parties that did not answer in time and have not been heard since

    def ask(self, questions: Mapping[int, Question], check: Check, *, partial: bool) -> dict[int, bytes]:
        """Ask every party its question until its answer passes the check."""
        answers: dict[int, bytes] = {}

        def reader(party: int, question: Question) -> Callable[[bytes], None]:
            def read(blob: bytes) -> None:
                envelope = self._open(blob, party)
                if (envelope.kind, envelope.round, envelope.stage) != ("answer", question.round, question.stage):
                    raise MessageError("an answer to another question came.")
                check(party, envelope.body)
                answers[party] = envelope.body

            return read

        envelopes = {
            party: self._envelope(
                party,
                kind="ask",
                round=question.round,
                stage=question.stage,
                counted=question.counted,
                body=question.body,
            )
            for party, question in questions.items()
        }
        readers = {party: reader(party, question) for party, question in questions.items()}

        def who_is_missing() -> set[int]:
            """All, or those that answered in time last or whose node is there again."""
            return {party for party in questions if not partial or party not in self._away or party in self._nodes}

        self._converse(envelopes, readers, answers, who_is_missing, self._patience if partial else None)
        missing = set(questions) - set(answers)
        if missing - self._away:
            log.warning("the run goes on without %s", ", ".join(sorted(self._names[party] for party in missing)))
        self._away = (self._away - set(questions)) | missing
        return answers

    def end(self, model: bytes, *, seconds: float) -> tuple[int, ...]:
        """Tell everybody that the run has ended with this model; the parties that know it when the time is over."""
        know: dict[int, bytes] = {}

        def reader(party: int) -> Callable[[bytes], None]:
            def read(blob: bytes) -> None:
                if self._open(blob, party).kind != "done":
                    raise MessageError("something else than an acknowledgement came.")
                know[party] = b""

            return read

        envelopes = {party: self._envelope(party, kind="end", body=model) for party in self._names}
        readers = {party: reader(party) for party in self._names}
        self._converse(envelopes, readers, know, lambda: set(self._names), seconds)
        return tuple(sorted(know))

    # --- inside -------------------------------------------------------------------------------------------------

    def _converse(
        self,
        envelopes: Mapping[int, bytes],
        readers: Mapping[int, Callable[[bytes], None]],
        answers: Mapping[int, bytes],
        who_is_missing: Callable[[], set[int]],
        seconds: float | None,
    ) -> None:
        """Push, and pull until somebody, and all that are waited for, have answered or the time is over."""
        start = time.monotonic()
        on_the_way: dict[str, _Sent] = {}
        due = dict.fromkeys(envelopes, start)
        while envelopes and not (answers and who_is_missing() <= set(answers)):
            now = time.monotonic()
            if seconds is not None and now >= start + seconds:
                return
            busy = {sent.party for sent in on_the_way.values()}
            open_ = [party for party in envelopes if party not in answers and party not in busy and due[party] <= now]
            for message_id, party in self._push(open_, envelopes).items():
                on_the_way[message_id] = _Sent(party, self._nodes[party], now + self._patience, readers[party])
            for message_id in self._pull(on_the_way):
                due[on_the_way.pop(message_id).party] = now + AFTER_REFUSAL
            for message_id, sent in list(on_the_way.items()):
                if sent.node != self._nodes.get(sent.party):  # the party is another node now, or none
                    del on_the_way[message_id]
                elif sent.until <= now:  # expired at the node as well: it will not be answered any more
                    del on_the_way[message_id]
                    self._doubted.add(sent.party)
            time.sleep(self._pause)

    def _push(self, parties: list[int], envelopes: Mapping[int, bytes]) -> dict[str, int]:
        """Send the envelopes of those whose nodes are known, and look for the others' nodes."""
        if parties or self._doubted:
            online = set(self._grid.get_node_ids())
            for party in [party for party, node in self._nodes.items() if node not in online]:
                del self._nodes[party]
            if self._doubted or any(party not in self._nodes for party in parties):
                self._meet(online)
        ready = [party for party in parties if party in self._nodes]
        messages = [self._message(self._nodes[party], ASK, {ENVELOPE: envelopes[party]}) for party in ready]
        ids = list(self._grid.push_messages(messages)) if messages else []
        return {message_id: party for message_id, party in zip(ids, ready, strict=True) if message_id}

    def _pull(self, on_the_way: Mapping[str, _Sent]) -> list[str]:
        """Read what has come; the messages that are done with, answered or refused."""
        if not on_the_way:
            return []
        found = []
        for reply in self._grid.pull_messages(list(on_the_way)):
            message_id = reply.metadata.reply_to_message_id
            sent = on_the_way.get(message_id)
            if sent is None:
                continue
            found.append(message_id)
            # Flower lists a dead node for up to a minute, and says only that a message could not be delivered.
            (self._doubted.add if reply.has_error() else self._doubted.discard)(sent.party)
            try:
                sent.read(_content(reply, ENVELOPE, bytes))
            except MessageError as error:
                log.warning("%s: %s", self._names[sent.party], error)
        return found

    def _meet(self, online: set[int]) -> None:
        """Ask nodes that nobody knows which party they are."""
        now = time.monotonic()
        strangers = sorted(online - set(self._nodes.values()))
        asked = {message_id: node for node, (message_id, _) in self._asked_who.items() if message_id}
        for reply in self._grid.pull_messages(list(asked)) if asked else ():
            node = asked.get(reply.metadata.reply_to_message_id)
            if node is not None:
                self._asked_who[node] = "", now + AFTER_REFUSAL
                self._introduce(node, reply)
        due = [node for node in strangers if self._asked_who.get(node, ("", 0.0))[1] <= now]
        due = [node for node in due if node not in self._nodes.values()]
        if due:
            ids = self._grid.push_messages([self._message(node, WHO, {RUN: self._run}) for node in due])
            for node, message_id in zip(due, ids, strict=True):
                self._asked_who[node] = str(message_id or ""), now + self._patience

    def _introduce(self, node: int, reply: Any) -> None:
        try:
            if _content(reply, RUN, str) != self._run:
                raise MessageError("it runs another study, version or label.")
            name = _content(reply, NAME, str)
            numbers = {each: party for party, each in self._names.items()}
            if name not in numbers:
                raise MessageError("it is no party of this study.")
            if numbers[name] in self._nodes and numbers[name] not in self._doubted:
                raise MessageError(f"it says that it is {name}, whose node is here already.")
            if self._keys and self._key_of(node) != self._keys.get(name):
                raise MessageError(f"it says that it is {name} and does not have the key of {name}.")
        except MessageError as error:
            log.warning("node %d is not talked to: %s", node, error)
            return
        self._nodes[numbers[name]] = node
        self._doubted.discard(numbers[name])

    def _key_of(self, node: int) -> str:
        found = [bytes(info.public_key) for info in self._grid.get_nodes() if info.node_id == node]
        try:
            return key_hash(found[0]) if found else ""
        except InputError:
            return ""

    def _message(self, node: int, kind: str, content: Mapping[str, Any]) -> Any:
        from flwr.app import ConfigRecord, Message, RecordDict

        # Flower keeps a message for twelve hours unless it is told otherwise.
        return Message(
            RecordDict({RECORD: ConfigRecord(dict(content))}), dst_node_id=node, message_type=kind, ttl=self._patience
        )

    def _envelope(self, party: int, **content: Any) -> bytes:
        return pack(MessageEnvelope(run=self._run, sender=HUB, recipient=self._names[party], **content))

    def _open(self, blob: bytes, party: int) -> MessageEnvelope:
        envelope = unpack(blob, run=self._run, recipient=HUB, sender=self._names[party], limit=self._limit)
        if envelope.kind == "refusal":
            raise MessageError(envelope.body.decode("ascii", errors="replace")[:300])
        return envelope


def answer_message(message: Any, name: str, *, run: str, limit: Callable[[], int], party: Callable[[], Party]) -> Any:
    """A node's reply to one message. `limit` is the most bytes of a question's content; `party` builds the party from
    its disk, and is called for what is in order only.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    if message.metadata.message_type == WHO:
        told: dict[str, Any] = {NAME: name, RUN: run}
    else:
        told = {ENVELOPE: pack(_answer(message, name, run=run, limit=limit, party=party))}
    return Message(RecordDict({RECORD: ConfigRecord(told)}), reply_to=message)


def _answer(
    message: Any, name: str, *, run: str, limit: Callable[[], int], party: Callable[[], Party]
) -> MessageEnvelope:
    def refuse(reason: str) -> MessageEnvelope:
        body = reason.encode("ascii", errors="replace")[:300]
        return MessageEnvelope(kind="refusal", run=run, sender=name, recipient=HUB, body=body)

    try:
        envelope = unpack(_content(message, ENVELOPE, bytes), run=run, recipient=name, sender=HUB, limit=limit())
        if envelope.kind not in ("ask", "end"):
            raise MessageError("a server asks and ends, and something else came.")
        here = party()
        try:
            if envelope.kind == "end":
                here.end(envelope.body)
                return MessageEnvelope(kind="done", run=run, sender=name, recipient=HUB)
            body = here.answer(
                round_=envelope.round, stage=envelope.stage, body=envelope.body, counted=envelope.counted
            )
        finally:
            here.disk.close()
    except MessageError as error:
        log.warning("refused: %s", error)
        return refuse(str(error))
    except Exception as error:
        # What went wrong may depend on data, so the server hears only that it did.
        log.error("this party cannot go on: %s", error if isinstance(error, ConsensoError) else type(error).__name__)
        why = "its ledger does not allow the run" if isinstance(error, BudgetError) else "its operator sees why"
        return refuse(f"this party cannot go on; {why}.")
    return MessageEnvelope(
        kind="answer", run=run, sender=name, recipient=HUB, round=envelope.round, stage=envelope.stage, body=body
    )


def key_hash(key: bytes) -> str:
    """A name for a public key, whichever of the usual forms it is in."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_pem_public_key,
        load_ssh_public_key,
    )

    try:
        read = load_pem_public_key if key.lstrip().startswith(b"-----BEGIN") else load_ssh_public_key
        plain = read(key).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        raise InputError("a public key is a PEM or OpenSSH text; give the file that ends in .pub.") from None
    return hashlib.sha256(plain).hexdigest()


def _content(message: Any, name: str, kind: type[Any]) -> Any:
    """One entry of a message; MessageError where it is not there or of another kind."""
    if message.has_error():
        raise MessageError(f"Flower could not deliver a message or its answer (code {message.error.code}).")
    try:
        value = message.content[RECORD][name]
    except (KeyError, TypeError):
        raise MessageError("a message has no content of this library.") from None
    if not isinstance(value, kind):
        raise MessageError("the content of a message is of another kind than is due.")
    return value
