from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import InputError, TamperError
from consenso.secure_sum.sharing import PRIME, SHARE_BYTES, combine, split

SECRET = bytes(range(32))


def is_prime(number: int) -> bool:
    """Miller-Rabin with 64 bases: wrong with a probability below 2^-128."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    draw = random.Random(0)
    for _ in range(64):
        value = pow(draw.randrange(2, number - 1), odd, number)
        if value in (1, number - 1):
            continue
        for _ in range(twos - 1):
            value = value * value % number
            if value == number - 1:
                break
        else:
            return False
    return True


def test_the_field_is_a_field_above_every_secret() -> None:
    assert PRIME > 2**256
    assert is_prime(PRIME)
    assert not any(is_prime(number) for number in range(2**256 + 1, PRIME))


@given(
    secret=st.binary(min_size=32, max_size=32), holders=st.integers(1, 9), data=st.data(), seed=st.integers(0, 2**32)
)
def test_any_threshold_shares_give_the_secret(secret: bytes, holders: int, data: st.DataObject, seed: int) -> None:
    threshold = data.draw(st.integers(1, holders))
    shares = split(secret, holders, threshold, random.Random(seed).randbytes)
    chosen = data.draw(st.permutations(range(holders)))[:threshold]
    assert combine({holder: shares[holder] for holder in chosen}) == secret


def test_fewer_shares_fit_every_secret_equally() -> None:
    """Given threshold - 1 shares, each secret has exactly one polynomial: what is seen tells nothing of it."""
    shares = split(SECRET, 4, 3, random.Random(1).randbytes)
    seen = {0: shares[0], 2: shares[2]}
    for other in (bytes(32), b"\xff" * 32, SECRET[::-1]):
        # The third share that would make `other` the secret: interpolate through (0, other) and the two seen.
        points = {0: int.from_bytes(other, "big"), 1: int.from_bytes(seen[0], "big"), 3: int.from_bytes(seen[2], "big")}
        value = 0
        for at, height in points.items():
            term = height
            for others in points:
                if others != at:
                    term = term * (2 - others) * pow(at - others, -1, PRIME) % PRIME
            value = (value + term) % PRIME
        assert combine({**seen, 1: value.to_bytes(SHARE_BYTES, "big")}) == other


def test_shares_of_one_secret_differ_from_draw_to_draw() -> None:
    draw = random.Random(2)
    one, other = (split(SECRET, 3, 2, draw.randbytes) for _ in range(2))
    assert all(a != b for a, b in zip(one, other, strict=True))
    assert len({*one, *other}) == 6


@pytest.mark.parametrize("threshold", [2, 3, 5])
def test_too_few_or_changed_shares_do_not_give_the_secret(threshold: int) -> None:
    shares = split(SECRET, 5, threshold, random.Random(3).randbytes)
    for chosen in itertools.combinations(range(5), threshold - 1):
        assert _combined({holder: shares[holder] for holder in chosen}) != SECRET
    changed = bytes(SHARE_BYTES - 1) + bytes([shares[0][-1] ^ 1])
    assert _combined({0: changed, **{holder: shares[holder] for holder in range(1, threshold)}}) != SECRET


def _combined(shares: dict[int, bytes]) -> bytes | None:
    try:
        return combine(shares)
    except TamperError:
        return None


def test_what_is_no_share_is_refused() -> None:
    shares = split(SECRET, 2, 2, random.Random(4).randbytes)
    with pytest.raises(TamperError, match="share of holder 1"):
        combine({0: shares[0], 1: b"\xff" * SHARE_BYTES})
    with pytest.raises(TamperError, match="share of holder 1"):
        combine({0: shares[0], 1: b"short"})
    for holders, threshold in ((2, 3), (2, 0)):
        with pytest.raises(InputError, match="a threshold lies between"):
            split(SECRET, holders, threshold, random.Random(5).randbytes)
    with pytest.raises(InputError, match="secrets have 32 bytes"):
        split(b"short", 2, 2, random.Random(5).randbytes)
