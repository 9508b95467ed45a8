"""What parties and server say to each other in a secure sum. All of it may be seen by the server.

    once        party  -> server   Hello          a public key for envelopes, signed
                server -> party    Circle         the public keys of all, with their signatures
    in a round  party  -> server   Advert         a fresh public key for masks, envelopes with shares of two secrets
                server -> party    Call           who takes part, their keys, the envelopes for this party
                party  -> server   Masked         the masked integers
                server -> party    Survivors      whose masked integers arrived
                party  -> server   Shares         for each survivor a share of its seed, for the others of their key

The advert of the next round may travel with the masked integers of this one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import IntArray
from consenso.engine.fixed_point import Words
from consenso.errors import InputError
from consenso.secure_sum.masks import ENVELOPE_BYTES, KEY_BYTES
from consenso.secure_sum.sharing import SHARE_BYTES
from consenso.secure_sum.terms import Occasion

Bytes = NDArray[np.uint8]

PACKET_BYTES = 2 * SHARE_BYTES + ENVELOPE_BYTES


@dataclass(frozen=True, kw_only=True, eq=False)
class Hello:
    """A party's public key for envelopes, for a whole run, with its signature; empty where nobody has certificates."""

    run: bytes
    party: int
    key: bytes
    signature: bytes = b""


@dataclass(frozen=True, kw_only=True, eq=False)
class Circle:
    """The public keys for envelopes of all parties that said hello, (parties, 32), in the order of `members`."""

    run: bytes
    members: IntArray
    keys: Bytes

    @cached_property
    def digest(self) -> bytes:
        """What an advert names to say for whom its envelopes are."""
        whole = hashlib.sha256(self.run)
        whole.update(np.ascontiguousarray(self.members, dtype="<i8").tobytes())
        whole.update(np.ascontiguousarray(self.keys).tobytes())
        return whole.digest()


@dataclass(frozen=True, kw_only=True, eq=False)
class Advert:
    """A party's public key for masks, a commitment to its seed, and an envelope for each member of the circle."""

    run: bytes
    occasion: Occasion
    party: int
    circle: bytes
    key: bytes
    commitment: bytes
    packets: Bytes  # (members, PACKET_BYTES)


@dataclass(frozen=True, kw_only=True, eq=False)
class RosterMessage:
    """Who takes part in a round, with their public keys for masks, and what they enclosed for the receiver."""

    run: bytes
    occasion: Occasion
    circle: bytes
    roster: IntArray
    keys: Bytes  # (roster, 32)
    packets: Bytes  # (roster, PACKET_BYTES)


@dataclass(frozen=True, kw_only=True, eq=False)
class Masked:
    """A party's integers modulo 2^64 under its masks."""

    run: bytes
    occasion: Occasion
    party: int
    words: Words


@dataclass(frozen=True, kw_only=True, eq=False)
class Survivors:
    """Whose masked integers will be summed."""

    run: bytes
    occasion: Occasion
    survivors: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """A share of each member of the roster: of a survivor's seed, of a missing party's key. Never of both."""

    run: bytes
    occasion: Occasion
    party: int
    shares: Bytes  # (roster, SHARE_BYTES)


def rows(parts: list[bytes], width: int) -> Bytes:
    """Equal pieces of bytes as the rows of an array."""
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(len(parts), width)


def row(table: Bytes, index: int) -> bytes:
    """One row as bytes."""
    return bytes(table[index])


def require_table(what: str, table: Bytes, count: int, width: int) -> None:
    """Refuse a table of bytes of another shape."""
    if table.dtype != np.uint8 or table.shape != (count, width):
        raise InputError(
            f"secure sum: {what} is a table of {count} rows of {width} bytes, and {table.dtype} of shape "
            f"{table.shape} came; the message is refused."
        )


def require_parties(what: str, members: IntArray, parties: int) -> None:
    """Refuse lists of parties that are not ascending indices below `parties`."""
    ascending = members.ndim == 1 and members.dtype == np.int64 and bool((np.diff(members) > 0).all())
    if not ascending or members.size == 0 or members[0] < 0 or members[-1] >= parties:
        raise InputError(
            f"secure sum: {what} lists parties in 0..{parties - 1}, each once and ascending; the message is refused."
        )


def require_key(what: str, key: bytes) -> None:
    """Refuse keys and hashes of another length."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise InputError(f"secure sum: {what} has {KEY_BYTES} bytes; the message is refused.")
