"""Peers on a graph: neighbours hear each other round by round, or hand a token on.

A node asks its neighbours for what they said and gets it as soon as it is there, so a restarted one only has to ask
again. A token, and what goes around to everybody (where a walk starts, the models in the end), is handed over and
acknowledged. What a neighbour says and the token are taken from their author's own line; what goes around is passed on
by others, and is believed only with its author's signature. A peer that has everything stays until its neighbours have
it too.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from consenso.engine.codec import MessageEnvelope, MessageError
from consenso.errors import ConsensoError, InputError
from consenso.federation.exchange import Exchanger
from consenso.federation.signatures import SIGNATURE_BYTES
from consenso.federation.walker import START, Walker
from consenso.transport.zenoh.access import graph_node
from consenso.transport.zenoh.channel import Channel, Identity, OpenQuestion
from consenso.transport.zenoh.reasons import watch_links
from consenso.transport.zenoh.session import configuration, open_session
from consenso.transport.zenoh.star import Stopped, check_names
from consenso.transport.zenoh.tls import Credentials

log = logging.getLogger(__name__)

HELD = 20.0  # seconds that a question for a message waits for it


class GraphPeer:
    """One peer on the network.

    names: of all parties. addresses: of this peer and its neighbours, `host:port`. linger: seconds that a peer which
    has everything waits for neighbours that do not.
    """

    def __init__(
        self,
        worker: Exchanger | Walker,
        names: Mapping[int, str],
        addresses: Mapping[int, str],
        *,
        run: str,
        credentials: Credentials,
        linger: float = 60.0,
        changed: Callable[[int | str, bool], None] | None = None,
        refused: Callable[[int | str, str], None] | None = None,
        advanced: Callable[[], None] | None = None,
    ) -> None:
        check_names(names)
        me = worker.index
        if credentials.name != names[me]:
            raise InputError(f"{credentials.folder}: the certificate is of {credentials.name!r}, not of {names[me]!r}.")
        missing = [names[party] for party in (me, *worker.neighbours) if party not in addresses]
        if missing:
            raise InputError(f"addresses: {missing[0]!r} has none; a peer needs its own and those of its neighbours.")
        self.worker, self._names, self._linger, self._advanced = worker, names, linger, advanced
        self._signatures = credentials.signatures(names, run)
        self._limit = worker.largest() + SIGNATURE_BYTES
        self._credentials, self._dialled = credentials, {names[other]: addresses[other] for other in worker.neighbours}
        self._config = configuration(
            mode="peer",
            credentials=credentials,
            access=graph_node(me, {other: names[other] for other in worker.neighbours}),
            listen=[addresses[me]],
            # Of two neighbours one dials, so that there is one link between them.
            connect=[addresses[other] for other in worker.neighbours if other < me],
            limit=self._limit,
        )
        others: dict[int | str, str] = {other: names[other] for other in worker.neighbours}
        self._identity = Identity(run=run, me=me, name=names[me], others=others)
        self._changed, self._refused = changed, refused
        self._stop, self._failure = threading.Event(), list[Exception]()
        self._inbox: dict[tuple[int, int], bytes] = {}  # by neighbour and exchange
        self._calls: dict[tuple[object, ...], OpenQuestion] = {}
        self._told: set[tuple[int, str]] = set()  # neighbours that have an item
        self._delivered = -1  # number of the last token that was acknowledged
        self._finished: set[int] = set()  # neighbours that have everything
        self.channel: Channel | None = None

    def run(self) -> None:
        """Take part until everything is here and the neighbours have it too."""
        with watch_links(self._credentials, self._dialled, self._is_up):
            self._run()

    def _is_up(self, name: str) -> bool:
        up = {} if self.channel is None else {self._names[int(other)]: here for other, here in self.channel.up.items()}
        return up.get(name, False)

    def _run(self) -> None:
        session = open_session(self._config, self._stop)
        if session is None:
            raise Stopped
        self.channel = channel = Channel(
            session, self._identity, limit=self._limit, changed=self._changed, refused=self._refused
        )
        try:
            self.worker.begin()
            self._note_progress()
            for other in self.worker.neighbours:
                channel.answer(other, self._handler(other))
            while not self._complete:
                self._ask_what_is_due()
                channel.wait(lambda: self._ended or self._complete or self._work_is_there())
                self._raise_if_ended()
                self._work()
            self.worker.end()
            self._wait_for_neighbours()
        finally:
            self._stop.set()
            channel.notify()
            channel.close()

    def stop(self) -> None:
        """Leave; the peer goes on from its disk when it is started again."""
        self._stop.set()
        if self.channel is not None:
            self.channel.notify()

    # --- what is to be done -------------------------------------------------------------------------------------

    @property
    def _complete(self) -> bool:
        return all(self.worker.disk.read_bytes(f"item/{name}") is not None for name in self.worker.wanted)

    @property
    def _ended(self) -> bool:
        return self._stop.is_set() or bool(self._failure)

    def _raise_if_ended(self) -> None:
        if self._failure:
            raise self._failure[0]
        if self._stop.is_set():
            raise Stopped

    def _items(self) -> list[str]:
        return [name.removeprefix("item/") for name in self.worker.disk.names("item/")]

    def _unsent(self) -> list[tuple[int, str]]:
        return [
            (other, name)
            for name in self._items()
            for other in self.worker.neighbours
            if (other, name) not in self._told and ("item", other, name) not in self._calls
        ]

    def _work_is_there(self) -> bool:
        worker = self.worker
        if self._unsent():
            return True
        if not isinstance(worker, Walker):
            return self._can_advance(worker) or any(self._is_to_ask(worker, other) for other in worker.sources)
        hop = worker.hop()
        return hop is not None and hop.number > self._delivered and ("token", hop.number) not in self._calls

    def _can_advance(self, node: Exchanger) -> bool:
        if node.done or not node.ready:
            return False
        return all((other, node.hears) in self._inbox for other in node.sources)

    def _is_to_ask(self, node: Exchanger, other: int) -> bool:
        """Whether a neighbour has not been asked yet: a node may become ready by what a neighbour hands over."""
        if node.done or not node.ready:
            return False
        return (other, node.hears) not in self._inbox and ("said", other, node.hears) not in self._calls

    def _work(self) -> None:
        worker = self.worker
        if isinstance(worker, Walker) or not self._can_advance(worker):
            return
        number = worker.hears
        worker.advance({other: self._inbox.pop((other, number)) for other in worker.sources})
        self._note_progress()

    def _note_progress(self) -> None:
        assert self.channel is not None
        self.channel.notify()  # neighbours may wait for what was just said
        if self._advanced is not None:
            self._advanced()

    def _ask_what_is_due(self) -> None:
        worker = self.worker
        for other, name in self._unsent():
            self._hand_over(other, name)
        if not isinstance(worker, Walker):
            for other in worker.sources:
                if self._is_to_ask(worker, other):
                    self._ask_for(worker, other)
            return
        hop = worker.hop()
        if hop is not None and hop.number > self._delivered and ("token", hop.number) not in self._calls:
            assert self.channel is not None
            number = hop.number

            def arrive(envelope: MessageEnvelope) -> bool:
                if envelope.kind == "done":
                    self._delivered = max(self._delivered, number)
                return envelope.kind == "done"

            token = self.channel.envelope(hop.to, kind="token", round=number, body=hop.token)
            self._calls["token", number] = self.channel.call(hop.to, token, arrive)

    def _hand_over(self, other: int, name: str) -> None:
        assert self.channel is not None
        body = self._signature(name) + (self.worker.item_bytes(name) or b"")

        def arrive(envelope: MessageEnvelope) -> bool:
            if envelope.kind == "done":
                self._told.add((other, name))
            return envelope.kind == "done"

        item = self.channel.envelope(other, kind="item", stage=name, body=body)
        self._calls["item", other, name] = self.channel.call(other, item, arrive)

    def _signature(self, name: str) -> bytes:
        """The signature under an item: its author's, who is this peer where none came with it."""
        disk = self.worker.disk
        kept = disk.read_bytes(f"signature/{name}")
        if kept is None:
            kept = self._signatures.sign(_item(name), disk.read_bytes(f"item/{name}") or b"")
            disk.commit({f"signature/{name}": kept})
        return kept

    def _ask_for(self, node: Exchanger, other: int) -> None:
        assert self.channel is not None
        round_ = node.hears

        def arrive(envelope: MessageEnvelope) -> bool:
            if envelope.kind == "later":
                return False
            if envelope.kind != "said" or envelope.round != round_:
                raise MessageError("an answer to another question came.")
            node.check(round_, other, envelope.body)
            self._inbox[other, round_] = envelope.body
            return True

        self._calls.pop(("said", other, round_ - 2), None)
        asked = self.channel.envelope(other, kind="said", round=round_)
        self._calls["said", other, round_] = self.channel.call(other, asked, arrive)

    # --- answering ----------------------------------------------------------------------------------------------

    def _handler(self, other: int) -> Callable[[MessageEnvelope], MessageEnvelope]:
        def handle(envelope: MessageEnvelope) -> MessageEnvelope:
            if self._failure:
                raise MessageError("this peer cannot go on; its operator sees why.")
            try:
                return self._handle(other, envelope)
            except MessageError:
                raise
            except Exception as error:
                # What went wrong may depend on data, so the neighbour hears only that it did.
                self._failure.append(error)
                if not isinstance(error, ConsensoError):
                    log.error("a step failed: %s", type(error).__name__)
                raise MessageError("this peer cannot go on; its operator sees why.") from error
            finally:
                assert self.channel is not None
                self.channel.notify()

        return handle

    def _handle(self, other: int, envelope: MessageEnvelope) -> MessageEnvelope:
        assert self.channel is not None
        worker = self.worker
        if envelope.kind == "said" and not isinstance(worker, Walker):
            return self._tell(worker, other, envelope.round)
        if envelope.kind == "token" and isinstance(worker, Walker):
            worker.receive(envelope.round, envelope.body)
            self._note_progress()
        elif envelope.kind == "item":
            self._take_item(other, envelope.stage, envelope.body)
        elif envelope.kind == "done":
            self._finished.add(other)
        else:
            raise MessageError("a neighbour sent something that there is not on this graph.")
        return self.channel.envelope(other, kind="done")

    def _tell(self, node: Exchanger, other: int, round_: int) -> MessageEnvelope:
        """What was said in an exchange, or that it is still to come."""
        assert self.channel is not None
        if not 0 <= round_ < node.exchanges:
            raise MessageError("a round was asked for that the plan does not have.")
        # Not where something lacks that this neighbour may hand over: its next message waits behind this question.
        self.channel.pause(lambda: self._ended or node.says >= round_ or not node.ready, HELD)
        blob = node.get_message(round_, other)
        if blob is None:
            return self.channel.envelope(other, kind="later")
        return self.channel.envelope(other, kind="said", round=round_, body=blob)

    def _take_item(self, other: int, name: str, signed: bytes) -> None:
        """Keep what goes around; MessageError, which names the neighbour, unless its author signed it for this run."""
        worker, signature, body = self.worker, signed[:SIGNATURE_BYTES], signed[SIGNATURE_BYTES:]
        worker.check_item(name, body)
        author, owner = self._signatures.author(_item(name), body, signature), worker.owner(name)
        if owner is not None and author != owner:
            raise MessageError(f"{name}: it is {self._names[owner]!r}'s, and {self._names[author]!r} signed it.")
        kept = worker.disk.read_bytes(f"item/{name}")
        if kept is not None and kept != body:
            first = self._signatures.author(_item(name), kept, self._signature(name))
            raise MessageError(
                f"{name}: {self._names[first]!r} and {self._names[author]!r} signed different ones; the first is kept."
                if first != author
                else f"{name}: {self._names[author]!r} signed two different ones; the first is kept."
            )
        if kept is None:
            if author == worker.index:
                raise MessageError(
                    f"{name}: this peer has not made it since it was started; it is of an earlier start."
                )
            worker.disk.commit({f"item/{name}": body, f"signature/{name}": signature})
            if isinstance(worker, Walker) and name == START:
                worker.take_first_step()
                self._note_progress()
        self._told.add((other, name))

    # --- the end ------------------------------------------------------------------------------------------------

    def _wait_for_neighbours(self) -> None:
        """Hand out what neighbours lack, until each of them says that it has everything."""
        assert self.channel is not None
        channel, knows = self.channel, set[int]()

        def tell(other: int) -> Callable[[MessageEnvelope], bool]:
            def accept(envelope: MessageEnvelope) -> bool:
                knows.add(other)
                return envelope.kind == "done"

            return accept

        for other, name in self._unsent():
            self._hand_over(other, name)
        for other in self.worker.neighbours:
            channel.call(other, channel.envelope(other, kind="done"), tell(other))

        def is_settled(other: int) -> bool:
            # Who has everything and is gone has no need to know that I have it too.
            return other in self._finished and (other in knows or not channel.up[other])

        channel.wait(lambda: self._ended or all(is_settled(other) for other in self.worker.neighbours), self._linger)


def _item(name: str) -> str:
    """What is signed of something that goes around."""
    return f"item {name}"
