"""The conversation of a hub with its parties in Flower's messages, over a grid in this process.

The messages are Flower's own; only their way through SuperLink and SuperNodes is cut short. `test_real.py` has that.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.transport.settings import star_runs

from consenso.algorithms import discover
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.deployment.engines import server_parts
from consenso.deployment.sum_protocols import parts_of
from consenso.engine.codec import MessageEnvelope, pack, unpack
from consenso.errors import BudgetError, InputError
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun
from consenso.federation.party import Party
from consenso.planning.plan import Plan
from consenso.schedules import Everyone, PoissonSubset
from consenso.shards import Shards
from consenso.testing.laws import execute, plan_example, settings_of
from consenso.testing.worlds import draw
from consenso.transport import flower
from consenso.transport.flower import FlowerHub, answer_message, key_hash

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Flower imports
    from flwr.app import ConfigRecord, Error, Message, RecordDict
    from flwr.supercore.task_identity import TaskIdentity

# What a process of Flower is told when it is started.
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1

RUN = "ab" * 32
Handler = Callable[[Message], Message | None]


@dataclass
class Grid:
    """Delivers messages to handlers when replies are pulled; keeps all that was sent."""

    nodes: dict[int, Handler] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)
    waiting: dict[str, Message] = field(default_factory=dict)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def get_nodes(self) -> Iterable[Any]:
        return [SimpleNamespace(node_id=node, public_key=self.keys.get(node, b"")) for node in self.nodes]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        found = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(len(self.sent))
            self.sent.append(message)
            self.waiting[message.metadata.message_id] = message
            found.append(message.metadata.message_id)
        return found

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies = []
        for message_id in message_ids:
            message = self.waiting.get(message_id)
            handler = None if message is None else self.nodes.get(message.metadata.dst_node_id)
            reply = None if message is None or handler is None else handler(message)
            if reply is not None:
                del self.waiting[message_id]
                replies.append(reply)
        return replies


class World:
    """A hub and nodes that build their party from its disk for every message, as Flower's processes do."""

    def __init__(self, made: Plan, folder: Path) -> None:
        server_parts(made)
        self.made, self.folder, self.grid = made, folder, Grid()
        self.names = {party: f"p{party}" for party in range(made.parties)}
        self.shards = Shards.from_parties(made.problem, draw(made.problem, np.random.default_rng(0)))
        self.built: list[int] = []
        for party in self.names:
            self.grid.nodes[100 + party] = self.handler(party)

    def party(self, party: int) -> Party:
        self.built.append(party)
        disk = Disk(self.folder / f"p{party}", owner=f"p{party}", run=RUN, fingerprint="f")
        return Party(self.made, self.shards, party, disk, contributor=parts_of(self.made).contributor)

    def handler(self, party: int, *, name: str | None = None, run: str = RUN) -> Handler:
        limit = parts_of(self.made).limit
        return lambda message: answer_message(
            message, name or self.names[party], run=run, limit=lambda: limit, party=lambda: self.party(party)
        )

    def hub(self, **options: Any) -> tuple[HubRun, FlowerHub]:
        parts = parts_of(self.made)
        disk = Disk(self.folder / "hub", owner="hub", run=RUN, fingerprint="f")
        told = {"run": RUN, "limit": parts.limit, "patience": 30.0, "pause": 0.001} | options
        return HubRun(self.made, disk, summation=parts.summation), FlowerHub(self.grid, self.names, **told)

    def run(self, **options: Any) -> np.ndarray:
        hub, line = self.hub(**options)
        try:
            for _ in hub.rounds(line):
                pass
            assert line.end(hub.model_bytes(), seconds=300) == tuple(self.names)
            return hub.model()
        finally:
            hub.disk.close()

    def local(self) -> np.ndarray:
        return execute(self.made, self.shards, one_by_one=True)[0]

    def model(self, party: int) -> np.ndarray | None:
        here = self.party(party)
        here.disk.close()
        return here.model


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower, "AFTER_REFUSAL", 0.01)


def of_example(name: str, **changes: Any) -> Plan:
    return plan_example(discover()[name].example(), **({"rounds": 2} | changes))


# Law 1: every discovered algorithm, in every schedule and under every trust of its example, runs or is refused.
# Three rounds have all that a message can be, and parties are built anew for each; some algorithms need more.
ROUNDS = {"PreconditionedFixedPoint": PreconditionedFixedPoint.example().rounds, "ObjectivePerturbation": 1}
PLANS = [
    pytest.param(made, id=f"{name}-{type(made.schedule).__name__}-{made.trust}")
    for name, definition in discover().items()
    for made in settings_of(replace(definition.example(), rounds=ROUNDS.get(name, 3)))
]
RUN_BY_FLOWER = [each for each in PLANS if star_runs(each.values[0])]
REFUSED = [each for each in PLANS if not star_runs(each.values[0])]


# Law 1 over Zenoh goes through every algorithm, with the same hub and the same parties.
@pytest.mark.sweep(by=lambda made: {"setting": (type(made.schedule), made.trust)})
@pytest.mark.parametrize("made", RUN_BY_FLOWER)
def test_flower_messages_carry_the_local_engines_model(made: Plan, tmp_path: Path) -> None:
    world = World(made, tmp_path)
    model = world.run()
    assert np.array_equal(model, world.local())
    assert all(np.array_equal(world.model(party), model) for party in world.names)


@pytest.mark.parametrize("made", REFUSED)
def test_what_flower_does_not_run_is_refused_with_a_reason_before_anything_starts(made: Plan, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no hub|a walk goes|its own curator|cannot draw for themselves") as refused:
        World(made, tmp_path)
    assert "; " in str(refused.value)
    assert not any(tmp_path.iterdir())


def test_every_algorithm_with_a_hub_runs_over_flower_in_some_setting() -> None:
    ran = {type(each.values[0].algorithm).__name__ for each in RUN_BY_FLOWER}
    hubs = {type(each.values[0].algorithm).__name__ for each in PLANS if each.values[0].shape == "hub"}
    assert hubs - ran == {"StatelessWalk"}
    assert len(ran) >= 10


def test_every_message_has_a_time_to_live(tmp_path: Path) -> None:
    world = World(of_example("DPSGD"), tmp_path)
    world.run(patience=17.0)
    assert len(world.grid.sent) == 6 * (1 + 2 + 1)  # who are you, two rounds, the end
    assert {message.metadata.ttl for message in world.grid.sent} == {17.0}


def test_a_round_goes_on_without_a_node_where_the_schedule_allows_it(tmp_path: Path) -> None:
    world = World(of_example("DPSGD", schedule=PoissonSubset(0.9)), tmp_path)
    handler, asked = world.grid.nodes[103], {"questions": 0}

    def once(message: Message) -> Message | None:
        asked["questions"] += message.metadata.message_type == "train"
        return handler(message) if asked["questions"] < 2 else None

    world.grid.nodes[103] = once
    hub, line = world.hub(patience=2.0)
    told = list(hub.rounds(line))
    hub.disk.close()
    assert [done.missing for done in told] == [(), (3,)]  # the first round waits for everybody


def test_a_node_that_comes_back_under_another_number_is_found(tmp_path: Path) -> None:
    world = World(of_example("DPSGD"), tmp_path)
    handler, count = world.grid.nodes.pop(102), {"asked": 0}

    def dies(message: Message) -> Message | None:
        if message.metadata.message_type == "train":
            count["asked"] += 1
            del world.grid.nodes[102]
            world.grid.nodes[777] = handler
            return None
        return handler(message)

    world.grid.nodes[102] = dies
    # A message to the old node is given up when its time is over.
    assert np.array_equal(world.run(patience=0.5), world.local())
    assert count["asked"] == 1


@pytest.mark.parametrize("silent", [True, False])
def test_a_dead_node_that_flower_still_lists_is_given_up(silent: bool, tmp_path: Path) -> None:
    """Flower lists it until its heartbeat expires, and says at some time that a message could not be delivered."""
    world = World(of_example("DPSGD"), tmp_path)
    handler = world.grid.nodes[102]

    def dead(message: Message) -> Message | None:
        return None if silent else Message(Error(code=3, reason="expired"), reply_to=message)

    def dies(message: Message) -> Message | None:
        if message.metadata.message_type != "train":
            return handler(message)
        handler(message)  # the step is on the disk, and its answer is lost
        world.grid.nodes[102], world.grid.nodes[777] = dead, handler
        return dead(message)

    world.grid.nodes[102] = dies
    assert np.array_equal(world.run(patience=0.5 if silent else 30.0), world.local())
    here = world.party(2)
    steps = [row["round"] for row in here.disk.journal() if row["what"] == "step"]
    here.disk.close()
    assert steps == [0, 1]


def test_a_node_that_died_after_it_answered_repeats_its_answer(tmp_path: Path) -> None:
    world = World(of_example("ConsensusADMM"), tmp_path)
    handler, lost = world.grid.nodes[101], {"answers": 0}

    def loses(message: Message) -> Message | None:
        reply = handler(message)
        if message.metadata.message_type == "train" and lost["answers"] < 2:
            lost["answers"] += 1
            return Message(Error(code=8, reason="crashed"), reply_to=message)
        return reply

    world.grid.nodes[101] = loses
    assert np.array_equal(world.run(), world.local())
    here = world.party(1)
    steps = [row["round"] for row in here.disk.journal() if row["what"] == "step"]
    here.disk.close()
    assert steps == [0, 1]  # no second noise for the step that was asked for three times


def test_a_stale_round_is_never_answered(tmp_path: Path) -> None:
    world = World(of_example("DPSGD", rounds=3), tmp_path)
    hub, line = world.hub()
    rounds = hub.rounds(line)
    next(rounds)
    first = next(message for message in world.grid.sent if message.metadata.message_type == "train")
    next(rounds)
    hub.disk.close()
    reply = world.grid.nodes[first.metadata.dst_node_id](first)
    assert reply is not None
    party = first.metadata.dst_node_id - 100
    envelope = unpack(reply.content["consenso"]["envelope"], run=RUN, recipient="server", sender=f"p{party}", limit=999)
    assert envelope.kind == "refusal"
    assert b"is over for this party" in envelope.body


# --- who is talked to -------------------------------------------------------------------------------------------------


def test_a_second_node_of_one_name_and_strangers_are_not_talked_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(of_example("DPSGD"), tmp_path)
    for node, handler in (
        (300, world.handler(1)),
        (301, world.handler(1, name="mallory")),
        (302, world.handler(1, run="cd" * 32)),
        (303, lambda message: Message(RecordDict({"other": ConfigRecord({"x": 1})}), reply_to=message)),
    ):
        world.grid.nodes[node] = handler
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(world.run(), world.local())
    asked = {message.metadata.dst_node_id for message in world.grid.sent if message.metadata.message_type == "train"}
    assert asked == {100 + party for party in world.names}
    for reason in ("whose node is here already", "no party of this study", "another study", "no content"):
        assert reason in caplog.text


def test_with_keys_a_name_alone_is_not_believed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(of_example("DPSGD"), tmp_path)
    keys = {}
    for party, name in world.names.items():
        public = ec.generate_private_key(ec.SECP384R1()).public_key()
        world.grid.keys[100 + party] = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        # What an operator has is the file of ssh-keygen.
        keys[name] = key_hash(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    stranger = ec.generate_private_key(ec.SECP384R1()).public_key()
    world.grid.nodes = {50: world.handler(2), **world.grid.nodes}  # it comes first
    world.grid.keys[50] = stranger.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(world.run(keys=keys), world.local())
    assert "does not have the key of p2" in caplog.text
    assert all(
        message.metadata.dst_node_id != 50 for message in world.grid.sent if message.metadata.message_type == "train"
    )
    with pytest.raises(InputError, match="PEM or OpenSSH"):
        key_hash(b"something else")


def test_a_party_cannot_have_the_servers_name() -> None:
    with pytest.raises(InputError, match="rename the party"):
        FlowerHub(Grid(), {0: "server"}, run=RUN, limit=10)


# --- what is refused --------------------------------------------------------------------------------------------------


def question(**changes: Any) -> Message:
    told = {"kind": "ask", "run": RUN, "sender": "server", "recipient": "p0", "stage": "step"} | changes
    content = RecordDict({"consenso": ConfigRecord({"envelope": pack(MessageEnvelope(**told))})})
    return Message(content, dst_node_id=100, message_type="train", ttl=9.0)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (question(run="cd" * 32), b"another study"),
        (question(sender="p1"), b"another sender"),
        (question(recipient="p1"), b"somebody else"),
        (question(kind="said"), b"something else came"),
        (question(body=b"x" * 10**6), b"at most"),
        (Message(RecordDict({}), dst_node_id=100, message_type="train", ttl=9.0), b"no content"),
        (
            Message(
                RecordDict({"consenso": ConfigRecord({"envelope": "text"})}),
                dst_node_id=100,
                message_type="train",
                ttl=9.0,
            ),
            b"another kind",
        ),
    ],
)
def test_a_node_refuses_what_is_not_in_order_before_it_touches_data(
    message: Message, reason: bytes, tmp_path: Path
) -> None:
    world = World(of_example("DPSGD"), tmp_path)
    reply = world.grid.nodes[100](message)
    assert reply is not None
    envelope = unpack(reply.content["consenso"]["envelope"], run=RUN, recipient="server", sender="p0", limit=999)
    assert envelope.kind == "refusal"
    assert reason in envelope.body
    assert not world.built


def test_the_server_hears_that_a_party_cannot_go_on_and_not_why() -> None:
    def fails(error: Exception) -> Callable[[], Party]:
        def party() -> Party:
            raise error

        return party

    for error, told in (
        (ValueError("row 17 has the value 3.5"), b"its operator sees why"),
        (InputError("row 17 has the value 3.5"), b"its operator sees why"),
        (BudgetError("epsilon 3 is left"), b"its ledger does not allow the run"),
    ):
        reply = answer_message(question(), "p0", run=RUN, limit=lambda: 10, party=fails(error))
        envelope = unpack(reply.content["consenso"]["envelope"], run=RUN, recipient="server", sender="p0", limit=999)
        assert envelope.kind == "refusal"
        assert told in envelope.body
        assert b"3" not in envelope.body


def test_answers_that_are_not_in_order_are_asked_for_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(of_example("DPSGD", schedule=Everyone()), tmp_path)
    handler, tricks = world.grid.nodes[104], iter(["cut", "other sender", "other round", "kind"])

    def tampered(message: Message) -> Message | None:
        reply = handler(message)
        if reply is None or message.metadata.message_type != "train":
            return reply
        trick = next(tricks, None)
        blob = reply.content["consenso"]["envelope"]
        if trick is None:
            return reply
        opened = unpack(blob, run=RUN, recipient="server", sender="p4", limit=10**6)
        said = {"run": RUN, "sender": "p4", "recipient": "server", "round": opened.round, "stage": opened.stage}
        changed = {
            "cut": blob[:-1],
            "other sender": pack(MessageEnvelope(kind="answer", body=opened.body, **(said | {"sender": "p3"}))),
            "other round": pack(MessageEnvelope(kind="answer", body=opened.body, **(said | {"round": 7}))),
            "kind": pack(MessageEnvelope(kind="done", **said)),
        }[trick]
        return Message(RecordDict({"consenso": ConfigRecord({"envelope": changed})}), reply_to=message)

    world.grid.nodes[104] = tampered
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(world.run(), world.local())
    for reason in ("bytes are due", "another sender", "another question"):
        assert reason in caplog.text
