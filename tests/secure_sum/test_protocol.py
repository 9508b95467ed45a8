"""Sums are exact whoever drops out, up to the threshold; one more and nothing is unmasked; what is odd is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from consenso.errors import ConsensoError, InputError, PrivacyError, TamperError
from consenso.secure_sum import Client, DiscardedError, Occasion, SumServer, SumTerms
from consenso.secure_sum.masks import KeyPair, derive
from consenso.secure_sum.messages import RosterMessage, Shares, Survivors

RUN = bytes(range(32))


@dataclass
class Federation:
    terms: SumTerms
    clients: list[Client]
    server: SumServer
    values: np.ndarray

    def introduce(self, absent: tuple[int, ...] = ()) -> None:
        for client in self.clients:
            if client.party not in absent:
                self.server.greet(client.hello())
        for client in self.clients:
            if client.party not in absent:
                client.meet(self.server.circle())

    def advertise(self, at: Occasion, absent: tuple[int, ...] = ()) -> None:
        for member in self.server.missing_adverts(at):
            if member not in absent:
                self.server.take_advert(self.clients[member].advertise(at))

    def mask(self, at: Occasion, absent: tuple[int, ...] = ()) -> dict[int, RosterMessage]:
        calls = self.server.call(at)
        for party, call in calls.items():
            if party not in absent:
                self.server.take_masked(self.clients[party].mask(call, self.values[party]))
        return calls

    def reveal(self, absent: tuple[int, ...] = ()) -> None:
        request = self.server.survivors()
        for party in request.survivors.tolist():
            if party not in absent:
                self.server.take_shares(self.clients[party].reveal(request))

    def expected(self, absent: tuple[int, ...]) -> np.ndarray:
        here = [party for party in range(self.terms.parties) if party not in absent]
        return self.values[here].sum(axis=0, dtype=np.uint64)


def federation(parties: int = 5, absent: int = 2, size: int = 17, seed: int = 0, threshold: int = 0) -> Federation:
    terms = SumTerms(run=RUN, parties=parties, absent=absent, threshold=threshold)
    values = np.random.default_rng(seed).integers(0, 2**64, size=(parties, size), dtype=np.uint64)
    draw = random.Random(seed)
    return Federation(
        terms, [Client(terms, party, entropy=draw.randbytes) for party in range(parties)], SumServer(terms), values
    )


STAGES = ("hello", "advertise", "mask", "reveal")


def play(at: Federation, missing: dict[str, tuple[int, ...]], occasion: Occasion = Occasion(round=0)) -> np.ndarray:  # noqa: B008
    """A round in which parties go missing at a stage and do not come back in it."""
    gone: tuple[int, ...] = ()
    for stage in STAGES:
        gone += missing.get(stage, ())
        if stage == "hello":
            at.introduce(gone)
        elif stage == "advertise":
            at.advertise(occasion, gone)
        elif stage == "mask":
            at.mask(occasion, gone)
        else:
            at.reveal(gone)
    return at.server.total()


@pytest.mark.parametrize("parties", [2, 3, 5, 8])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_the_sum_is_exact_when_all_are_there(parties: int, size: int) -> None:
    made = federation(parties, absent=0, size=size)
    assert np.array_equal(play(made, {}), made.expected(()))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("party", [0, 2, 4])
def test_the_sum_is_exact_with_one_drop_out_at_every_stage(stage: str, party: int) -> None:
    made = federation()
    # Who sent masked integers is in the sum, even if it does not answer afterwards.
    left_out = () if stage == "reveal" else (party,)
    assert np.array_equal(play(made, {stage: (party,)}), made.expected(left_out))


@pytest.mark.parametrize("first", STAGES)
@pytest.mark.parametrize("second", STAGES)
def test_the_sum_is_exact_with_as_many_drop_outs_as_planned(first: str, second: str) -> None:
    made = federation(parties=7, absent=2)
    assert made.terms.threshold == 5
    missing = {first: (1,), second: (5,)} if first != second else {first: (1, 5)}
    left_out = tuple(party for stage, who in missing.items() if stage != "reveal" for party in who)
    assert np.array_equal(play(made, missing), made.expected(left_out))


@pytest.mark.parametrize("stage", STAGES)
def test_one_drop_out_more_discards_the_round_and_nothing_is_unmasked(stage: str) -> None:
    made = federation()  # two may drop out
    with pytest.raises(DiscardedError, match=r"only 2 of 5 parties .* 3 are needed; the round is discarded"):
        play(made, {stage: (0, 1, 3)})
    if stage in ("hello", "advertise"):
        assert not made.server.list_arrived()
    # Before the answers with shares the clients were not even asked; whoever asks them all the same is refused.
    if stage == "mask":
        now = made.server._now
        assert now is not None
        assert not now.shares
        request = Survivors(
            run=RUN, occasion=Occasion(round=0), survivors=np.array(made.server.list_arrived(), dtype=np.int64)
        )
        for party in made.server.list_arrived():
            with pytest.raises(PrivacyError, match="below the threshold"):
                made.clients[party].reveal(request)


def test_the_shares_of_too_few_do_not_open_the_sum_even_by_force() -> None:
    made = federation()
    with pytest.raises(DiscardedError):
        play(made, {"reveal": (0, 1, 3)})
    # A server that goes on regardless reconstructs something that is not the seed.
    object.__setattr__(made.server.terms, "threshold", 2)
    with pytest.raises(TamperError, match=r"do not give it|do not belong"):
        made.server.total()


def test_a_drop_out_may_come_at_every_stage_round_after_round() -> None:
    made = federation(parties=6, absent=2, seed=4)
    made.introduce()
    draw = random.Random(9)
    for round_ in range(12):
        at = Occasion(round=round_)
        first, second, third = draw.sample(range(6), 3)
        made.advertise(at, (first,) if round_ % 2 else ())
        gone = (first,) if round_ % 2 else (second,)
        made.mask(at, gone)
        made.reveal((*gone, third))
        assert np.array_equal(made.server.total(), made.expected(gone))


def test_adverts_may_travel_a_round_ahead() -> None:
    made = federation()
    made.introduce()
    made.advertise(Occasion(round=0))
    for round_ in range(3):
        calls = made.server.call(Occasion(round=round_))
        for party, call in calls.items():
            made.server.take_masked(made.clients[party].mask(call, made.values[party]))
            made.server.take_advert(made.clients[party].advertise(Occasion(round=round_ + 1)))
        assert made.server.missing_adverts(Occasion(round=round_ + 1)) == []
        made.reveal()
        assert np.array_equal(made.server.total(), made.expected(()))


def test_a_party_that_comes_back_without_its_keys_says_hello_anew() -> None:
    made = federation()
    made.introduce()
    made.advertise(Occasion(round=0))
    made.clients[3] = Client(made.terms, 3, entropy=random.Random(77).randbytes)
    assert made.server.greet(made.clients[3].hello())
    # What was advertised to its old key is void; all advertise again for the new circle.
    assert made.server.missing_adverts(Occasion(round=0)) == [0, 1, 2, 3, 4]
    for client in made.clients:
        client.meet(made.server.circle())
    made.advertise(Occasion(round=0))
    made.mask(Occasion(round=0))
    made.reveal()
    assert np.array_equal(made.server.total(), made.expected(()))


def test_a_round_that_was_discarded_can_be_tried_again_with_fresh_keys() -> None:
    made = federation()
    made.introduce()
    first, second = Occasion(round=0), Occasion(round=0, attempt=1)
    made.advertise(first)
    made.mask(first, absent=(0, 1, 2))
    with pytest.raises(DiscardedError):
        made.server.survivors()
    made.advertise(second)
    made.mask(second)
    made.reveal()
    assert np.array_equal(made.server.total(), made.expected(()))


def test_a_round_has_one_list_of_survivors_over_all_its_attempts() -> None:
    made = federation()
    made.introduce()
    first, second = Occasion(round=0), Occasion(round=0, attempt=1)
    made.advertise(first)
    made.mask(first, absent=(1,))
    made.reveal(absent=(0, 3))  # two answers: not enough, but they may be on their way
    made.advertise(second)
    made.mask(second)
    request = made.server.survivors()
    for party in (2, 4):
        with pytest.raises(PrivacyError, match="another list of survivors was agreed to in this round"):
            made.clients[party].reveal(request)


# --- what is refused --------------------------------------------------------------------------------------------------


def masked_round() -> tuple[Federation, dict[int, RosterMessage]]:
    made = federation()
    made.introduce()
    made.advertise(Occasion(round=0))
    return made, made.server.call(Occasion(round=0))


def flipped(table: np.ndarray, index: tuple[int, int]) -> np.ndarray:
    table = table.copy()
    table[index] ^= 1
    return table


SERVERS = np.frombuffer(KeyPair(bytes(range(32))).public, dtype=np.uint8)


def test_a_public_key_that_is_none_is_refused() -> None:
    with pytest.raises(ConsensoError, match="none of"):
        KeyPair(bytes(range(32))).agree(bytes(32))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda call: replace(call, run=bytes(32)), "another run"),
        (lambda call: replace(call, occasion=Occasion(round=1)), "did not advertise for it"),
        (lambda call: replace(call, occasion=Occasion(round=0, attempt=1)), "did not advertise for it"),
        (lambda call: replace(call, circle=bytes(32)), "another circle"),
        (lambda call: replace(call, roster=call.roster[::-1].copy()), "each once and ascending"),
        (lambda call: replace(call, roster=np.array([0, 1, 2, 3, 5])), "parties in 0..4"),
        (lambda call: replace(call, keys=call.keys[:-1]), "table of 5 rows"),
        (lambda call: replace(call, packets=call.packets[:, :-1]), "rows of 94 bytes"),
        (lambda call: replace(call, packets=flipped(call.packets, (2, 20))), "does not open"),
        (lambda call: replace(call, packets=np.roll(call.packets, 1, axis=0)), "does not open"),
        (lambda call: replace(call, keys=flipped(call.keys, (1, 0))), "with the key that it advertised"),
        (lambda call: replace(call, keys=call.keys[[0, 1, 2, 3, 3]]), "two parties have one key"),
        (
            # A key of the server's own in another's place: then it would know that mask.
            lambda call: replace(call, keys=np.where(np.arange(5)[:, None] == 3, SERVERS, call.keys)),
            "does not open",
        ),
        (
            lambda call: replace(call, roster=call.roster[:2], keys=call.keys[:2], packets=call.packets[:2]),
            "below the threshold",
        ),
        (
            lambda call: replace(call, roster=call.roster[2:], keys=call.keys[2:], packets=call.packets[2:]),
            "not in the roster",
        ),
    ],
)
def test_a_client_refuses_a_call_that_is_not_in_order(
    change: Callable[[RosterMessage], RosterMessage], reason: str
) -> None:
    made, calls = masked_round()
    client = made.clients[1]
    with pytest.raises(ConsensoError, match=reason):
        client.check(change(calls[1]))  # before there are integers
    with pytest.raises(ConsensoError, match=reason):
        client.mask(change(calls[1]), made.values[1])
    client.mask(calls[1], made.values[1])  # a refusal changes nothing


def test_a_call_that_was_accepted_does_not_stand_in_for_another() -> None:
    made, calls = masked_round()
    client = made.clients[1]
    client.check(calls[1])
    with pytest.raises(ConsensoError, match="does not open"):
        client.mask(replace(calls[1], packets=flipped(calls[1].packets, (2, 20))), made.values[1])
    sent = client.mask(calls[1], made.values[1])
    assert (sent.words != made.values[1]).any()


def test_keys_are_derived_by_hkdf() -> None:
    info = b"consenso secure sum 1|pair|here|there"
    expected = HKDF(algorithm=hashes.SHA256(), length=32, salt=bytes(range(32)), info=info).derive(b"agreed" * 5)
    assert derive(b"agreed" * 5, bytes(range(32)), "pair", b"here", b"there") == expected


def test_masks_are_used_once() -> None:
    made, calls = masked_round()
    made.clients[1].mask(calls[1], made.values[1])
    with pytest.raises(PrivacyError, match="masks are used up"):
        made.clients[1].mask(calls[1], made.values[2])
    made.clients[1].advertise(Occasion(round=5))
    with pytest.raises(PrivacyError, match="masks are used up"):
        made.clients[1].mask(replace(calls[1], occasion=Occasion(round=0)), made.values[1])


def test_past_rounds_are_refused() -> None:
    made = federation()
    made.introduce()
    old = made.clients[1].advertise(Occasion(round=0))
    for round_ in (1, 2):
        made.advertise(Occasion(round=round_))
        made.mask(Occasion(round=round_))
        made.reveal()
    with pytest.raises(PrivacyError, match="refused"):
        made.clients[1].advertise(Occasion(round=1))
    with pytest.raises(InputError, match="not of the step under way"):
        made.server.take_advert(old)
    with pytest.raises(InputError, match="not of the step under way"):
        made.server.call(Occasion(round=1))


def survivors_of(made: Federation, *parties: int, **changes: Any) -> Any:
    fields = {"run": RUN, "occasion": Occasion(round=0), "survivors": np.array(parties, dtype=np.int64)}
    return Survivors(**(fields | changes))


def test_a_client_refuses_lists_of_survivors_that_are_not_in_order() -> None:
    made = federation(parties=6, absent=2)
    made.introduce()
    at = Occasion(round=0)
    made.advertise(at, absent=(5,))
    made.mask(at)
    client = made.clients[1]
    for request, reason in (
        (survivors_of(made, 0, 2, 3, 4), "this party among them"),
        (survivors_of(made, 0, 1, 2, 3, 5), "members of the roster"),
        (survivors_of(made, 1, 2, 3), "below the threshold of 4 of 6"),
        (survivors_of(made, 0, 1, 1, 2, 3), "each once and ascending"),
        (survivors_of(made, 0, 1, 2, 3, occasion=Occasion(round=1)), "did not advertise"),
        (survivors_of(made, 0, 1, 2, 3, occasion=Occasion(round=0, attempt=1)), "did not advertise"),
        (survivors_of(made, 0, 1, 2, 3, run=bytes(32)), "another run"),
    ):
        with pytest.raises(ConsensoError, match=reason):
            client.reveal(request)
    answer = client.reveal(survivors_of(made, 0, 1, 2, 3))
    # The same question has the same answer; another one for the same round has none.
    assert np.array_equal(client.reveal(survivors_of(made, 0, 1, 2, 3)).shares, answer.shares)
    with pytest.raises(PrivacyError, match="two sums of the same values would tell their difference"):
        client.reveal(survivors_of(made, 0, 1, 2, 4))


def test_a_client_never_tells_both_shares_of_a_peer() -> None:
    made = federation(parties=6, absent=2)
    made.introduce()
    at = Occasion(round=0)
    made.advertise(at)
    made.mask(at)
    held = made.clients[0].engagements[at].held
    told = {bytes(row) for row in made.clients[0].reveal(survivors_of(made, 0, 1, 2, 3)).shares}
    assert len(told) == 6
    for survivors in ((0, 1, 2, 3), (0, 1, 2, 4), (0, 2, 3, 5), (0, 1, 2, 3, 4, 5)):
        try:
            told |= {bytes(row) for row in made.clients[0].reveal(survivors_of(made, *survivors)).shares}
        except PrivacyError:
            continue
    for both in held:
        assert not (both[:33] in told and both[33:] in told)


def test_the_server_refuses_messages_that_are_late_twice_or_of_another_shape() -> None:
    made, calls = masked_round()
    server, clients = made.server, made.clients
    sent = [clients[party].mask(calls[party], made.values[party]) for party in range(5)]
    for message, reason in (
        (replace(sent[0], run=bytes(32)), "another run"),
        (replace(sent[0], occasion=Occasion(round=3)), "not of the step under way"),
        (replace(sent[0], occasion=Occasion(round=0, attempt=3)), "not of the step under way"),
        (replace(sent[0], party=7), "no party 7"),
        (replace(sent[0], words=sent[0].words.astype(np.int64)), "64-bit words"),
    ):
        with pytest.raises(InputError, match=reason):
            server.take_masked(message)
    for message in sent[:4]:
        server.take_masked(message)
    with pytest.raises(InputError, match="came twice"):
        server.take_masked(sent[0])
    with pytest.raises(InputError, match="sent 3 integers and others 17"):
        server.take_masked(replace(sent[4], words=sent[4].words[:3]))
    with pytest.raises(InputError, match="not of the step under way"):
        server.take_shares(_shares_like(made))
    request = server.survivors()
    with pytest.raises(InputError, match="not of the step under way"):
        server.take_masked(sent[4])  # late: the list is closed, and its masks are being taken off
    answers = [clients[party].reveal(request) for party in range(4)]
    with pytest.raises(InputError, match="not of the step under way"):
        server.take_shares(replace(answers[0], party=4))  # not a survivor
    with pytest.raises(InputError, match="table of 5 rows"):
        server.take_shares(replace(answers[0], shares=answers[0].shares[:2]))
    for answer in answers:
        server.take_shares(answer)
    with pytest.raises(InputError, match="came twice"):
        server.take_shares(answers[1])
    assert np.array_equal(server.total(), made.expected((4,)))


def _shares_like(made: Federation) -> Any:
    return Shares(run=RUN, occasion=Occasion(round=0), party=0, shares=np.zeros((5, 33), dtype=np.uint8))


@pytest.mark.parametrize("missing", [(), (2,)])
def test_changed_shares_are_noticed(missing: tuple[int, ...]) -> None:
    made = federation()
    made.introduce()
    at = Occasion(round=0)
    made.advertise(at)
    made.mask(at, missing)
    request = made.server.survivors()
    for party in request.survivors.tolist():
        answer = made.clients[party].reveal(request)
        if party == 0:
            answer = replace(answer, shares=flipped(answer.shares, (2, 32)))
        made.server.take_shares(answer)
    with pytest.raises(TamperError, match=r"do not give it|do not belong"):
        made.server.total()


def test_the_server_refuses_adverts_and_hellos_that_are_not_in_order() -> None:
    made = federation()
    with pytest.raises(DiscardedError, match="said hello"):
        made.server.circle()
    with pytest.raises(InputError, match="no party 9"):
        made.server.greet(replace(made.clients[0].hello(), party=9))
    with pytest.raises(InputError, match="32 bytes"):
        made.server.greet(replace(made.clients[0].hello(), key=b"short"))
    with pytest.raises(InputError, match="after meet"):
        made.clients[0].advertise(Occasion(round=0))
    made.introduce()
    advert = made.clients[0].advertise(Occasion(round=0))
    for message, reason in (
        (replace(advert, run=bytes(32)), "another run"),
        (replace(advert, circle=bytes(32)), "another circle"),
        (replace(advert, key=b"short"), "32 bytes"),
        (replace(advert, commitment=b"short"), "32 bytes"),
        (replace(advert, packets=advert.packets[:2]), "table of 5 rows"),
    ):
        with pytest.raises(InputError, match=reason):
            made.server.take_advert(message)
    made.server.take_advert(advert)
    with pytest.raises(InputError, match="came twice"):
        made.server.take_advert(advert)
    with pytest.raises(InputError, match="no round was called"):
        made.server.survivors()


def test_a_circle_without_the_party_or_too_small_is_refused() -> None:
    made = federation()
    made.introduce(absent=(0,))
    with pytest.raises(InputError, match="not in the circle with its own key"):
        made.clients[0].meet(made.server.circle())
    circle = made.server.circle()
    with pytest.raises(PrivacyError, match="below the threshold"):
        made.clients[1].meet(replace(circle, members=circle.members[:2], keys=circle.keys[:2]))


# --- terms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parties", "absent", "threshold", "dropouts"),
    [(2, 0, 2, 0), (3, 0, 3, 0), (3, 1, 2, 1), (5, 2, 3, 2), (5, 3, 4, 1), (10, 3, 7, 3), (10, 8, 9, 1)],
)
def test_the_threshold_leaves_enough_noise_and_is_more_than_can_collude(
    parties: int, absent: int, threshold: int, dropouts: int
) -> None:
    terms = SumTerms(run=RUN, parties=parties, absent=absent)
    assert (terms.threshold, terms.dropouts) == (threshold, dropouts)
    assert terms.threshold > absent
    assert terms.dropouts <= absent


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"parties": 1}, "a sum of one party is that party's value"),
        ({"absent": 4}, "between 0 and 3 of 5"),
        ({"absent": -1}, "between 0 and 3 of 5"),
        ({"threshold": 2}, "between 3 and 5"),
        ({"threshold": 6}, "between 3 and 5"),
        ({"run": b"short"}, "32 bytes"),
    ],
)
def test_terms_that_protect_nobody_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        SumTerms(**({"run": RUN, "parties": 5, "absent": 2} | changes))


def test_clients_and_occasions_are_numbered_from_zero() -> None:
    terms = SumTerms(run=RUN, parties=3)
    with pytest.raises(InputError, match=r"the parties are 0\.\.2"):
        Client(terms, 3)
    with pytest.raises(InputError, match="counted from 0"):
        Occasion(round=-1)
    made, calls = masked_round()
    with pytest.raises(InputError, match="flat vectors"):
        made.clients[0].mask(calls[0], np.zeros((2, 2), dtype=np.uint64))
