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

import hashlib
import logging
import secrets
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.engine.checkpoint import fingerprint
from consenso.engine.codec import MessageError
from consenso.engine.fixed_point import GridColumn, Words, check, decode
from consenso.errors import InputError
from consenso.federation.message_schemas import BOUND, SHARE, HubMessageSchemas
from consenso.federation.signatures import Signatures
from consenso.federation.sum_protocol import STEP, Check, Gathered, HubTurn, expect_costs
from consenso.planning.plan import Plan
from consenso.schedules import Everyone, PoissonSubset
from consenso.secure_sum.columns import columns
from consenso.secure_sum.contributor import ADVERT, HELLO, RECALL, REVEAL, SecureContributor
from consenso.secure_sum.messages import Hello, Masked, row
from consenso.secure_sum.server import DiscardedError, SumServer
from consenso.secure_sum.terms import Occasion, SumTerms
from consenso.secure_sum.wire import Wire

log = logging.getLogger(__name__)

_ADVERT = "advert/"  # names of what the hub keeps from round to round


def secure_parts(
    plan: Plan, *, patience: int | None = None, signatures: Signatures | None = None
) -> tuple[SecureSum, SecureContributor]:
    """The hub's and the party's side of a plan; what cannot be summed securely is refused here, before anything.

    patience: how often the hub asks again while fewer than the threshold have answered, before it gives the round up
    with a DiscardedError; None for ever. Nothing is unmasked meanwhile. signatures: of the party, which then believes
    no keys but signed ones.
    """
    terms = terms_of(plan)
    return SecureSum(plan, terms, patience=patience), SecureContributor(plan, terms, signatures)


def terms_of(plan: Plan) -> SumTerms:
    """The terms that a plan implies: its colluders are those who may be absent, by colluding or by dropping out."""
    if not plan.mode.has_secure_sum or plan.shape != "hub":
        raise InputError(
            f"secure sum: the plan has trust={plan.trust!r} and shape {plan.shape!r}; it is for a hub "
            "with trust='secure-sum'."
        )
    if not isinstance(plan.schedule, Everyone | PoissonSubset):
        raise InputError(
            f"secure sum: the parties of {type(plan.schedule).__name__} cannot draw for themselves whether they "
            "take part, so the sample would not stay hidden; use Everyone() or PoissonSubset(rate)."
        )
    terms = SumTerms(run=bytes.fromhex(fingerprint(plan)), parties=plan.parties, absent=plan.colluders)
    check(plan, plan.algorithm.releases)
    return terms


class SecureSum:
    """The hub's side. It sees masked integers, and opens their sum."""

    def __init__(self, plan: Plan, terms: SumTerms, *, patience: int | None = None) -> None:
        self.plan, self.terms, self.wire, self.patience = plan, terms, Wire(terms), patience
        self._started = False

    def extra_answer_bytes(self) -> int:
        """How much longer an answer may be than the longest plain one; a value may take two words."""
        masked = self.wire.advert.size + self.wire.masked_schema(0, ()).size + HubMessageSchemas(self.plan).largest()
        return max(self.wire.hello.size, masked, self.wire.shares.size)

    def gather(self, turn: HubTurn) -> Gathered:
        """The total of a round over those whose masked integers arrived."""
        at = Occasion(round=turn.facts.round)
        form = turn.schemas.at(at.round).up
        told = expect_costs(turn, form)
        table = columns(self.plan, at.round, form, told)
        server = self._server(turn, at)
        step = _Step(self, turn, server, at, size=sum(column.size for column in table), costs=_costs(told))
        step.ask(range(self.terms.parties), self.terms.threshold)
        agreed = None if self._started else self._recall(turn, server, at)
        self._started = True
        if agreed is not None:
            step.ask(agreed, len(agreed))
        survivors = server.survivors(agreed).survivors
        self._reveal(turn, server, at, survivors, step.roster)
        total = server.total()
        turn.memory.clear()
        turn.memory["circle"] = self.wire.write_circle(server.circle())
        turn.memory.update({_ADVERT + str(party): blob for party, blob in step.adverts.items()})
        return Gathered(total=form.record(**open_fields(table, total)), counted=tuple(survivors.tolist()))

    def until(
        self, turn: HubTurn, stage: str, bodies: Mapping[int, bytes], check: Check, needed: Collection[int], enough: int
    ) -> dict[int, bytes]:
        """Ask until `enough` of those that are needed have answered."""
        answers: dict[int, bytes] = {}
        patience = self.patience
        while True:
            missing = {party: body for party, body in bodies.items() if party not in answers}
            answers |= turn.ask(stage, missing, check, partial=enough < len(bodies))
            here = len(answers.keys() & set(needed))
            if here >= enough:
                return answers
            if patience == 0:
                raise DiscardedError(
                    f"secure sum, round {turn.facts.round}: only {here} of {self.terms.parties} parties answered and "
                    f"{enough} are needed; the round is discarded and nothing is unmasked: start again when the others "
                    "are back."
                )
            patience = None if patience is None else patience - 1
            log.warning("round %d: %d parties answered and %d are needed", turn.facts.round, here, enough)

    def check_advert(self, party: int, blob: bytes, at: Occasion, circle: bytes) -> None:
        """Refuse an advert that is not for the circle of this run."""
        if self.wire.read_advert(blob, party, at).circle != circle:
            raise MessageError("Advert: it is for another circle than that of this run.")

    def _server(self, turn: HubTurn, at: Occasion) -> SumServer:
        """The server with the keys of all, and with the adverts for this round."""
        server, everyone = SumServer(self.terms), range(self.terms.parties)
        if "circle" in turn.memory:
            circle = self.wire.read_circle(turn.memory["circle"])
            for party in everyone:
                server.greet(Hello(run=self.terms.run, party=party, key=row(circle.keys, party)))
            adverts = {
                int(name.removeprefix(_ADVERT)): blob for name, blob in turn.memory.items() if name.startswith(_ADVERT)
            }
        else:
            nothing = dict.fromkeys(everyone, b"")
            hellos = self.until(turn, HELLO, nothing, self._check_hello, everyone, self.terms.parties)
            said = [self.wire.read_hello(hellos[party], party) for party in everyone]
            for hello in said:
                server.greet(hello)
            circle, digest = server.circle(), server.circle().digest
            body = dict.fromkeys(everyone, self.wire.write_circle(circle, [hello.signature for hello in said]))

            def check_answer(party: int, blob: bytes) -> None:
                self.check_advert(party, blob, at, digest)

            adverts = self.until(turn, ADVERT, body, check_answer, everyone, self.terms.parties)
        for party, blob in adverts.items():
            server.take_advert(self.wire.read_advert(blob, party, at))
        return server

    def _check_hello(self, party: int, blob: bytes) -> None:
        self.wire.read_hello(blob, party)

    def _recall(self, turn: HubTurn, server: SumServer, at: Occasion) -> tuple[int, ...] | None:
        """The survivors that parties agreed to in this round before the hub was started, if any did."""

        def read(party: int, blob: bytes) -> tuple[int, ...]:
            return tuple(self.wire.read_shares(blob, party, at, np.zeros(0, dtype=np.int64))[0].tolist())

        def check_answer(party: int, blob: bytes) -> None:
            read(party, blob)

        arrived = server.list_arrived()
        stage = RECALL + secrets.token_hex(8)  # a question that no earlier process has asked
        answers = self.until(turn, stage, dict.fromkeys(arrived, b""), check_answer, arrived, self.terms.threshold)
        found = {read(party, blob) for party, blob in answers.items()} - {()}
        if len(found) > 1:
            raise DiscardedError(
                f"secure sum, round {at.round}: parties agreed to different lists of survivors and will agree to no "
                "third; the round cannot be opened, start the run anew."
            )
        return found.pop() if found else None

    def _reveal(self, turn: HubTurn, server: SumServer, at: Occasion, survivors: IntArray, roster: IntArray) -> None:
        """Ask the survivors for their shares, until there are enough."""

        def check_answer(party: int, blob: bytes) -> None:
            if not np.array_equal(self.wire.read_shares(blob, party, at, roster)[0], survivors):
                raise MessageError("Shares: they are for another list of survivors.")

        body = self.wire.write_survivors(server.survivors())
        stage = REVEAL + hashlib.sha256(body).hexdigest()[:16]
        listed = survivors.tolist()
        answers = self.until(turn, stage, dict.fromkeys(listed, body), check_answer, listed, self.terms.threshold)
        for party, blob in answers.items():
            server.take_shares(self.wire.read_shares(blob, party, at, roster)[1])


class _Step:
    """The stage in which masked integers arrive, with the adverts for the next round."""

    def __init__(
        self, sums: SecureSum, turn: HubTurn, server: SumServer, at: Occasion, *, size: int, costs: Mapping[str, float]
    ) -> None:
        self._sums, self._turn, self._server, self._at = sums, turn, server, at
        self._size, self._costs = size, costs
        calls = server.call(at)
        self.roster = np.array(sorted(calls), dtype=np.int64)
        self.adverts: dict[int, bytes] = {}
        self._digest = server.circle().digest
        self._bodies = {
            party: sums.wire.write_call(calls[party]) + turn.down_bytes if party in calls else b""
            for party in range(sums.terms.parties)
        }

    def ask(self, parties: Iterable[int], enough: int) -> None:
        """Ask those who have not answered yet, until enough of the roster have."""
        bodies = {party: self._bodies[party] for party in parties if party not in self.adverts}
        members = [party for party in bodies if self._bodies[party]]
        before = len(set(parties) & set(self._server.list_arrived()))
        answers = self._sums.until(self._turn, STEP, bodies, self._check, members, max(0, enough - before))
        for party, blob in answers.items():
            self.adverts[party] = blob[: self._sums.wire.advert.size]
            if self._bodies[party]:
                self._server.take_masked(self._read_masked(party, blob))

    def _read_masked(self, party: int, blob: bytes) -> Masked:
        content = blob[self._sums.wire.advert.size :]
        return self._sums.wire.read_masked(content, party, self._at, self._size, self._costs)

    def _check(self, party: int, blob: bytes) -> None:
        following = Occasion(round=self._at.round + 1)
        self._sums.check_advert(party, blob[: self._sums.wire.advert.size], following, self._digest)
        if self._bodies[party]:
            self._read_masked(party, blob)


def open_fields(table: Iterable[GridColumn], total: Words) -> dict[str, Array]:
    """The fields of a summed message."""
    found, start = {}, 0
    for column in table:
        found[column.name] = decode(total[start : start + column.size], column)
        start += column.size
    return found


def _costs(told: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """The costs that every message must name."""
    costs = {}
    for name, (bound, share) in told.items():
        costs[name + BOUND], costs[name + SHARE] = bound, share
    return costs
