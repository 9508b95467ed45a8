"""The server's side of the secure sum: it passes keys and envelopes on, and takes the masks off the sum alone.

It is trusted to follow the protocol and not to keep secrets (semi-honest). What reaches it late, twice, for another
round or in another shape is refused with a reason and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from consenso.engine.fixed_point import Words
from consenso.errors import InputError, PrivacyError, TamperError
from consenso.secure_sum.client import add_pair_mask
from consenso.secure_sum.masks import KEY_BYTES, Blender, KeyPair, commit, derive, name
from consenso.secure_sum.messages import (
    PACKET_BYTES,
    Advert,
    Circle,
    Hello,
    Masked,
    RosterMessage,
    Shares,
    Survivors,
    require_key,
    require_table,
    row,
    rows,
)
from consenso.secure_sum.sharing import SHARE_BYTES, combine
from consenso.secure_sum.terms import Occasion, SumTerms


class DiscardedError(PrivacyError):
    """Too few parties answered. Nothing was unmasked, and nothing can be."""


@dataclass
class _Gathering:
    """What has arrived for the occasion under way."""

    occasion: Occasion
    length: int | None = None
    roster: list[int] = field(default_factory=list)  # empty until the call goes out
    masked: dict[int, Words] = field(default_factory=dict)
    survivors: list[int] = field(default_factory=list)  # empty until the list goes out
    shares: dict[int, list[bytes]] = field(default_factory=dict)


class SumServer:
    """The server of one run; one occasion at a time."""

    def __init__(self, terms: SumTerms) -> None:
        self.terms = terms
        self._hellos: dict[int, bytes] = {}
        self._circle: Circle | None = None
        self._adverts: dict[Occasion, dict[int, Advert]] = {}
        self._now: _Gathering | None = None

    # --- once, and when a party comes back without its keys ---------------------------------------------------------

    def greet(self, hello: Hello) -> bool:
        """Take a party's public key; whether it is new, so that everyone has to meet a new circle."""
        self._same_run(hello.run)
        self._require_known(hello.party)
        require_key("a public key", hello.key)
        if self._hellos.get(hello.party) == hello.key:
            return False
        self._hellos[hello.party] = hello.key
        self._circle, self._adverts = None, {}
        return True

    def circle(self) -> Circle:
        """The public keys of all who said hello."""
        if self._circle is None:
            self._enough("said hello", len(self._hellos))
            members = sorted(self._hellos)
            self._circle = Circle(
                run=self.terms.run,
                members=np.array(members, dtype=np.int64),
                keys=rows([self._hellos[member] for member in members], KEY_BYTES),
            )
        return self._circle

    # --- in a round -------------------------------------------------------------------------------------------------

    def missing_adverts(self, occasion: Occasion) -> list[int]:
        """Members of the circle whose advert for an occasion is not here."""
        here = self._adverts.get(occasion, {})
        return [int(member) for member in self.circle().members if int(member) not in here]

    def take_advert(self, advert: Advert) -> None:
        """Keep a party's keys for a round that has not been called yet."""
        self._same_run(advert.run)
        self._require_known(advert.party)
        occasion, circle = advert.occasion, self.circle()
        if self._now is not None and occasion <= self._now.occasion:
            raise InputError(_late("an advert", advert.party, occasion))
        if advert.circle != circle.digest or advert.party not in circle.members:
            raise InputError(
                f"secure sum: the advert of party {advert.party} is for another circle; advertise anew for this one."
            )
        require_key("a public key", advert.key)
        require_key("a commitment", advert.commitment)
        require_table("the packets of an advert", advert.packets, len(circle.members), PACKET_BYTES)
        found = self._adverts.setdefault(occasion, {})
        if advert.party in found:
            raise InputError(_twice("an advert", advert.party, occasion))
        found[advert.party] = advert

    def call(self, occasion: Occasion) -> dict[int, RosterMessage]:
        """A call for each party that advertised; DiscardedError where they are too few."""
        circle, adverts = self.circle(), self._adverts.get(occasion, {})
        if self._now is not None and occasion <= self._now.occasion:
            raise InputError(_late("a call", -1, occasion))
        roster = sorted(adverts)
        self._enough(f"advertised keys for round {occasion.round}", len(roster))
        self._adverts = {at: found for at, found in self._adverts.items() if at >= occasion}
        self._now = _Gathering(occasion=occasion, roster=roster)
        places = {int(member): index for index, member in enumerate(circle.members)}
        keys = rows([adverts[member].key for member in roster], KEY_BYTES)
        return {
            receiver: RosterMessage(
                run=self.terms.run,
                occasion=occasion,
                circle=circle.digest,
                roster=np.array(roster, dtype=np.int64),
                keys=keys,
                packets=rows([row(adverts[sender].packets, places[receiver]) for sender in roster], PACKET_BYTES),
            )
            for receiver in roster
        }

    def take_masked(self, message: Masked) -> None:
        """Keep a party's masked integers."""
        now = self._at("masked integers", message)
        if now.survivors:
            raise InputError(_late("masked integers", message.party, now.occasion))
        if message.party in now.masked:
            raise InputError(_twice("masked integers", message.party, now.occasion))
        if message.words.ndim != 1 or message.words.dtype != np.uint64:
            raise InputError("secure sum: masked integers are a flat vector of 64-bit words; the message is refused.")
        if now.length not in (None, message.words.size):
            raise InputError(
                f"secure sum, round {now.occasion.round}: party {message.party} sent {message.words.size} integers and "
                f"others {now.length}; the message is refused."
            )
        now.length = int(message.words.size)
        now.masked[message.party] = message.words

    def list_arrived(self) -> list[int]:
        """Whose masked integers are here."""
        return [] if self._now is None else sorted(self._now.masked)

    def survivors(self, agreed: Collection[int] | None = None) -> Survivors:
        """Close the list; DiscardedError where too few masked integers arrived. The same list when asked again.

        `agreed` is a list that parties agreed to in this round already, when the server was another process: they will
        help with no other.
        """
        now = self._under_way()
        if not now.survivors:
            chosen = sorted(now.masked if agreed is None else set(now.masked) & set(agreed))
            self._enough(f"sent masked integers in round {now.occasion.round}", len(chosen))
            if agreed is not None and len(chosen) < len(agreed):
                raise DiscardedError(
                    f"secure sum, round {now.occasion.round}: {len(agreed) - len(chosen)} of the survivors that were "
                    "agreed to have not sent their integers again; wait for them."
                )
            now.survivors = chosen
        return Survivors(
            run=self.terms.run,
            occasion=now.occasion,
            survivors=np.array(now.survivors, dtype=np.int64),
        )

    def take_shares(self, message: Shares) -> None:
        """Keep a party's shares."""
        now = self._at("shares", message)
        if message.party not in now.survivors:
            raise InputError(_late("shares", message.party, now.occasion))
        if message.party in now.shares:
            raise InputError(_twice("shares", message.party, now.occasion))
        require_table("the shares of a round", message.shares, len(now.roster), SHARE_BYTES)
        now.shares[message.party] = [row(message.shares, index) for index in range(len(now.roster))]

    def total(self) -> Words:
        """The sum modulo 2^64 of the survivors' integers; DiscardedError where too few shares arrived."""
        now = self._under_way()
        self._enough(f"answered with shares in round {now.occasion.round}", len(now.shares))
        holders = sorted(now.shares)[: self.terms.threshold]
        adverts = self._adverts[now.occasion]
        words = np.zeros(now.length or 0, dtype=np.uint64)
        for member in now.survivors:
            np.add(words, now.masked[member], out=words)
        blender = Blender(words)
        for index, member in enumerate(now.roster):
            secret = combine({holder: now.shares[holder][index] for holder in holders})
            if member in now.survivors:
                self._take_own_mask(blender, secret, adverts[member], now.occasion)
            else:
                self._take_pair_masks(blender, secret, adverts, member, now)
        return words

    def _take_own_mask(self, blender: Blender, seed: bytes, advert: Advert, occasion: Occasion) -> None:
        party = name(advert.party)
        if commit(seed, self.terms.run + occasion.tag + party + party) != advert.commitment:
            raise TamperError(_wrong_secret("seed", advert.party, occasion))
        blender.add(derive(seed, self.terms.run, "self", occasion.tag, party), negative=True)

    def _take_pair_masks(
        self, blender: Blender, key: bytes, adverts: Mapping[int, Advert], missing: int, now: _Gathering
    ) -> None:
        """The survivors' masks with a missing party cancel with those that it would have added: add them."""
        pair = KeyPair(key)
        if pair.public != adverts[missing].key:
            raise TamperError(_wrong_secret("key", missing, now.occasion))
        for survivor in now.survivors:
            agreed = pair.agree(adverts[survivor].key)
            add_pair_mask(blender, agreed, self.terms, now.occasion, own=missing, other=survivor)

    def _enough(self, what: str, count: int) -> None:
        if count < self.terms.threshold:
            raise DiscardedError(
                f"secure sum: only {count} of {self.terms.parties} parties {what} and {self.terms.threshold} are "
                "needed; the round is discarded and nothing is unmasked: wait for the others and try again."
            )

    def _under_way(self) -> _Gathering:
        if self._now is None:
            raise InputError("secure sum: no round was called; begin with call().")
        return self._now

    def _at(self, what: str, message: Masked | Shares) -> _Gathering:
        """What has arrived so far, if the message belongs to it."""
        self._same_run(message.run)
        self._require_known(message.party)
        now, occasion = self._under_way(), message.occasion
        if occasion != now.occasion or message.party not in now.roster:
            raise InputError(_late(what, message.party, occasion))
        return now

    def _same_run(self, run: bytes) -> None:
        if run != self.terms.run:
            raise InputError("secure sum: the message belongs to another run; it is refused.")

    def _require_known(self, party: int) -> None:
        if not 0 <= party < self.terms.parties:
            raise InputError(f"secure sum: there is no party {party}; the message is refused.")


def _late(what: str, party: int, occasion: Occasion) -> str:
    who = f" of party {party}" if party >= 0 else ""
    return (
        f"secure sum: {what}{who} for round {occasion.round}, attempt {occasion.attempt} is not of the step under way; "
        "the message is refused."
    )


def _twice(what: str, party: int, occasion: Occasion) -> str:
    return f"secure sum: {what} of party {party} for round {occasion.round} came twice; the second is refused."


def _wrong_secret(what: str, party: int, occasion: Occasion) -> str:
    return (
        f"secure sum, round {occasion.round}: the shares of the {what} of party {party} do not give it; one of them "
        "was changed, and the round is discarded."
    )
