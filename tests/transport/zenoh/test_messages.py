"""Messages that come twice, late, or not at all."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM, State
from consenso.algorithms.ipadmm import IPADMM
from consenso.engine.codec import decode
from consenso.federation.sum_protocol import PlainContributor
from consenso.schedules import PoissonSubset, RandomWalk
from consenso.testing.laws import plan_example
from consenso.transport.zenoh.channel import Channel


def consensus(**changes: Any):
    return plan_example(ConsensusADMM.example(), **changes)


def steps(party) -> list[int]:
    return [row["round"] for row in party.disk.journal() if row["what"] == "step"]


class Slow(PlainContributor):
    """Takes its time in some rounds."""

    def __init__(self, seconds: dict[int, float]) -> None:
        self.seconds = seconds

    def answer(self, turn) -> bytes:
        time.sleep(self.seconds.get(turn.facts.round, 0.0))
        return super().answer(turn)


class Late(PlainContributor):
    """Answers in one round only after it is over."""

    def __init__(self, round_: int, over: threading.Event) -> None:
        self.round, self.over = round_, over

    def answer(self, turn) -> bytes:
        if turn.facts.round == self.round:
            assert self.over.wait(300)
        return super().answer(turn)


def test_questions_that_come_several_times_are_answered_once(world, monkeypatch):
    """Every question of the hub goes out three times at once."""
    dial = Channel._dial

    def thrice(self: Channel, call: Any) -> None:
        dial(self, call)
        for _ in range(2):
            self._queriers[call.recipient].get(lambda reply: None, payload=call.blob)

    monkeypatch.setattr(Channel, "_dial", thrice)
    here = world(consensus())
    hub, star = here.hub()
    clients = [here.client(party) for party in here.names]
    assert len(list(hub.rounds(star))) == 8
    assert np.array_equal(hub.model(), here.local())
    assert all(steps(client._party) == list(range(8)) for client in clients)


def test_an_answer_that_takes_longer_than_a_question_lasts_is_asked_for_again(world, monkeypatch):
    timeout = Channel.__init__.__kwdefaults__
    monkeypatch.setitem(timeout, "timeout", 0.2)
    here = world(consensus(rounds=3))
    hub, star = here.hub()
    clients = [here.client(party, contributor=Slow({1: 0.7} if party == 2 else {})) for party in here.names]
    assert len(list(hub.rounds(star))) == 3
    assert np.array_equal(hub.model(), here.local())
    assert all(steps(client._party) == [0, 1, 2] for client in clients)


def test_an_answer_that_comes_after_its_round_is_not_counted_and_its_step_is_taken_back(world):
    here = world(consensus(schedule=PoissonSubset(0.99)))
    hub, star = here.hub(patience=0.5)
    over = threading.Event()  # the third round
    clients = [here.client(party, contributor=Late(3, over) if party == 2 else Slow({})) for party in here.names]
    rounds = []
    for done in hub.rounds(star):
        rounds.append(done)
        if len(rounds) == 4:
            over.set()
    assert 2 in rounds[3].missing
    assert 3 in steps(clients[2]._party)
    # The mean of the hub is the mean of the states: what was not counted is not in them.
    states = [state(client._party, party, rounds) for party, client in enumerate(clients)]
    assert np.allclose(hub._hub.mean, np.mean(states, axis=0), atol=1e-12)


def state(party, number: int, rounds: list[Any]) -> np.ndarray:
    """Where a party is once it has heard which of its steps were counted."""
    pending = party._place["pending"]
    counted = pending >= 0 and number not in rounds[pending].missing
    return decode(State, party.disk.read_bytes("pending" if counted else "settled")).u[0]


def test_nobody_is_done_without_before_everybody_has_come(world):
    here = world(consensus(schedule=PoissonSubset(0.99)))
    hub, star = here.hub(patience=0.2)
    for party in set(here.names) - {4}:
        here.client(party)
    done: list[Any] = []
    working = threading.Thread(target=lambda: done.extend(hub.rounds(star)))
    working.start()
    time.sleep(1.0)
    assert hub.round == 0
    star._patience = 300.0  # from here on everybody is waited for, however busy the machine is
    here.client(4)
    working.join(300)
    assert len(done) == 8
    assert not any(each.missing for each in done)
    assert np.array_equal(hub.model(), here.local())


def test_a_run_does_not_go_on_when_nobody_is_there(world):
    here = world(consensus(schedule=PoissonSubset(0.99), rounds=400))
    hub, star = here.hub(patience=0.2)
    clients = [here.client(party) for party in here.names]
    rounds = hub.rounds(star)
    next(rounds)
    for client in clients:
        client.stop()
    here.join()
    reached, rest = hub.round, threading.Thread(target=lambda: run_out(rounds))
    rest.start()
    time.sleep(1.0)
    assert hub.round <= reached + 1
    star.stop()
    rest.join(300)
    assert not rest.is_alive()


def run_out(rounds: Any) -> None:
    from consenso.transport.zenoh.star import Stopped

    try:
        for _ in rounds:
            pass
    except Stopped:
        pass


def test_a_token_that_comes_again_is_acknowledged_and_ignored(world):
    here = world(consensus(schedule=RandomWalk()))
    peers = [here.peer(party) for party in here.names]
    here.join()
    assert all(np.array_equal(peer.worker.model(), here.local()) for peer in peers)
    visited = next(peer for peer in peers if peer.worker.round > 0)
    before = visited.worker.disk.journal()
    for number in range(visited.worker.round + 1):
        visited.worker.receive(number, b"whatever it is")
    assert visited.worker.disk.journal() == before


def test_neighbours_ask_again_for_what_is_not_said_yet(world, monkeypatch):
    """A node that comes late finds its neighbours waiting, and one that held a question too long is asked again."""
    monkeypatch.setattr("consenso.transport.zenoh.graph.HELD", 0.1)
    here = world(plan_example(IPADMM.example()))
    peers = [here.peer(party) for party in here.names if party != 3]
    time.sleep(1.0)
    peers.append(here.peer(3))
    here.join()
    assert not here.errors
    assert all(np.array_equal(peer.worker.model(), here.local()) for peer in peers)
