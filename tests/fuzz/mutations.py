"""Changes of bytes, and of JSON documents value by value."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

WORDS = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"-1", b"0", b"1e999", b"nan", b"inf", b"9" * 400, b"'", b'"', b"[" * 60,
    b"{}", b"null", b"true", b"\n", b"\r", b",", b"=", b"[[", b"]]", b"[a.b]", b"1979-05-27", b"../", b"\\u0000",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1.5, 1e308, "", "x" * 300, "\x00", "nan", "inf", [], {}, [[]], [None], {"kind": "zcdp"},
)  # fmt: skip


def mutate(blob: bytes, rng: random.Random) -> bytes:
    """The same bytes with a few changes."""
    made = bytearray(blob)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        place, other = sorted(rng.randrange(len(made) + 1) for _ in range(2))
        match rng.randrange(6):
            case 0 if made:
                made[min(place, len(made) - 1)] ^= 1 << rng.randrange(8)
            case 1:
                del made[place : min(other, place + 40)]
            case 2:
                made[place:place] = made[place : min(other, place + 40)]
            case 3:
                made[place:place] = rng.choice(WORDS)
            case 4:
                made[place : place + rng.randrange(1, 8)] = rng.choice(WORDS)
            case _:
                del made[other:]
                made += rng.choice((b"", b"\n", b"\x00"))
    return bytes(made)


def mutate_json(content: Any, rng: random.Random) -> Any:
    """The same document with one value replaced, removed or doubled."""
    made = copy.deepcopy(content)
    places = list(_places(made))
    for _ in range(rng.choice((1, 1, 2))):
        holder, key = rng.choice(places)
        try:
            match rng.randrange(4):
                case 0:
                    del holder[key]
                case 1 if isinstance(holder, dict):
                    holder[f"{key}_"] = holder[key]
                case 2:
                    donor, other = rng.choice(places)
                    holder[key] = copy.deepcopy(donor[other])
                case _:
                    holder[key] = copy.deepcopy(rng.choice(VALUES))
        except (KeyError, IndexError):
            continue  # gone with an earlier change
    return made


def _places(value: Any) -> Any:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from _places(item)


def as_bytes(content: Any) -> bytes:
    """JSON as it is stored."""
    return json.dumps(content).encode()
