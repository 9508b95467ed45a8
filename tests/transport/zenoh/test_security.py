"""Outsiders, impostors, eavesdroppers and forgers: refused, nothing released, and the run of the others goes on."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import zenoh

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.ipadmm import IPADMM
from consenso.engine.codec import MessageEnvelope, encode, pack, unpack
from consenso.errors import InputError
from consenso.schedules import PoissonSubset
from consenso.testing.laws import plan_example
from consenso.transport.zenoh.access import HUB, presence_key, question_key
from consenso.transport.zenoh.session import configuration
from consenso.transport.zenoh.star import SERVER, StarParty
from consenso.transport.zenoh.tls import Credentials

RUN = "ab" * 32
OPEN: dict[str, Any] = {"enabled": False}
LIMIT = 1 << 20


def consensus(**changes: Any):
    return plan_example(ConsensusADMM.example(), **changes)


@contextlib.contextmanager
def raw(credentials: Credentials, mode: str = "client", tls: dict[str, Any] | None = None, **addresses: Any):
    """A session that keeps to no rules of its own."""
    config = configuration(mode=mode, credentials=credentials, access=OPEN, limit=LIMIT, **addresses)
    config["connect"] |= {"timeout_ms": 1500, "exit_on_failure": False}
    if tls is not None:
        config["transport"]["link"]["tls"] = tls
    session = zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
    try:
        yield session
    finally:
        session.close()


def linked(session: Any) -> bool:
    return bool(session.info.peers_zid() or session.info.routers_zid())


def gets_in(credentials: Credentials, address: str, tls: dict[str, Any] | None = None) -> bool:
    """Whether a link to an address forms."""
    try:
        with raw(credentials, tls=tls, connect=[address]) as session:
            return linked(session)
    except zenoh.ZError:
        return False


def finished(here, hub, star) -> None:
    """The run of the honest ends with the model that it has without anybody else."""
    for _ in hub.rounds(star):
        pass
    assert np.array_equal(hub.model(), here.local())


# --- who gets in ------------------------------------------------------------------------------------------------------


def test_without_a_certificate_nobody_gets_in(world, authority):
    here = world(consensus())
    hub, star = here.hub()
    assert gets_in(authority("p0"), here.address)
    anonymous = {"root_ca_certificate": authority("server").config()["root_ca_certificate"], "enable_mtls": False}
    assert not gets_in(authority("p0"), here.address, anonymous)
    for party in here.names:
        here.client(party)
    finished(here, hub, star)


def test_with_the_certificate_of_another_authority_nobody_gets_in(world, stranger, authority):
    here = world(consensus())
    hub, star = here.hub()
    forged = stranger("p0")
    # It may even know the right authority; its own certificate is not of it.
    tls = forged.config() | {"root_ca_certificate": authority("p0").config()["root_ca_certificate"]}
    for settings in (None, tls):
        assert not gets_in(forged, here.address, settings)
    for party in here.names:
        here.client(party)
    finished(here, hub, star)


def test_a_server_of_another_authority_is_not_dialled(world, stranger):
    here = world(consensus())
    heard: list[Any] = []
    with raw(stranger("server"), mode="peer", listen=[here.address]) as session:
        client = here.client(0)
        session.liveliness().declare_subscriber("**", heard.append, history=True)
        time.sleep(1.0)
        assert not linked(session)
    assert not heard
    assert client._party.disk.journal() == []


def test_a_party_is_not_a_server(world, authority):
    """Whoever listens at the server's address with a party's certificate may not ask anything."""
    here = world(consensus())
    with raw(authority("p3"), mode="peer", listen=[here.address]) as session:
        client = here.client(0)
        time.sleep(1.0)
        assert get(session, 0, HUB, ask(here, 0)) == []
    assert client._party.disk.journal() == []


def test_a_name_that_is_not_on_the_certificate_is_refused_at_once(world, authority):
    here = world(consensus())
    with pytest.raises(InputError, match="not of"):
        Credentials.load(authority("p1").folder, name="p0")
    with pytest.raises(InputError, match="not of 'p0'"):
        StarParty(here.client(0)._party, "p0", run=RUN, server=here.address, credentials=authority("p1"), limit=LIMIT)


# --- speaking as another, listening in --------------------------------------------------------------------------------


def test_a_valid_party_cannot_speak_as_another(world, authority):
    here = world(consensus())
    hub, star = here.hub()
    asked: list[Any] = []
    with raw(authority("p1"), connect=[here.address]) as session:
        for party in set(here.names) - {1}:
            session.declare_queryable(question_key(party, HUB), asked.append)
            session.liveliness().declare_token(presence_key(party))
        time.sleep(0.5)
        assert not any(star.channel.up.values())
        for party in here.names:
            here.client(party)
        finished(here, hub, star)
    assert not asked


@pytest.mark.parametrize("name", ["p1", "mallory"])
def test_whoever_listens_to_everything_hears_nothing(world, authority, name):
    here = world(consensus())
    hub, star = here.hub()
    heard: list[Any] = []
    with raw(authority(name), connect=[here.address]) as session:
        session.declare_subscriber("**", heard.append)
        session.declare_queryable("**", heard.append)
        session.declare_queryable("consenso/**", heard.append)
        session.liveliness().declare_subscriber("**", heard.append, history=True)
        for party in here.names:
            here.client(party)
        finished(here, hub, star)
        assert not heard
        told = [session.get(key, timeout=0.5, payload=b"?") for key in ("**", question_key(0, HUB), "@/**")]
        keys = [str(reply.ok.key_expr) for replies in told for reply in replies if reply.ok is not None]
        assert all(key.startswith(f"@/{session.zid()}/") for key in keys)  # what a session knows of itself
        for query in heard:  # its own questions
            query.drop()


def test_a_neighbour_cannot_ask_as_another_nor_read_what_is_not_for_it(world, authority):
    made = plan_example(IPADMM.example())  # six on a ring
    here = world(made)
    heard: list[Any] = []
    others = [here.peer(party) for party in (0, 2, 3, 4, 5)]
    with raw(authority("p1"), mode="peer", listen=[here.addresses[1]], connect=[here.addresses[0]]) as session:
        session.declare_subscriber("**", heard.append)
        session.declare_queryable("**", heard.append)
        time.sleep(1.0)
        assert not heard
        own = pack(MessageEnvelope(kind="said", run=RUN, sender="p1", recipient="p0", round=0))
        lied = pack(MessageEnvelope(kind="said", run=RUN, sender="p5", recipient="p0", round=0))
        assert [
            unpack(blob, run=RUN, sender="p0", recipient="p1", limit=LIMIT).kind for blob in get(session, 0, 1, own)
        ] == ["said"]
        # On another's key it is not heard, and on its own it may not give another's name.
        assert get(session, 0, 5, lied) == []
        refused = [unpack(blob, run=RUN, sender="p0", recipient="p1", limit=LIMIT) for blob in get(session, 0, 1, lied)]
        assert [(each.kind, b"another sender" in each.body) for each in refused] == [("refusal", True)]
        # p4 is not its neighbour.
        assert get(session, 4, 1, replace_recipient(own, "p4")) == []
        for query in heard:  # its own questions
            query.drop()
    here.peer(1)
    here.join()
    assert not here.errors
    assert all(np.array_equal(peer.worker.model(), here.local()) for peer in others)


def replace_recipient(blob: bytes, name: str) -> bytes:
    told = unpack(blob, run=RUN, sender="p1", recipient="p0", limit=LIMIT)
    return pack(replace(told, recipient=name))


def get(session: Any, to: int, asker: int | str, blob: bytes) -> list[bytes]:
    replies = session.get(question_key(to, asker), payload=blob, timeout=2.0)
    return [reply.ok.payload.to_bytes() for reply in replies if reply.ok is not None]


# --- forged, replayed, malformed --------------------------------------------------------------------------------------


def ask(here, party: int, *, round_: int = 0, counted: int = -1, run: str = RUN, body: bytes | None = None) -> bytes:
    made = here.made
    down = encode(made.algorithm.down(made.facts, made.algorithm.start(made.facts)))
    content = {"round": round_, "stage": "step", "counted": counted, "body": down if body is None else body}
    return pack(MessageEnvelope(kind="ask", run=run, sender=SERVER, recipient=here.names[party], **content))


def answers(session: Any, party: int, blob: bytes) -> list[bytes]:
    """The replies; asked again while the party is there and does not listen yet, as on a busy machine."""
    end = time.monotonic() + 300
    while not (found := get(session, party, HUB, blob)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def false_server(here, authority):
    """A server with the right certificate that asks what it likes."""
    with raw(authority("server"), mode="peer", listen=[here.address]) as session:
        seen: list[Any] = []
        session.liveliness().declare_subscriber(presence_key(0), seen.append, history=True)
        client = here.client(0)
        end = time.monotonic() + 300
        while not seen and time.monotonic() < end:
            time.sleep(0.02)
        yield session, client._party


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run": "cd" * 32}, b"another study, version or run"),
        ({"round_": 99}, b"the plan has rounds"),
        ({"counted": 3}, b"counts a round"),
        ({"body": b""}, b"broke off"),
        ({"body": b"x" * 300}, b"at most"),
        ({"body": b"x" * 60}, b"not a message"),
    ],
)
def test_a_party_refuses_what_the_study_does_not_ask_for_and_releases_nothing(world, authority, changes, reason):
    here = world(consensus())
    with false_server(here, authority) as (session, party):
        (blob,) = answers(session, 0, ask(here, 0, **changes))
        told = unpack(blob, run=RUN, sender="p0", recipient=SERVER, limit=LIMIT)
        assert told.kind == "refusal"
        assert reason in told.body
        assert party.disk.journal() == []


def test_a_question_that_is_replayed_gets_the_same_bytes_and_a_stale_one_is_refused(world, authority):
    here = world(consensus())
    with false_server(here, authority) as (session, party):
        first = ask(here, 0)
        (answer,) = answers(session, 0, first)
        assert answers(session, 0, first) == [answer]
        answers(session, 0, ask(here, 0, round_=1, counted=0))
        (blob,) = answers(session, 0, first)
        told = unpack(blob, run=RUN, sender="p0", recipient=SERVER, limit=LIMIT)
        assert (told.kind, b"is over" in told.body) == ("refusal", True)
        assert [row["round"] for row in party.disk.journal() if row["what"] == "step"] == [0, 1]


def test_a_flood_of_bytes_is_not_even_read(world, authority):
    here = world(consensus())
    with false_server(here, authority) as (session, party):
        assert get(session, 0, HUB, bytes(8 << 20)) == []
        assert party.disk.journal() == []


FORGERIES = {
    "garbage": lambda asked, first: b"garbage",
    "nothing": lambda asked, first: b"",
    "replayed": lambda asked, first: first,
    "as another": lambda asked, first: forged(asked, sender="p2"),
    "of another run": lambda asked, first: forged(asked, run="cd" * 32),
    "of another round": lambda asked, first: forged(asked, round=asked.round + 1),
    "oversized": lambda asked, first: forged(asked, body=bytes(1 << 19)),
    "wrongly shaped": lambda asked, first: forged(asked, body=increment(np.zeros((1, 4)))),
    "not a number": lambda asked, first: forged(asked, body=increment(np.array([[0.0, np.nan, 0.0]]))),
}


def forged(asked: MessageEnvelope, **changes: Any) -> bytes:
    told = {"run": RUN, "sender": "p0", "recipient": SERVER, "round": asked.round, "stage": asked.stage}
    return pack(MessageEnvelope(kind="answer", **({**told, "body": increment(np.zeros((1, 3)))} | changes)))


def increment(values: np.ndarray) -> bytes:
    from consenso.algorithms.consensus import Up

    return encode(Up(increment=values))


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_answer_is_refused_and_the_run_of_the_others_goes_on(world, authority, what):
    """The forger is the party itself, with its own certificate; the round is sampled, so the others do not wait."""
    here = world(consensus(schedule=PoissonSubset(0.99)))
    hub, star = here.hub(patience=1.0)
    first: list[bytes] = []
    with raw(authority("p0"), connect=[here.address]) as session:

        def lie(query: Any) -> None:
            with query:
                asked = unpack(query.payload.to_bytes(), run=RUN, sender=SERVER, recipient="p0", limit=LIMIT)
                if asked.round == 0:  # a run begins with everybody
                    first.append(forged(asked))
                    query.reply(question_key(0, HUB), first[0])
                    return
                query.reply(question_key(0, HUB), FORGERIES[what](asked, first[0]))

        session.declare_queryable(question_key(0, HUB), lie)
        session.liveliness().declare_token(presence_key(0))
        clients = [here.client(party) for party in here.names if party]
        rounds = list(hub.rounds(star))
    assert len(rounds) == 8
    # On a busy machine others may be late as well.
    assert [0 in done.missing for done in rounds] == [False] + 7 * [True]
    for client in clients:
        assert len([row for row in client._party.disk.journal() if row["what"] == "step"]) >= 6
    assert np.isfinite(hub.model()).all()


def test_a_server_with_another_study_hears_refusals_only(world):
    here = world(consensus())
    hub, star = here.hub(run="cd" * 32)
    clients = [here.client(party) for party in here.names]
    waiting = {party: hub_question(hub) for party in here.names}
    for party, question in waiting.items():
        star._call(party, question, lambda party, blob: None, {})
    star.channel.wait(lambda: len(star.channel.refusals) == 6, 300)
    assert set(star.channel.refusals) == set(here.names)
    assert all(client._party.disk.journal() == [] for client in clients)


def hub_question(hub):
    from consenso.federation.hub import Question

    down = hub.plan.algorithm.down(hub.plan.facts, hub._hub)
    return Question(round=0, stage="step", body=encode(down), counted=-1)
