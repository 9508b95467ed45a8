"""Observers: stable keys, plain sentences and a partial order."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import InputError
from consenso.privacy.observers import (
    Coalition,
    Eavesdropper,
    Peer,
    Public,
    Server,
    parse,
    sees_at_least,
)

EVERYONE = [
    Eavesdropper(),
    Server(),
    Public(),
    Peer(party=0),
    Peer(party=4),
    Coalition(parties=(0, 4)),
    Coalition(parties=(1, 4)),
    Coalition(parties=(0, 1, 4)),
]

observers = st.one_of(
    st.sampled_from([Eavesdropper(), Server(), Public()]),
    st.integers(0, 9).map(lambda party: Peer(party=party)),
    st.sets(st.integers(0, 9), min_size=2, max_size=4).map(lambda parties: Coalition(parties=tuple(sorted(parties)))),
)


def test_keys():
    keys = [observer.key for observer in EVERYONE]
    assert keys[:5] == ["eavesdropper", "server", "public", "peer:0", "peer:4"]
    assert keys[5] == "coalition:0,4"
    assert len(set(keys)) == len(keys)


@given(observers)
def test_keys_are_read_back(observer):
    assert parse(observer.key) == observer


@pytest.mark.parametrize(
    "key",
    ["", "Server", "peer", "peer:", "peer:x", "peer:-1", "peer:01", "peer:1,2", "coalition:3", "coalition:2,1", "x:1,2",
     "public:1", "coalition:1,1", "peer: 1"],
)  # fmt: skip
def test_other_keys_are_refused(key):
    with pytest.raises(InputError, match="an observer is"):
        parse(key)


@pytest.mark.parametrize("observer", EVERYONE, ids=lambda observer: observer.key)
def test_sentences_are_plain(observer):
    assert observer.sentence
    assert not observer.sentence.endswith(".")
    assert all(str(party) in observer.sentence for party in observer.insiders)


def test_the_order():
    assert sees_at_least(Eavesdropper(), Server())
    assert not sees_at_least(Server(), Eavesdropper())
    assert all(sees_at_least(observer, Public()) for observer in EVERYONE)
    assert [observer for observer in EVERYONE if sees_at_least(Public(), observer)] == [Public()]
    assert sees_at_least(Coalition(parties=(0, 4)), Peer(party=4))
    assert sees_at_least(Coalition(parties=(0, 1, 4)), Coalition(parties=(0, 4)))
    assert not sees_at_least(Coalition(parties=(1, 4)), Coalition(parties=(0, 4)))
    # A party keeps its own noise, which no message shows.
    assert not sees_at_least(Eavesdropper(), Peer(party=4))
    assert not sees_at_least(Peer(party=4), Server())
    assert not sees_at_least(Coalition(parties=(0, 1, 4)), Server())


@given(observers, observers, observers)
def test_it_is_a_partial_order(a, b, c):
    assert sees_at_least(a, a)
    if sees_at_least(a, b) and sees_at_least(b, a):
        assert a == b
    if sees_at_least(a, b) and sees_at_least(b, c):
        assert sees_at_least(a, c)


def test_every_pair_is_decided():
    assert all(isinstance(sees_at_least(a, b), bool) for a, b in product(EVERYONE, repeat=2))


@pytest.mark.parametrize("parties", [(), (1,), (2, 1), (1, 1), (-1, 2)])
def test_coalitions_are_sorted_and_have_two_parties(parties):
    with pytest.raises(InputError, match="coalition" if len(parties) < 2 else "parties"):
        Coalition(parties=parties)


def test_parties_are_counted_from_zero():
    with pytest.raises(InputError, match="party"):
        Peer(party=-1)
