"""A party's side of the secure sum. It does no input or output: it turns messages into messages.

What it refuses, whoever asks: a message of another run or round; a round that is past; a second use of its masks; a
round with fewer parties than the threshold; a list of survivors without itself, or a second, different list for one
round. So it never tells shares of both secrets of one peer, and takes part in one sum of its value only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from consenso.arrays import IntArray
from consenso.engine.fixed_point import Words
from consenso.errors import InputError, PrivacyError, TamperError
from consenso.secure_sum.masks import Blender, KeyPair, commit, derive, expand, extract, name, seal, unseal
from consenso.secure_sum.messages import (
    PACKET_BYTES,
    Advert,
    Circle,
    Hello,
    Masked,
    RosterMessage,
    Shares,
    Survivors,
    require_parties,
    require_table,
    row,
    rows,
)
from consenso.secure_sum.sharing import SECRET_BYTES, SHARE_BYTES, Entropy, split
from consenso.secure_sum.terms import Occasion, SumTerms


@dataclass(frozen=True, kw_only=True)
class Engagement:
    """A party's secrets for one occasion: the key of its pairwise masks, the seed of its own, the shares it holds."""

    occasion: Occasion
    circle: bytes
    key: bytes
    seed: bytes
    advert: Advert
    roster: IntArray | None = None  # from here on the party's masks are used up
    held: tuple[bytes, ...] = ()  # for each of the roster, a share of its seed and one of its key


@dataclass(frozen=True, kw_only=True, eq=False)
class _Accepted:
    """A call that is in order, with what its envelopes hold and the secrets that its keys agree on."""

    call: RosterMessage
    held: tuple[bytes, ...]
    agreed: dict[int, bytes]  # by member


class Client:
    """One party in one run. Secrets are drawn from the operating system unless a test gives another `entropy`."""

    def __init__(
        self, terms: SumTerms, party: int, *, entropy: Entropy = os.urandom, channel: KeyPair | None = None
    ) -> None:
        if not 0 <= party < terms.parties:
            raise InputError(f"Client(party={party}): the parties are 0..{terms.parties - 1}; name one of them.")
        self.terms, self.party = terms, party
        self._entropy = entropy
        self.channel = channel or KeyPair.draw(entropy)  # for envelopes, of a whole run
        self.known_circle: Circle | None = None
        self._common: dict[bytes, bytes] = {}  # by the other's key; agreed and extracted once for a whole run
        self._drawn: KeyPair | None = None  # the last one that was advertised, ready for use
        self._accepted: _Accepted | None = None  # the last call that was in order
        self.engagements: dict[Occasion, Engagement] = {}
        self.latest: Occasion | None = None  # the last occasion whose masks were used
        self.agreed: tuple[int, bytes] | None = None  # a round and the survivors that were agreed to in it

    @property
    def agreed_survivors(self) -> IntArray:
        """The survivors that were last agreed to; nobody before the first time."""
        return np.frombuffer(b"" if self.agreed is None else self.agreed[1], dtype=np.int64)

    def hello(self) -> Hello:
        """The party's public key for envelopes."""
        return Hello(run=self.terms.run, party=self.party, key=self.channel.public)

    def meet(self, circle: Circle) -> None:
        """Learn the others' keys. Adverts that were made for another circle are void."""
        self._same_run(circle.run)
        require_parties("a circle", circle.members, self.terms.parties)
        require_table("the keys of a circle", circle.keys, len(circle.members), len(self.channel.public))
        own = np.flatnonzero(circle.members == self.party)
        if not own.size or row(circle.keys, int(own[0])) != self.channel.public:
            raise InputError(
                f"secure sum: party {self.party} is not in the circle with its own key; it says hello anew."
            )
        if len(circle.members) < self.terms.threshold:
            raise PrivacyError(_too_few("a circle", len(circle.members), self.terms))
        if self.known_circle is not None and circle.digest == self.known_circle.digest:
            return
        self.known_circle = circle
        self.engagements = {at: made for at, made in self.engagements.items() if made.roster is not None}

    def advertise(self, occasion: Occasion) -> Advert:
        """Fresh secrets for an occasion, told in shares; the same advert when asked again."""
        if self.known_circle is None:
            raise InputError("secure sum: advertise() comes after meet(); wait for the circle.")
        if occasion in self.engagements:
            return self.engagements[occasion].advert
        self._not_past(occasion)
        circle, members = self.known_circle.digest, [int(member) for member in self.known_circle.members]
        pair, seed = KeyPair.draw(self._entropy), self._entropy(SECRET_BYTES)
        seeds, keys = (
            split(secret, self.terms.parties, self.terms.threshold, self._entropy) for secret in (seed, pair.secret)
        )
        packets = [
            seal(
                self._envelope_key(index, occasion, sender=self.party, receiver=member),
                seeds[member] + keys[member],
                self._context(occasion, self.party, member) + pair.public,
                self._entropy,
            )
            for index, member in enumerate(members)
        ]
        advert = Advert(
            run=self.terms.run,
            occasion=occasion,
            party=self.party,
            circle=circle,
            key=pair.public,
            commitment=commit(seed, self._context(occasion, self.party, self.party)),
            packets=rows(packets, PACKET_BYTES),
        )
        self._drawn = pair
        self.engagements[occasion] = Engagement(
            occasion=occasion, circle=circle, key=pair.secret, seed=seed, advert=advert
        )
        return advert

    def check(self, call: RosterMessage) -> None:
        """Refuse a call that is not in order; `mask` checks it too, but by then the integers have been made."""
        occasion, own = self._check_call(call)
        if self._accepted is not None and self._accepted.call is call:
            return
        held = self._open_shares(call, occasion)
        pair = self._drawn if self._drawn is not None and self._drawn.secret == own.key else KeyPair(own.key)
        agreed = {
            int(member): pair.agree(row(call.keys, index))
            for index, member in enumerate(call.roster)
            if member != self.party
        }
        self._accepted = _Accepted(call=call, held=tuple(held), agreed=agreed)

    def mask(self, call: RosterMessage, integers: Words) -> Masked:
        """The party's integers modulo 2^64 (uint64) under its masks. Once for each occasion: keep the answer."""
        self.check(call)
        accepted, self._accepted = self._accepted, None
        assert accepted is not None
        occasion = call.occasion
        own = self.engagements[occasion]
        words = np.array(integers, dtype=np.uint64)
        if words.ndim != 1:
            raise InputError(f"Client.mask(integers of shape {words.shape}): a sum is of flat vectors.")
        blender = Blender(words)
        blender.add(derive(own.seed, self.terms.run, "self", occasion.tag, name(self.party)))
        for member, secret in accepted.agreed.items():
            add_pair_mask(blender, secret, self.terms, occasion, own=self.party, other=member)
        # Masks are used up from here on, and what came before can no longer be unmasked by this party's mistake.
        self.engagements = {at: made for at, made in self.engagements.items() if at > occasion}
        self.engagements[occasion] = replace(own, roster=call.roster, held=accepted.held)
        self.latest = occasion
        return Masked(run=self.terms.run, occasion=occasion, party=self.party, words=words)

    def reveal(self, request: Survivors) -> Shares:
        """Shares that let the server take the masks off the sum of the survivors, and off nothing else."""
        self._same_run(request.run)
        occasion = request.occasion
        own = self.engagements.get(occasion)
        if own is None or own.roster is None or occasion != self.latest:
            raise PrivacyError(_not_now("survivors", occasion, self.latest))
        require_parties("a list of survivors", request.survivors, self.terms.parties)
        survivors = {int(member) for member in request.survivors}
        if self.party not in survivors or not survivors <= {int(member) for member in own.roster}:
            raise PrivacyError(
                f"secure sum, round {occasion.round}: survivors are members of the roster, this party among them; "
                "nothing is revealed."
            )
        if len(survivors) < self.terms.threshold:
            raise PrivacyError(_too_few("a list of survivors", len(survivors), self.terms))
        agreed = (occasion.round, request.survivors.tobytes())
        if self.agreed is not None and self.agreed[0] == occasion.round and self.agreed != agreed:
            raise PrivacyError(
                f"secure sum, round {occasion.round}: another list of survivors was agreed to in this round; two sums "
                "of the same values would tell their difference, so nothing is revealed."
            )
        self.agreed = agreed
        shares = [
            both[:SHARE_BYTES] if int(member) in survivors else both[SHARE_BYTES:]
            for member, both in zip(own.roster, own.held, strict=True)
        ]
        return Shares(
            run=self.terms.run,
            occasion=occasion,
            party=self.party,
            shares=rows(shares, SHARE_BYTES),
        )

    def _check_call(self, call: RosterMessage) -> tuple[Occasion, Engagement]:
        self._same_run(call.run)
        occasion = call.occasion
        own = self.engagements.get(occasion)
        if own is None or own.roster is not None:
            raise PrivacyError(_not_now("a call", occasion, self.latest))
        self._not_past(occasion)
        require_parties("a roster", call.roster, self.terms.parties)
        require_table("the keys of a call", call.keys, len(call.roster), len(self.channel.public))
        require_table("the packets of a call", call.packets, len(call.roster), PACKET_BYTES)
        if call.circle != own.circle or self.known_circle is None or self.known_circle.digest != own.circle:
            raise PrivacyError(
                f"secure sum, round {occasion.round}: the call is for another circle; advertise anew for this one."
            )
        if not set(call.roster.tolist()) <= set(self.known_circle.members.tolist()):
            raise PrivacyError(f"secure sum, round {occasion.round}: the roster has parties that nobody introduced.")
        place = np.flatnonzero(call.roster == self.party)
        if not place.size or row(call.keys, int(place[0])) != own.advert.key:
            raise PrivacyError(
                f"secure sum, round {occasion.round}: this party is not in the roster with the key that it advertised."
            )
        if len({row(call.keys, index) for index in range(len(call.roster))}) < len(call.roster):
            raise TamperError(f"secure sum, round {occasion.round}: two parties have one key, and would have one mask.")
        if len(call.roster) < self.terms.threshold:
            raise PrivacyError(_too_few("a roster", len(call.roster), self.terms))
        return occasion, own

    def _open_shares(self, call: RosterMessage, occasion: Occasion) -> list[bytes]:
        """For each of the roster its two shares for this party.

        An envelope opens only beside the key for masks with which it was sealed: whoever passes them on can put no key
        of its own there.
        """
        assert self.known_circle is not None
        places = {int(member): index for index, member in enumerate(self.known_circle.members)}
        return [
            unseal(
                self._envelope_key(places[int(sender)], occasion, sender=int(sender), receiver=self.party),
                row(call.packets, index),
                self._context(occasion, int(sender), self.party) + row(call.keys, index),
            )
            for index, sender in enumerate(call.roster)
        ]

    def _envelope_key(self, place: int, occasion: Occasion, *, sender: int, receiver: int) -> bytes:
        """The key of envelopes between this party and the one at a place of the circle, in one direction."""
        assert self.known_circle is not None
        key = row(self.known_circle.keys, place)
        if key not in self._common:
            self._common[key] = extract(self.channel.agree(key), self.terms.run)
        return expand(self._common[key], "envelope", occasion.tag, name(sender), name(receiver))

    def _context(self, occasion: Occasion, sender: int, receiver: int) -> bytes:
        return self.terms.run + occasion.tag + name(sender) + name(receiver)

    def _same_run(self, run: bytes) -> None:
        if run != self.terms.run:
            raise PrivacyError("secure sum: the message belongs to another run; it is refused.")

    def _not_past(self, occasion: Occasion) -> None:
        if self.latest is not None and occasion <= self.latest:
            raise PrivacyError(_not_now("a call or an advert", occasion, self.latest))


def add_pair_mask(
    blender: Blender, agreed: bytes, terms: SumTerms, occasion: Occasion, *, own: int, other: int
) -> None:
    """Add the mask that `own` has in common with `other`, of which one adds it and the other takes it away."""
    parties = (name(min(own, other)), name(max(own, other)))
    blender.add(derive(agreed, terms.run, "pair", occasion.tag, *parties), negative=own > other)


def _too_few(what: str, count: int, terms: SumTerms) -> str:
    return (
        f"secure sum: {what} of {count} parties is below the threshold of {terms.threshold} of {terms.parties}; "
        "nothing is masked or revealed, and the round is discarded."
    )


def _not_now(what: str, occasion: Occasion, latest: Occasion | None) -> str:
    last = "none" if latest is None else f"round {latest.round}, attempt {latest.attempt}"
    return (
        f"secure sum: {what} for round {occasion.round}, attempt {occasion.attempt} is refused: this party did not "
        f"advertise for it, or its masks are used up (last used: {last})."
    )
