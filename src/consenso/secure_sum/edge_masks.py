"""Masks along the edges of a public mask graph, and what a node of a sum on a graph adds.

Each pair of joined nodes agrees on a secret once (X25519, public keys signed by their owners). From it follows a chain
of keys, one for each round: a round's mask is expanded from its key, the next key is derived from it, and the old one
is forgotten with the answer that it masked. So no mask serves two values, and a disk that is read later opens no round
that is over. A node without a mask graph adds the same integers bare: what protects them then is its own noise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np

from consenso.engine.codec import MessageError, encode_values
from consenso.engine.fixed_point import Words
from consenso.errors import PrivacyError, TamperError
from consenso.federation.sum_protocol import STEP, PartyTurn
from consenso.planning.plan import Plan
from consenso.secure_sum.columns import integers_of
from consenso.secure_sum.masks import Blender, KeyPair, derive, expand, name
from consenso.secure_sum.terms import Occasion

SECRET, CHAINS = "mask secret", "mask chains"
CONTRIBUTION = "Contribution"

PublicKeys = Callable[[], Mapping[int, bytes]]


class EdgeContributor:
    """Takes a node's step and masks it for its neighbours in the mask graph.

    run: a hash of what is run. keys: gives the public keys of these neighbours; None for a plain tree. The node's
    secret key lies under SECRET in the memory of the turn until the chains are there.
    """

    def __init__(self, plan: Plan, run: bytes, keys: PublicKeys | None) -> None:
        self.plan, self._run, self._keys = plan, run, keys

    def answer(self, turn: PartyTurn) -> bytes:
        """The integers of this round with the public costs that they name."""
        if turn.stage != STEP:
            raise MessageError(f"a sum on a graph has one stage, {STEP!r}, and another was asked for.")
        form, taking_part = turn.form(), turn.takes_part()
        message = (turn.step if taking_part else turn.silent)(turn.body)
        words, costs = integers_of(self.plan, turn.facts.round, form, message, taking_part=taking_part)
        if self._keys is not None:
            self._mask(turn, words, self._keys)
        return encode_values(CONTRIBUTION, {"words": words.view(np.int64), **costs})

    def _mask(self, turn: PartyTurn, words: Words, keys: PublicKeys) -> None:
        if CHAINS not in turn.memory:
            secret = KeyPair(turn.memory.pop(SECRET))
            turn.memory[CHAINS] = _write(0, start_chains(secret, turn.party, keys(), self._run))
        round_, chains = _read(turn.memory[CHAINS])
        if round_ != turn.facts.round:
            raise PrivacyError(
                f"masks of round {turn.facts.round} were asked for and those of round {round_} are next; a mask serves "
                "one value only."
            )
        add_masks(words, turn.party, chains, Occasion(round=round_))
        turn.memory[CHAINS] = _write(round_ + 1, {other: _follow(chain) for other, chain in chains.items()})


def start_chains(secret: KeyPair, party: int, keys: Mapping[int, bytes], run: bytes) -> dict[int, bytes]:
    """The first key of the chain with each neighbour of the mask graph, by neighbour; both ends derive the same."""
    if secret.public in keys.values() or len(set(keys.values())) < len(keys):
        raise TamperError("sum on a graph: two nodes have the same public key; each must draw its own.")
    return {
        other: derive(secret.agree(key), run, "edge", name(min(party, other)), name(max(party, other)))
        for other, key in keys.items()
    }


def add_masks(words: Words, party: int, chains: Mapping[int, bytes], at: Occasion) -> None:
    """Add the masks of a round in place: the lower end of an edge adds its mask, the higher one takes it away."""
    blender = Blender(words)
    for other, chain in chains.items():
        blender.add(expand(chain, "edge mask", at.tag), negative=other < party)


def _follow(chain: bytes) -> bytes:
    return expand(chain, "next edge key")


def _write(round_: int, chains: Mapping[int, bytes]) -> bytes:
    return json.dumps({"round": round_, "chains": {str(other): key.hex() for other, key in chains.items()}}).encode()


def _read(kept: bytes) -> tuple[int, dict[int, bytes]]:
    told = json.loads(kept)
    return told["round"], {int(other): bytes.fromhex(key) for other, key in told["chains"].items()}
