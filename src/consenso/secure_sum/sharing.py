"""Shamir's secret sharing of 32-byte secrets: any `threshold` shares give the secret, fewer say nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from consenso.errors import InputError, TamperError

SECRET_BYTES = 32
SHARE_BYTES = 33
# The smallest prime above every secret of 32 bytes.
PRIME = 2**256 + 297

Entropy = Callable[[int], bytes]


def split(secret: bytes, holders: int, threshold: int, entropy: Entropy) -> list[bytes]:
    """A share for each of `holders`: the values at 1, 2, ... of a random polynomial whose constant is the secret."""
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= holders:
        raise InputError(
            f"split(secret of {len(secret)} bytes, holders={holders}, threshold={threshold}): secrets have "
            f"{SECRET_BYTES} bytes and a threshold lies between 1 and the number of holders."
        )
    coefficients = _residues(threshold - 1, entropy)
    constant = int.from_bytes(secret, "big")
    shares = []
    for at in range(1, holders + 1):
        value = 0
        for coefficient in coefficients:
            value = (value + coefficient) * at % PRIME
        shares.append(((value + constant) % PRIME).to_bytes(SHARE_BYTES, "big"))
    return shares


def combine(shares: Mapping[int, bytes]) -> bytes:
    """The secret from exactly as many shares as its threshold, by holder (counted from 0).

    Wrong shares give another secret, which the caller has to notice, or no secret at all, which is an error here.
    """
    holders = tuple(sorted(shares))
    total = 0
    for holder, weight in zip(holders, _weights(holders), strict=True):
        value = int.from_bytes(shares[holder], "big")
        if len(shares[holder]) != SHARE_BYTES or value >= PRIME:
            raise TamperError(f"combine: the share of holder {holder} is none; the holder must send it again.")
        total += value * weight
    secret = total % PRIME
    if secret >> 8 * SECRET_BYTES:
        raise TamperError("combine: the shares do not belong to one secret; one of them was changed.")
    return secret.to_bytes(SECRET_BYTES, "big")


@lru_cache(maxsize=64)
def _weights(holders: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange weights at 0; the same for every secret of a round."""
    points = [holder + 1 for holder in holders]
    weights = []
    for own in points:
        above, below = 1, 1
        for other in points:
            if other != own:
                above, below = above * other % PRIME, below * (other - own) % PRIME
        weights.append(above * pow(below, -1, PRIME) % PRIME)
    return tuple(weights)


def _residues(count: int, entropy: Entropy) -> list[int]:
    """Uniform below the prime, by rejection: every second draw of 257 bits is below it."""
    found: list[int] = []
    while len(found) < count:
        drawn = entropy(2 * (count - len(found)) * SHARE_BYTES)  # one call to the operating system mostly suffices
        for start in range(0, len(drawn), SHARE_BYTES):
            value = int.from_bytes(drawn[start : start + SHARE_BYTES], "big") & (2**257 - 1)
            if value < PRIME:
                found.append(value)
    return found[:count]
