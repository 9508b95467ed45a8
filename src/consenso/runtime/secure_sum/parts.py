"""The secure sum as a pair of `Summation` and `Contributor`: whatever engine carries a plain sum carries this one too.

Stages of a round r:

    hello, advert   in round 0 only, of everybody: keys for envelopes, keys for the masks of round 0
    step            the call and what the hub sends down; masked integers, and the keys for round r + 1
    reveal/...      the survivors; their shares

A party that did not answer in round r - 1 has no keys for round r: it is asked for keys for round r + 1 instead, and is
back then. Who is called in a round follows from what was saved with the round before, so a restarted hub calls the same
parties; those that masked before repeat their bytes.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping

import numpy as np

from consenso.arrays import IntArray
from consenso.errors import InputError, PrivacyError
from consenso.runtime.checkpoint import fingerprint
from consenso.runtime.codec import MessageError, decode_values
from consenso.runtime.plan import Plan
from consenso.runtime.rehearsal import BOUND, SHARE, Form
from consenso.runtime.secure_sum.client import Client
from consenso.runtime.secure_sum.fixed_point import Column, check, columns, decode, encode
from consenso.runtime.secure_sum.kept import keep, restore
from consenso.runtime.secure_sum.masks import Words
from consenso.runtime.secure_sum.messages import Survivors
from consenso.runtime.secure_sum.server import DiscardedError, Server
from consenso.runtime.secure_sum.terms import Occasion, Terms
from consenso.runtime.secure_sum.wire import Wire
from consenso.runtime.summation import STEP, Gathered, HubTurn, PartyTurn, expected_costs
from consenso.schedules import Everyone, PoissonSubset

log = logging.getLogger(__name__)

HELLO, ADVERT, REVEAL = "hello", "advert", "reveal/"


def secure_parts(plan: Plan) -> tuple[SecureSum, SecureContributor]:
    """The hub's and the party's side of a plan; what cannot be summed securely is refused here, before anything."""
    terms = terms_of(plan)
    return SecureSum(plan, terms), SecureContributor(plan, terms)


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
            "part, and the sample would not stay hidden; use Everyone() or PoissonSubset(rate)."
        )
    terms = Terms(
        run=bytes.fromhex(fingerprint(plan)), parties=setting.parties, absent=setting.colluders
    )
    check(setting, plan.algorithm.releases)
    return terms


class SecureSum:
    """The hub's side. It sees masked integers, and opens their sum."""

    def __init__(self, plan: Plan, terms: Terms) -> None:
        self.plan, self.terms, self.wire = plan, terms, Wire(terms)

    def gather(self, turn: HubTurn) -> Gathered:
        """The total of a round; waits while fewer than the threshold answer."""
        at = Occasion(round=turn.facts.round)
        server = self._server(turn, at)
        form = turn.rehearsal.at(at.round).up
        told = expected_costs(turn, form)
        table = columns(turn.plan.setting, turn.plan.algorithm.releases, at.round, form, told)
        self._masked(turn, server, at, table, _costs(told))
        self._revealed(turn, server, at)
        total = server.total()
        survivors = tuple(server.survivors().survivors.tolist())
        return Gathered(total=form.record(**opened(table, total)), counted=survivors)

    def _server(self, turn: HubTurn, at: Occasion) -> Server:
        """The server with the keys of all, and with the adverts for this round."""
        server, everyone = Server(self.terms), range(self.terms.parties)
        if "circle" not in turn.memory:
            self._require_start(at)
            answers = turn.ask(HELLO, dict.fromkeys(everyone, b""), lambda party, blob: self._read_hello(party, blob))
            for party in sorted(answers):
                server.greet(self.wire.read_hello(answers[party], party))
            turn.memory["circle"] = self.wire.write_circle(server.circle())
            adverts = turn.ask(
                ADVERT,
                dict.fromkeys(everyone, turn.memory["circle"]),
                lambda party, blob: self._read_advert(party, blob, at),
            )
            turn.memory |= {f"advert/{party}": blob for party, blob in adverts.items()}
        else:
            for party, key in enumerate(self.wire.read_circle(turn.memory["circle"]).keys):
                server.greet(self._hello(party, key.tobytes()))
        for party in everyone:
            blob = turn.memory.get(f"advert/{party}")
            if blob:
                server.take_advert(self.wire.read_advert(blob, party, at))
        return server
