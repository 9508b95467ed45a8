"""A client as bytes, for the party's own disk: whoever reads them can take the party's masks off."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from consenso.secure_sum.client import Client, Engagement
from consenso.secure_sum.masks import KEY_BYTES, KeyPair
from consenso.secure_sum.messages import PACKET_BYTES, Advert, Bytes, Circle
from consenso.secure_sum.sharing import Entropy
from consenso.secure_sum.terms import Occasion, SumTerms


def keep(client: Client) -> bytes:
    """Everything that the client must know to go on after a restart."""
    circle = client.known_circle
    told = {
        "channel": client.channel.secret.hex(),
        "circle": None if circle is None else [circle.members.tolist(), circle.keys.tobytes().hex()],
        "engagements": [_engagement(made) for made in client.engagements.values()],
        "latest": None if client.latest is None else [client.latest.round, client.latest.attempt],
        "agreed": None if client.agreed is None else [client.agreed[0], client.agreed[1].hex()],
    }
    return json.dumps(told, separators=(",", ":")).encode()


def restore(blob: bytes, terms: SumTerms, party: int, *, entropy: Entropy = os.urandom) -> Client:
    """The client that was kept."""
    told = json.loads(blob)
    client = Client(terms, party, entropy=entropy, channel=KeyPair(bytes.fromhex(told["channel"])))
    if told["circle"] is not None:
        members, keys = told["circle"]
        client.known_circle = Circle(
            run=terms.run, members=np.array(members, dtype=np.int64), keys=_table(keys, KEY_BYTES)
        )
    for each in told["engagements"]:
        made = _restore(each, terms, party)
        client.engagements[made.occasion] = made
    client.latest = None if told["latest"] is None else _occasion(told["latest"])
    client.agreed = None if told["agreed"] is None else (told["agreed"][0], bytes.fromhex(told["agreed"][1]))
    return client


def _engagement(made: Engagement) -> dict[str, Any]:
    return {
        "at": [made.occasion.round, made.occasion.attempt],
        "secrets": [made.circle.hex(), made.key.hex(), made.seed.hex()],
        "advert": [made.advert.key.hex(), made.advert.commitment.hex(), made.advert.packets.tobytes().hex()],
        "roster": None if made.roster is None else made.roster.tolist(),
        "held": [both.hex() for both in made.held],
    }


def _restore(told: dict[str, Any], terms: SumTerms, party: int) -> Engagement:
    at = _occasion(told["at"])
    circle, key, seed = map(bytes.fromhex, told["secrets"])
    public, commitment, packets = told["advert"]
    advert = Advert(
        run=terms.run,
        occasion=at,
        party=party,
        circle=circle,
        key=bytes.fromhex(public),
        commitment=bytes.fromhex(commitment),
        packets=_table(packets, PACKET_BYTES),
    )
    return Engagement(
        occasion=at,
        circle=circle,
        key=key,
        seed=seed,
        advert=advert,
        roster=None if told["roster"] is None else np.array(told["roster"], dtype=np.int64),
        held=tuple(bytes.fromhex(both) for both in told["held"]),
    )


def _occasion(told: list[int]) -> Occasion:
    return Occasion(round=told[0], attempt=told[1])


def _table(text: str, width: int) -> Bytes:
    return np.frombuffer(bytes.fromhex(text), dtype=np.uint8).reshape(-1, width)
