"""The hub's side of the secure sum, over whatever engine carries a plain sum.

Stages of a round r:

    hello, advert   in round 0, of everybody: keys for envelopes, keys for the masks of round 0
    step            the call and what the hub sends down; keys for round r + 1 and masked integers
    recall/...      after a start of the hub: which survivors were agreed to in this round before
    reveal/...      the survivors; their shares

A party that did not answer in round r - 1 has no keys for round r: it is asked for keys for round r + 1 only, and is
back then. Who is called in a round follows from what was saved with the round before, so a restarted hub calls the same
parties, and those that masked before repeat their bytes. The list of survivors is not saved: a restarted hub asks
whether parties agreed to one, because they will agree to no other.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.runtime.checkpoint import fingerprint
from consenso.runtime.codec import MessageError
from consenso.runtime.plan import Plan
from consenso.runtime.rehearsal import BOUND, SHARE
from consenso.runtime.secure_sum.contributor import ADVERT, HELLO, RECALL, REVEAL, SecureContributor
from consenso.runtime.secure_sum.fixed_point import Column, check, columns, decode
from consenso.runtime.secure_sum.masks import Words
from consenso.runtime.secure_sum.messages import Circle, Hello, row
from consenso.runtime.secure_sum.server import DiscardedError, Server
from consenso.runtime.secure_sum.terms import Occasion, Terms
from consenso.runtime.secure_sum.wire import Wire
from consenso.runtime.summation import STEP, Check, Gathered, HubTurn, expected_costs
from consenso.schedules import Everyone, PoissonSubset

log = logging.getLogger(__name__)


def secure_parts(plan: Plan, *, patience: int | None = None) -> tuple[SecureSum, SecureContributor]:
    """The hub's and the party's side of a plan; what cannot be summed securely is refused here, before anything.

    patience: how often the hub asks again while fewer than the threshold have answered, before it gives the round up
    with a DiscardedError; None for ever. Nothing is unmasked meanwhile.
    """
    terms = terms_of(plan)
    return SecureSum(plan, terms, patience=patience), SecureContributor(plan, terms)


def terms_of(plan: Plan) -> Terms:
    """The terms that a plan implies: its colluders are those who may be absent, by colluding or by dropping out."""
    setting = plan.setting
    if setting.doorway.trust != "secure-sum" or setting.shape != "hub":
        raise InputError(
            f"secure sum: the plan has trust={setting.doorway.trust!r} and shape {setting.shape!r}; it is for a hub "
            "with trust='secure-sum'."
        )
    if not isinstance(setting.schedule, Everyone | PoissonSubset):
        raise InputError(
            f"secure sum: the parties of {type(setting.schedule).__name__} cannot draw for themselves whether they take "
            "part, so the sample would not stay hidden; use Everyone() or PoissonSubset(rate)."
        )
    terms = Terms(run=bytes.fromhex(fingerprint(plan)), parties=setting.parties, absent=setting.colluders)
    check(setting, plan.algorithm.releases)
    return terms


class SecureSum:
    """The hub's side. It sees masked integers, and opens their sum."""

    def __init__(self, plan: Plan, terms: Terms, *, patience: int | None = None) -> None:
        self.plan, self.terms, self.wire, self.patience = plan, terms, Wire(terms), patience
        self._started = False

    def extra_answer_bytes(self) -> int:
        """How much longer an answer may be than a plain one."""
        return max(self.wire.hello.size, self.wire.advert.size + self.wire.masked(0, ()).size, self.wire.shares.size)

    def gather(self, turn: HubTurn) -> Gathered:
        """The total of a round over those whose masked integers arrived."""
        at = Occasion(round=turn.facts.round)
        server = self._server(turn, at)
        form = turn.rehearsal.at(at.round).up
        told = expected_costs(turn, form)
        table = columns(self.plan.setting, self.plan.algorithm.releases, at.round, form, told)
        step = _Step(self, turn, server, at, sum(column.size for column in table), _costs(told))
        step.ask()
        agreed = None if self._started else self._recalled(turn, step)
        self._started = True
        if agreed is not None:
            step.ask_again(agreed)
        survivors = server.survivors(agreed).survivors
        self._reveal(turn, server, at, survivors, step.roster)
        turn.memory.clear()
        turn.memory |= {"circle": self.wire.write_circle(server.circle())}
        turn.memory |= {f"advert/{party}": blob for party, blob in step.adverts.items()}
        return Gathered(total=form.record(**opened(table, server.total())), counted=tuple(survivors.tolist()))

    def until(
        self, turn: HubTurn, stage: str, bodies: Mapping[int, bytes], check: Check, enough: int
    ) -> dict[int, bytes]:
        """Ask until `enough` have answered."""
        answers: dict[int, bytes] = {}
        patience = self.patience
        while True:
            missing = {party: body for party, body in bodies.items() if party not in answers}
            answers |= turn.ask(stage, missing, check, partial=enough < len(bodies))
            if len(answers) >= enough:
                return answers
            if patience == 0:
                raise DiscardedError(
                    f"secure sum, round {turn.facts.round}: only {len(answers)} of {self.terms.parties} parties "
                    f"answered and {enough} are needed; the round is discarded and nothing is unmasked: start again "
                    "when the others are back."
                )
            patience = None if patience is None else patience - 1
            log.warning("round %d: %d parties answered, %d are needed", turn.facts.round, len(answers), enough)

    def _server(self, turn: HubTurn, at: Occasion) -> Server:
        """The server with the keys of all, and with the adverts for this round."""
        server = Server(self.terms)
        if "circle" in turn.memory:
            self._greet(server, self.wire.read_circle(turn.memory["circle"]))
            adverts = {
                party: turn.memory[f"advert/{party}"]
                for party in range(self.terms.parties)
                if f"advert/{party}" in turn.memory
            }
        else:
            everyone = range(self.terms.parties)
            hellos = self.until(
                turn,
                HELLO,
                dict.fromkeys(everyone, b""),
                lambda party, blob: _only(self.wire.read_hello(blob, party)),
                self.terms.parties,
            )
            for party, blob in hellos.items():
                server.greet(self.wire.read_hello(blob, party))
            body, digest = self.wire.write_circle(server.circle()), server.circle().digest
            adverts = self.until(
                turn,
                ADVERT,
                dict.fromkeys(everyone, body),
                lambda party, blob: self.check_advert(party, blob, at, digest),
                self.terms.parties,
            )
        for party, blob in adverts.items():
            server.take_advert(self.wire.read_advert(blob, party, at))
        return server

    def check_advert(self, party: int, blob: bytes, at: Occasion, circle: bytes) -> None:
        """Refuse an advert that is not for the circle of this run."""
        if self.wire.read_advert(blob, party, at).circle != circle:
            raise MessageError("Advert: it is for another circle than that of this run.")

    def _greet(self, server: Server, circle: Circle) -> None:
        for party in range(self.terms.parties):
            server.greet(Hello(run=self.terms.run, party=party, key=row(circle.keys, party)))

    def _recalled(self, turn: HubTurn, step: _Step) -> tuple[int, ...] | None:
        """The survivors that parties agreed to in this round before the hub was started, if any did."""
        stage = RECALL + secrets.token_hex(8)  # a question that no earlier process has asked

        def read(party: int, blob: bytes) -> tuple[int, ...]:
            return tuple(self.wire.read_shares(blob, party, step.at, np.zeros(0, dtype=np.int64))[0].tolist())

        arrived = dict.fromkeys(step.server.arrived(), b"")
        answers = self.until(turn, stage, arrived, lambda party, blob: _only(read(party, blob)), self.terms.threshold)
        found = {read(party, blob) for party, blob in answers.items()} - {()}
        if len(found) > 1:
            raise DiscardedError(
                f"secure sum, round {step.at.round}: parties agreed to different lists of survivors, and will not "
                "agree to a third; the round cannot be opened, start the run anew."
            )
        return found.pop() if found else None

    def _reveal(self, turn: HubTurn, server: Server, at: Occasion, survivors: IntArray, roster: IntArray) -> None:
        request = server.survivors()
        body = self.wire.write_survivors(request)

        def checked(party: int, blob: bytes) -> None:
            if not np.array_equal(self.wire.read_shares(blob, party, at, roster)[0], survivors):
                raise MessageError("Shares: they are for another list of survivors.")

        stage = REVEAL + "".join("1" if party in survivors else "0" for party in range(self.terms.parties))
        stage = REVEAL + f"{int(stage[len(REVEAL) :], 2):x}"
        bodies = dict.fromkeys((int(party) for party in survivors), body)
        for party, blob in self.until(turn, stage, bodies, checked, self.terms.threshold).items():
            server.take_shares(self.wire.read_shares(blob, party, at, roster)[1])
