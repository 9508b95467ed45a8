"""A party's side of the secure sum, stage by stage; see `consenso.secure_sum.gathering` for the stages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from consenso.engine.codec import MessageError
from consenso.errors import InputError, PrivacyError
from consenso.federation.signatures import Signatures
from consenso.federation.sum_protocol import STEP, PartyTurn
from consenso.planning.plan import Plan
from consenso.secure_sum.client import Client
from consenso.secure_sum.client_state import keep, restore
from consenso.secure_sum.columns import integers_of
from consenso.secure_sum.messages import Hello, row
from consenso.secure_sum.sharing import SHARE_BYTES
from consenso.secure_sum.terms import Occasion, SumTerms
from consenso.secure_sum.wire import Wire

HELLO, ADVERT, RECALL, REVEAL = "hello", "advert", "recall/", "reveal/"
CLIENT = "client"
KEY = "key of a secure sum"  # what is signed


class SecureContributor:
    """Masks what the party's step releases. Its keys live in the memory of the turn, which the engine keeps.

    signatures: with them the party believes no key that its owner has not signed; without, it believes the server.
    """

    def __init__(self, plan: Plan, terms: SumTerms, signatures: Signatures | None = None) -> None:
        self.plan, self.terms, self.wire, self._signatures = plan, terms, Wire(terms), signatures
        self._last: tuple[bytes, Client] | None = None  # a client in memory is as good as one on the disk, and quicker

    def answer(self, turn: PartyTurn) -> bytes:
        """The answer to one stage; MessageError where the question is not in order, and then nothing is released."""
        client = self._client(turn)
        with _refuse_as_message():
            if turn.stage == HELLO:
                answer = self.wire.write_hello(self._sign(client))
            elif turn.stage == ADVERT:
                self._check_signatures(turn.body)
                client.meet(self.wire.read_circle(turn.body))
                answer = self.wire.write_advert(client.advertise(Occasion(round=turn.facts.round)))
            elif turn.stage.startswith(RECALL):
                answer = self._tell_agreed(client, turn.facts.round)
            elif turn.stage.startswith(REVEAL):
                answer = self._reveal(client, turn)
            elif turn.stage != STEP:
                raise MessageError("the hub asks for a stage that a secure sum does not have.")
        if turn.stage == STEP:
            answer = self._mask(client, turn)
        kept = turn.memory[CLIENT] = keep(client)
        self._last = kept, client
        return answer

    def _sign(self, client: Client) -> Hello:
        hello = client.hello()
        return hello if self._signatures is None else replace(hello, signature=self._signatures.sign(KEY, hello.key))

    def _check_signatures(self, body: bytes) -> None:
        """Refuse a circle with a key that is not the one its owner signed in this run."""
        if self._signatures is None:
            return
        keys = self.wire.read_circle(body).keys
        for party, signature in enumerate(self.wire.read_signatures(body)):
            self._signatures.check(party, KEY, row(keys, party), signature)

    def _client(self, turn: PartyTurn) -> Client:
        kept = turn.memory.get(CLIENT)
        if kept is None:
            return Client(self.terms, turn.party)
        if self._last is not None and self._last[0] == kept:
            return self._last[1]
        return restore(kept, self.terms, turn.party)

    def _mask(self, client: Client, turn: PartyTurn) -> bytes:
        """Masked integers and the keys for the next round; only these for a party that has none for this round."""
        at, following = Occasion(round=turn.facts.round), Occasion(round=turn.facts.round + 1)
        if not turn.body:
            with _refuse_as_message():
                return self.wire.write_advert(client.advertise(following))
        size = self.wire.call.size
        with _refuse_as_message():
            call = self.wire.read_call(turn.body[:size], at)
            client.check(call)  # before anything is released
        form, taking_part = turn.form(), turn.takes_part()
        message = (turn.step if taking_part else turn.silent)(turn.body[size:])
        integers, costs = integers_of(self.plan, turn.facts.round, form, message, taking_part=taking_part)
        masked = client.mask(call, integers)
        return self.wire.write_advert(client.advertise(following)) + self.wire.write_masked(masked, costs)

    def _tell_agreed(self, client: Client, round_: int) -> bytes:
        """The survivors that were agreed to in this round, or nobody; no shares."""
        nobody = np.zeros(0, dtype=np.int64)
        agreed = nobody if client.agreed is None or client.agreed[0] != round_ else client.agreed_survivors
        return self.wire.write_shares(agreed, nobody, np.zeros((0, SHARE_BYTES), dtype=np.uint8))

    def _reveal(self, client: Client, turn: PartyTurn) -> bytes:
        request = self.wire.read_survivors(turn.body, Occasion(round=turn.facts.round))
        shares = client.reveal(request)
        roster = client.engagements[Occasion(round=turn.facts.round)].roster
        assert roster is not None
        return self.wire.write_shares(request.survivors, roster, shares.shares)


@contextmanager
def _refuse_as_message() -> Iterator[None]:
    """What the protocol refuses is a message that is refused."""
    try:
        yield
    except MessageError:
        raise
    except (InputError, PrivacyError) as error:
        raise MessageError(str(error)) from error
