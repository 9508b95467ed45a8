"""The secure sum over the Zenoh star, on loopback with mutual TLS."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ports import free_port

from consenso.algorithms.dp_sgd import DPSGD
from consenso.deployment import certs
from consenso.deployment.sum_protocols import parts_of
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun
from consenso.federation.party import Party
from consenso.planning.plan import Plan
from consenso.schedules import PoissonSubset
from consenso.secure_sum.contributor import KEY
from consenso.secure_sum.masks import KeyPair
from consenso.shards import Shards
from consenso.testing.laws import execute, plan_example
from consenso.testing.worlds import draw
from consenso.transport.zenoh.star import StarHub, StarParty, Stopped
from consenso.transport.zenoh.tls import Credentials

RUN = "ab" * 32


class World:
    """A server and clients with their own sessions, certificates and disks; clients run in threads."""

    def __init__(self, made: Plan, folder: Path) -> None:
        self.made, self.folder = made, folder
        self.names = {party: f"p{party}" for party in range(made.parties)}
        self.shards = Shards.from_parties(made.problem, draw(made.problem, np.random.default_rng(0)))
        authority = certs.init(folder / "authority")
        for name in ("server", *self.names.values()):
            certs.issue(authority, name, out=folder / "certs" / name, hosts=["127.0.0.1"])
        self.address = f"127.0.0.1:{free_port()}"
        self.clients: dict[int, tuple[StarParty, threading.Thread, Disk]] = {}
        self.errors: list[Exception] = []
        self.star: StarHub | None = None
        self.hub: HubRun | None = None

    def credentials(self, name: str) -> Credentials:
        return Credentials.load(self.folder / "certs" / name, name=name)

    def serve(self, **options: Any) -> tuple[HubRun, StarHub]:
        parts = parts_of(self.made)
        self.star = StarHub(
            self.names,
            run=RUN,
            listen=self.address,
            credentials=self.credentials("server"),
            limit=parts.limit,
            **options,
        )
        disk = Disk(self.folder / "hub", owner="hub", run=RUN, fingerprint="f")
        self.hub = HubRun(self.made, disk, summation=parts.summation)
        return self.hub, self.star

    def join(self, party: int) -> None:
        name = self.names[party]
        parts = parts_of(self.made, self.credentials(name).signatures(self.names, RUN))
        disk = Disk(self.folder / name, owner=name, run=RUN, fingerprint="f")
        here = Party(self.made, self.shards, party, disk, contributor=parts.contributor)
        client = StarParty(
            here, name, run=RUN, server=self.address, credentials=self.credentials(name), limit=parts.limit
        )

        def work() -> None:
            try:
                client.run()
            except Stopped:
                pass
            except Exception as error:
                self.errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        self.clients[party] = client, thread, disk

    def leave(self, party: int) -> None:
        client, thread, disk = self.clients.pop(party)
        client.stop()
        thread.join(30)
        disk.close()

    def close(self) -> None:
        for party in list(self.clients):
            self.leave(party)
        if self.star is not None:
            self.star.stop()
            self.star.close()
        if self.hub is not None:
            self.hub.disk.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Any]:
    logging.getLogger("consenso").setLevel(logging.CRITICAL)
    made: list[World] = []

    def make(plan: Plan) -> World:
        made.append(World(plan, tmp_path))
        return made[0]

    try:
        yield make
    finally:
        for each in made:
            each.close()
        logging.getLogger("consenso").setLevel(logging.NOTSET)


def of_example(**changes: Any) -> Plan:
    return plan_example(DPSGD.example(), **({"trust": "secure-sum", "rounds": 3} | changes))


@pytest.mark.parametrize("changes", [{}, {"schedule": PoissonSubset(0.5), "colluders": 1}])
def test_the_star_opens_the_sum_of_the_local_engine(world: Any, changes: dict[str, Any]) -> None:
    made = of_example(**changes)
    here = world(made)
    hub, star = here.serve()
    for party in here.names:
        here.join(party)
    told = list(hub.rounds(star))
    assert not any(done.missing for done in told)
    expected = execute(made, here.shards, one_by_one=True)[0]
    assert np.array_equal(hub.model(), expected)
    assert star.end(hub.model_bytes(), seconds=300) == tuple(here.names)
    assert not here.errors


def test_a_party_refuses_what_is_not_in_order_and_carries_on(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Malformed, of another round, of a stage that is not due: nothing is released, and nothing is quoted."""
    made = of_example(colluders=1)
    here = world(made)
    hub, star = here.serve()
    asked: dict[tuple[int, str], bytes] = {}
    ask = star.ask

    def recorded(questions: Any, check: Any, *, partial: bool) -> dict[int, bytes]:
        asked.update(
            {(question.round, question.stage.partition("/")[0]): questions[0].body for question in [questions[0]]}
        )
        return ask(questions, check, partial=partial)

    star.ask = recorded  # type: ignore[method-assign]
    for party in here.names:
        here.join(party)
    rounds = hub.rounds(star)
    next(rounds)
    _, _, disk = here.clients[0]
    before = disk.journal()
    bad = [
        ("step", b"x" * 4000, "not a message of this library"),
        ("step", asked[0, "step"], "with the key that it advertised"),  # the call of the round before
        ("advert", asked[0, "advert"][:-8], "bytes"),
        ("reveal/0", asked[0, "reveal"], "did not advertise for it, or its masks are used up"),
        ("reveal/0", b"", "broke off"),
        ("unheard-of", b"", "a stage that a secure sum does not have"),
    ]
    logging.getLogger("consenso").setLevel(logging.WARNING)
    with caplog.at_level(logging.WARNING):
        for stage, body, reason in bad:
            envelope = star.channel.envelope(0, kind="ask", round=1, stage=stage, body=body, counted=0)
            call = star.channel.call(0, envelope, lambda answer: True)
            assert star.channel.wait(lambda call=call: call.refusal is not None, 300.0), f"{stage} was not refused"
            star.channel.drop(call)
            assert re.search(reason, call.refusal or "")
    logging.getLogger("consenso").setLevel(logging.CRITICAL)
    assert disk.journal() == before
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "refused a message of server" in told
    assert "xxxx" not in told
    assert len(list(rounds)) == 2
    assert np.array_equal(hub.model(), execute(made, here.shards, one_by_one=True)[0])
    assert not here.errors


SIGNERS: dict[str, tuple[str | None, str, str]] = {  # whose signature, of which run, and the reason of the refusal
    "the owner's, under its own key": (None, RUN, "not what 'p2' signed"),
    "a colluder's": ("p1", RUN, "it is 'p2''s, and 'p1' signed it"),
    "the owner's, of another run": ("p2", "cd" * 32, "not what 'p2' signed in this run"),
}


@pytest.mark.parametrize("lie", SIGNERS)
def test_a_server_cannot_hand_out_keys_of_its_own(world: Any, lie: str) -> None:
    """With a key of its own in the place of p2's it would open what others send to p2, and take their masks off."""
    signer, run, reason = SIGNERS[lie]
    here = world(of_example(colluders=1))
    hub, star = here.serve()
    own, wire, ask = KeyPair.draw(os.urandom).public, hub._summation.wire, star.ask

    def lying(questions: Any, check: Any, *, partial: bool) -> dict[int, bytes]:
        if questions[0].stage == "advert":
            body = questions[0].body
            circle, signatures = wire.read_circle(body), wire.read_signatures(body)
            circle.keys[2] = np.frombuffer(own, dtype=np.uint8)
            if signer is not None:
                signatures[2] = here.credentials(signer).signatures(here.names, run).sign(KEY, own)
            body = wire.write_circle(circle, signatures)
            questions = {party: replace(question, body=body) for party, question in questions.items()}
        return ask(questions, check, partial=partial)

    star.ask = lying
    for party in here.names:
        here.join(party)
    running = threading.Thread(target=lambda: _until_stopped(hub.rounds(star)))
    running.start()
    assert star.channel.wait(lambda: set(here.names) <= set(star.channel.refusals), 300.0)
    told = dict(star.channel.refusals)
    star.stop()
    running.join(300)
    assert all(reason in told[party] for party in here.names if party != 2)
    assert all(row["what"] == "sent" for _, _, disk in here.clients.values() for row in disk.journal())


def _until_stopped(rounds: Any) -> None:
    with contextlib.suppress(Stopped):
        list(rounds)


def test_a_party_that_leaves_is_done_without_and_comes_back(world: Any) -> None:
    made = of_example(colluders=2, rounds=6)
    here = world(made)
    hub, star = here.serve(patience=15.0)  # many times what the others need on a busy machine
    for party in here.names:
        here.join(party)
    rounds = hub.rounds(star)
    assert next(rounds).missing == ()
    here.leave(2)
    missing = [next(rounds).missing for _ in range(2)]
    assert missing == [(2,), (2,)]
    here.join(2)
    told = [done.missing for done in rounds]
    assert told[-1] == ()  # it was asked for new keys in between, and is in the sum again
    assert hub.disk.read_json("place")["counted"] == [5] * 6
    assert not here.errors


def test_with_one_more_missing_the_server_waits_and_opens_nothing(world: Any) -> None:
    made = of_example(colluders=1)
    here = world(made)
    hub, star = here.serve(patience=0.5)
    for party in here.names:
        here.join(party)
    rounds = hub.rounds(star)
    next(rounds)
    here.leave(1)
    here.leave(4)
    done: list[Any] = []
    waiting = threading.Thread(target=lambda: done.append(next(rounds)))
    waiting.start()
    waiting.join(3.0)
    assert waiting.is_alive()  # five are needed and four are here
    assert hub.round == 1
    for _, _, disk in here.clients.values():
        assert not [row for row in disk.journal() if row["round"] == 1 and row.get("stage", "").startswith("reveal")]
    here.join(4)
    waiting.join(300.0)
    assert not waiting.is_alive()
    assert len(done) == 1
    assert 1 in done[0].missing
    assert hub.disk.read_json("place")["counted"] == [1, 0, 1, 1, 1, 1]
    assert not here.errors
