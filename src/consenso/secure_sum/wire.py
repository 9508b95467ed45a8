"""Messages of the secure sum as bytes of fixed lengths, which follow from the number of parties and of integers alone.

Tables have a row for every party, zeros for those that are not in them, so that a reader knows the one shape that a
message may have. Who sends, for which run and round, is on the envelope that an engine puts around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import IntArray
from consenso.engine.codec import MessageError, RecordSchema, decode_values, encode_values
from consenso.engine.fixed_point import Words
from consenso.federation.signatures import SIGNATURE_BYTES
from consenso.secure_sum.masks import KEY_BYTES
from consenso.secure_sum.messages import (
    PACKET_BYTES,
    Advert,
    Bytes,
    Circle,
    Hello,
    Masked,
    RosterMessage,
    Shares,
    Survivors,
    row,
)
from consenso.secure_sum.sharing import SHARE_BYTES
from consenso.secure_sum.terms import Occasion, SumTerms


class Wire:
    """Reads and writes the messages of one run."""

    def __init__(self, terms: SumTerms) -> None:
        self.terms, n = terms, terms.parties
        key, keys, packets = _words(KEY_BYTES), _words(KEY_BYTES, n), _words(PACKET_BYTES, n)
        shares, members = _words(SHARE_BYTES, n), np.zeros(n, dtype=bool)
        self._masked: dict[tuple[int, tuple[str, ...]], RecordSchema] = {}  # rounds have a few shapes at most
        signature, signatures = _words(SIGNATURE_BYTES), _words(SIGNATURE_BYTES, n)
        self.hello = RecordSchema.of_values("Hello", {"key": key, "signature": signature})
        self.circle = RecordSchema.of_values("Circle", {"keys": keys, "signatures": signatures})
        self.advert = RecordSchema.of_values(
            "Advert", {"circle": key, "key": key, "commitment": key, "packets": packets}
        )
        self.call = RecordSchema.of_values("Call", {"circle": key, "roster": members, "keys": keys, "packets": packets})
        self.survivors = RecordSchema.of_values("Survivors", {"survivors": members})
        self.shares = RecordSchema.of_values("Shares", {"survivors": members, "shares": shares})

    def masked_schema(self, size: int, costs: Iterable[str]) -> RecordSchema:
        """Masked integers with the public costs that their release named."""
        what = (size, tuple(costs))
        if what not in self._masked:
            words = np.empty(size, dtype=np.int64)
            self._masked[what] = RecordSchema.of_values("Masked", {"words": words, **dict.fromkeys(what[1], 1.0)})
        return self._masked[what]

    # --- writing ------------------------------------------------------------------------------------------------

    def write_hello(self, hello: Hello) -> bytes:
        signature = _pack(hello.signature.ljust(SIGNATURE_BYTES, b"\0"))
        return encode_values("Hello", {"key": _pack(hello.key), "signature": signature})

    def write_circle(self, circle: Circle, signatures: Sequence[bytes] = ()) -> bytes:
        """Server to party; everybody is in it, with what it signed its key with."""
        table = np.zeros((self.terms.parties, SIGNATURE_BYTES), dtype=np.uint8)
        for party, signature in enumerate(signatures):
            table[party] = np.frombuffer(signature, dtype=np.uint8)
        signed = self._select_rows(np.arange(self.terms.parties), table)
        return encode_values("Circle", {"keys": self._select_rows(circle.members, circle.keys), "signatures": signed})

    def write_advert(self, advert: Advert) -> bytes:
        return encode_values(
            "Advert",
            {
                "circle": _pack(advert.circle),
                "key": _pack(advert.key),
                "commitment": _pack(advert.commitment),
                "packets": self._select_rows(np.arange(self.terms.parties), advert.packets),
            },
        )

    def write_call(self, call: RosterMessage) -> bytes:
        return encode_values(
            "Call",
            {
                "circle": _pack(call.circle),
                "roster": self._flags(call.roster),
                "keys": self._select_rows(call.roster, call.keys),
                "packets": self._select_rows(call.roster, call.packets),
            },
        )

    def write_masked(self, masked: Masked, costs: Mapping[str, float]) -> bytes:
        return encode_values("Masked", {"words": masked.words.view(np.int64), **costs})

    def write_survivors(self, message: Survivors) -> bytes:
        return encode_values("Survivors", {"survivors": self._flags(message.survivors)})

    def write_shares(self, survivors: IntArray, roster: IntArray, shares: Bytes) -> bytes:
        """Party to server, with the list of survivors that they are for."""
        table = self._select_rows(roster, shares)
        return encode_values("Shares", {"survivors": self._flags(survivors), "shares": table})

    # --- reading ------------------------------------------------------------------------------------------------

    def read_hello(self, blob: bytes, party: int) -> Hello:
        values = decode_values(blob, self.hello)
        signature = _bytes(values["signature"], SIGNATURE_BYTES)
        return Hello(run=self.terms.run, party=party, key=_bytes(values["key"], KEY_BYTES), signature=signature)

    def read_circle(self, blob: bytes) -> Circle:
        keys = _table(decode_values(blob, self.circle)["keys"], KEY_BYTES)
        return Circle(run=self.terms.run, members=np.arange(self.terms.parties, dtype=np.int64), keys=keys)

    def read_signatures(self, blob: bytes) -> list[bytes]:
        """By party, the signatures that came with a circle."""
        table = _table(decode_values(blob, self.circle)["signatures"], SIGNATURE_BYTES)
        return [row(table, party) for party in range(self.terms.parties)]

    def read_advert(self, blob: bytes, party: int, occasion: Occasion) -> Advert:
        values = decode_values(blob, self.advert)
        return Advert(
            run=self.terms.run,
            occasion=occasion,
            party=party,
            circle=_bytes(values["circle"], KEY_BYTES),
            key=_bytes(values["key"], KEY_BYTES),
            commitment=_bytes(values["commitment"], KEY_BYTES),
            packets=_table(values["packets"], PACKET_BYTES),
        )

    def read_call(self, blob: bytes, occasion: Occasion) -> RosterMessage:
        values = decode_values(blob, self.call)
        roster = np.flatnonzero(values["roster"]).astype(np.int64)
        return RosterMessage(
            run=self.terms.run,
            occasion=occasion,
            circle=_bytes(values["circle"], KEY_BYTES),
            roster=roster,
            keys=_table(values["keys"][roster], KEY_BYTES),
            packets=_table(values["packets"][roster], PACKET_BYTES),
        )

    def read_masked(self, blob: bytes, party: int, occasion: Occasion, size: int, costs: Mapping[str, float]) -> Masked:
        """What `write_masked` wrote; refused unless it names the costs that everybody names."""
        values = decode_values(blob, self.masked_schema(size, costs))
        if any(values[name] != cost for name, cost in costs.items()):
            raise MessageError("Masked: the bound or the share of a release is not everybody's.")
        words: Words = values["words"].view(np.uint64)
        return Masked(run=self.terms.run, occasion=occasion, party=party, words=words)

    def read_survivors(self, blob: bytes, occasion: Occasion) -> Survivors:
        flags = decode_values(blob, self.survivors)["survivors"]
        return Survivors(run=self.terms.run, occasion=occasion, survivors=_members(flags))

    def read_shares(self, blob: bytes, party: int, occasion: Occasion, roster: IntArray) -> tuple[IntArray, Shares]:
        """The survivors that shares are for, and the shares."""
        values = decode_values(blob, self.shares)
        shares = Shares(
            run=self.terms.run,
            occasion=occasion,
            party=party,
            shares=_table(values["shares"][roster], SHARE_BYTES),
        )
        return _members(values["survivors"]), shares

    def _flags(self, members: IntArray) -> NDArray[np.bool_]:
        flags = np.zeros(self.terms.parties, dtype=bool)
        flags[members] = True
        return flags

    def _select_rows(self, members: IntArray, table: Bytes) -> IntArray:
        """The rows of some parties in a table of all."""
        whole = np.zeros((self.terms.parties, _pad(table.shape[1])), dtype=np.uint8)
        whole[members, : table.shape[1]] = table
        return whole.view("<i8").astype(np.int64, copy=False)


def _pad(width: int) -> int:
    return -(-width // 8) * 8


def _words(width: int, *count: int) -> IntArray:
    return np.zeros((*count, _pad(width) // 8), dtype=np.int64)


def _pack(content: bytes) -> IntArray:
    """Bytes as 64-bit words, filled up with zeros."""
    return np.frombuffer(content.ljust(_pad(len(content)), b"\0"), dtype="<i8").astype(np.int64, copy=False)


def _bytes(words: IntArray, width: int) -> bytes:
    return row(_table(words[None, :], width), 0)


def _table(words: IntArray, width: int) -> Bytes:
    """Rows of words as rows of `width` bytes."""
    whole = np.ascontiguousarray(words, dtype="<i8").view(np.uint8)
    if whole[:, width:].any():
        raise MessageError("a field of bytes is longer than it may be.")
    return np.ascontiguousarray(whole[:, :width])


def _members(flags: NDArray[np.bool_]) -> IntArray:
    return np.flatnonzero(flags).astype(np.int64)
