"""What the server sees, alone or with colluding parties, is uniform but for the sum.

Each test of uniformity has a false-alarm rate of 1e-6 (a chi-square test of bytes and a Kolmogorov-Smirnov test of
words, at 5e-7 each); entropy is seeded, so that the outcome is always the same.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from consenso.secure_sum import Client, Occasion, SumServer, SumTerms
from consenso.secure_sum.client import add_pair_mask
from consenso.secure_sum.masks import Blender, KeyPair, derive, name
from consenso.secure_sum.messages import Masked, row

RUN = bytes(range(32))
SIZE = 4000
LEVEL = 5e-7


def is_uniform(words: np.ndarray) -> bool:
    counts = np.bincount(words.view(np.uint8), minlength=256)
    bytes_ = stats.chisquare(counts).pvalue
    whole = stats.kstest(words.astype(np.float64) / 2.0**64, "uniform").pvalue
    return bool(bytes_ > LEVEL and whole > LEVEL)


@dataclass
class Seen:
    """A round as it was played, with everything that anybody knew in it."""

    terms: SumTerms
    occasion: Occasion
    clients: list[Client]
    server: SumServer
    values: np.ndarray
    masked: dict[int, Masked]
    survivors: list[int]

    def public_key(self, party: int) -> bytes:
        return self.server._adverts[self.occasion][party].key

    def stripped(self, party: int, keys: dict[int, bytes], *, with_seed: bool = True) -> np.ndarray:
        """A masked vector without its own mask and without the masks shared with parties whose keys are known."""
        words = self.masked[party].words.copy()
        blender = Blender(words)
        if with_seed:
            seed = self.clients[party].engagements[self.occasion].seed
            blender.add(derive(seed, RUN, "self", self.occasion.tag, name(party)), negative=True)
        for other, key in keys.items():
            # The other's part of a common mask is the opposite of the party's.
            agreed = KeyPair(key).agree(self.public_key(party))
            add_pair_mask(blender, agreed, self.terms, self.occasion, own=other, other=party)
        return words

    def keys(self, parties: Iterable[int]) -> dict[int, bytes]:
        return {party: self.clients[party].engagements[self.occasion].key for party in parties}


def played(
    parties: int = 5, absent: int = 2, dropped: tuple[int, ...] = (), seed: int = 0, rounds: int = 1
) -> list[Seen]:
    """Rounds on the same values, zeros: nothing of the uniformity comes from the values."""
    terms, draw = SumTerms(run=RUN, parties=parties, absent=absent), random.Random(seed)
    clients, server = [Client(terms, party, entropy=draw.randbytes) for party in range(parties)], SumServer(terms)
    for client in clients:
        server.greet(client.hello())
    for client in clients:
        client.meet(server.circle())
    values = np.zeros((parties, SIZE), dtype=np.uint64)
    found = []
    for round_ in range(rounds):
        at = Occasion(round=round_)
        for client in clients:
            server.take_advert(client.advertise(at))
        masked = {
            party: clients[party].mask(call, values[party])
            for party, call in server.call(at).items()
            if party not in dropped or round_ < rounds - 1
        }
        for message in masked.values():
            server.take_masked(message)
        request = server.survivors()
        for party in request.survivors.tolist():
            server.take_shares(clients[party].reveal(request))
        assert not server.total().any()
        kept = [_frozen(client, at) for client in clients]
        found.append(Seen(terms, at, kept, _frozen_server(server), values, masked, request.survivors.tolist()))
    return found


def _frozen(client: Client, at: Occasion) -> Client:
    """The client as it is now: it forgets its secrets in the next round."""
    copy = Client(client.terms, client.party)
    copy.engagements = dict(client.engagements)
    assert at in copy.engagements
    return copy


def _frozen_server(server: SumServer) -> SumServer:
    copy = SumServer(server.terms)
    copy._adverts = dict(server._adverts)
    return copy


def test_the_test_of_uniformity_can_fail() -> None:
    draw = np.random.default_rng(0)
    uniform = draw.integers(0, 2**64, size=SIZE, dtype=np.uint64)
    assert is_uniform(uniform)
    assert not is_uniform(uniform >> np.uint64(1))
    assert not is_uniform(uniform & np.uint64(2**64 - 4))
    assert not is_uniform(np.zeros(SIZE, dtype=np.uint64))


@pytest.mark.parametrize("parties", [2, 3, 6])
def test_masked_vectors_are_uniform(parties: int) -> None:
    (seen,) = played(parties, absent=0)
    for message in seen.masked.values():
        assert is_uniform(message.words)
    # Before the shares arrive every partial sum is uniform too, the whole one included.
    for count in range(2, parties + 1):
        for some in itertools.combinations(range(parties), count):
            assert is_uniform(sum(seen.masked[party].words for party in some))


@pytest.mark.parametrize("dropped", [(), (1,), (0, 4)])
def test_after_unmasking_everything_but_the_sum_is_uniform(dropped: tuple[int, ...]) -> None:
    (seen,) = played(dropped=dropped)
    # The server knows the seeds of the survivors and the keys of those who dropped out.
    bare = {party: seen.stripped(party, seen.keys(dropped)) for party in seen.survivors}
    for count in range(1, len(bare)):
        for some in itertools.combinations(bare, count):
            assert is_uniform(sum(bare[party] for party in some))
    assert not sum(bare.values()).any()  # the sum, which is what it may know


@pytest.mark.parametrize(("parties", "colluders"), [(4, (0, 3)), (5, (1, 2)), (6, (0, 1, 2, 4))])
def test_colluders_and_the_server_learn_no_more_than_the_sum_of_the_rest(
    parties: int, colluders: tuple[int, ...]
) -> None:
    (seen,) = played(parties, absent=len(colluders))
    honest = [party for party in range(parties) if party not in colluders]
    # All keys of the colluders, and with the server's help the seeds of everybody.
    bare = {party: seen.stripped(party, seen.keys(colluders)) for party in honest}
    assert len(honest) >= 2
    for count in range(1, len(honest)):
        for some in itertools.combinations(honest, count):
            assert is_uniform(sum(bare[party] for party in some))
    assert not sum(bare.values()).any()


def test_the_colluders_shares_are_too_few_for_any_secret() -> None:
    (seen,) = played(5, absent=2)
    # The threshold is above the number of colluders: what they hold of an honest party is below it.
    assert seen.terms.threshold > 2
    # The control: with everybody else colluding a party has no one to hide behind, which terms refuse to plan for.
    bare = seen.stripped(0, seen.keys([1, 2, 3, 4]))
    assert not bare.any()


def test_a_recovered_key_opens_no_earlier_round() -> None:
    before, after = played(dropped=(2,), rounds=2)
    assert 2 in before.survivors
    assert 2 not in after.survivors
    # In the second round the server learnt the key of party 2. In the first it had learnt its seed.
    recovered = {2: after.clients[2].engagements[after.occasion].key}
    words = before.masked[2].words.copy()
    blender = Blender(words)
    seed = before.clients[2].engagements[before.occasion].seed
    blender.add(derive(seed, RUN, "self", before.occasion.tag, name(2)), negative=True)
    for other in (0, 1, 3, 4):
        for occasion in (before.occasion, after.occasion):
            trial = words.copy()
            agreed = KeyPair(recovered[2]).agree(before.public_key(other))
            add_pair_mask(Blender(trial), agreed, before.terms, occasion, own=2, other=other)
            assert is_uniform(trial)
    # The control: with the key of that round the vector lies open.
    pair = KeyPair(before.clients[2].engagements[before.occasion].key)
    for other in (0, 1, 3, 4):
        words_of_pair = np.zeros_like(words)
        agreed = pair.agree(before.public_key(other))
        add_pair_mask(Blender(words_of_pair), agreed, before.terms, before.occasion, own=2, other=other)
        np.subtract(words, words_of_pair, out=words)
    assert not words.any()


def test_no_mask_is_used_twice() -> None:
    rounds = played(rounds=3)
    for party in range(5):
        for one, other in itertools.combinations(rounds, 2):
            assert is_uniform(one.masked[party].words - other.masked[party].words)
    keys = [seen.public_key(party) for seen in rounds for party in range(5)]
    assert len(set(keys)) == len(keys)


def test_envelopes_tell_the_server_nothing_of_the_shares() -> None:
    (seen,) = played(6, absent=2)
    adverts = seen.server._adverts[seen.occasion].values()
    # Nonce and ciphertext without the tag: 12 + 66 bytes of 36 envelopes look uniform.
    sent = b"".join(row(advert.packets, index)[:-16] for advert in adverts for index in range(6))
    counts = np.bincount(np.frombuffer(sent, dtype=np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-6
    held = b"".join(both for client in seen.clients for both in client.engagements[seen.occasion].held)
    assert not any(held[start : start + 33] in sent for start in range(0, len(held), 33))
