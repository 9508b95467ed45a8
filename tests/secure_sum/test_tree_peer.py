"""Nodes of a sum on a graph, without a network: the model of one process, restarts at every moment, and liars."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.deployment import certs
from consenso.engine.codec import MessageError
from consenso.errors import PrivacyError, TamperError
from consenso.federation.disk import Disk
from consenso.federation.signatures import SIGNATURE_BYTES, Signatures
from consenso.planning.plan import Plan
from consenso.privacy.samplers import Seeded
from consenso.schedules import PoissonSubset
from consenso.secure_sum import edge_masks, tree_peer
from consenso.secure_sum.masks import KeyPair
from consenso.secure_sum.terms import Occasion
from consenso.secure_sum.tree_peer import TreePeer
from consenso.testing.plans import execute, plan_example, shards_of
from consenso.topology import Topology

RUN = "a" * 64
GRAPH = Topology.from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4)])


def make(kind: Any = DPSGD, trust: str = "masked-sum", **changes: Any) -> tuple[Plan, Any]:
    example = kind.example()
    example = dataclasses.replace(example, rounds=3 if kind is DPSGD else example.rounds)
    settings: dict[str, Any] = {"topology": GRAPH, "trust": trust, "schedule": None} | changes
    return plan_example(example, **settings), shards_of(example)


class Net:
    """Nodes with disks of their own; whatever is said to anybody is written down."""

    def __init__(self, plan: Plan, shards: Any, folder: Path, signatures: Any = None) -> None:
        self.plan, self.shards, self.folder = plan, shards, folder
        self.signatures: Any = signatures or [None] * plan.parties
        self.said: dict[tuple[int, int], set[bytes]] = {}
        self.nodes = [self.start(party) for party in range(plan.parties)]

    def start(self, party: int) -> TreePeer:
        disk = Disk(self.folder / str(party), owner=str(party), run=RUN, fingerprint="f")
        return TreePeer(self.plan, self.shards, party, disk, signatures=self.signatures[party])

    def restart(self, party: int) -> None:
        self.nodes[party].disk.close()
        self.nodes[party] = self.start(party)

    def greet(self) -> None:
        for node in self.nodes:
            node.begin()
        self.pass_items()

    def pass_items(self) -> None:
        items = {name: node.disk.read_bytes(name) for node in self.nodes for name in node.disk.names("item/")}
        for node in self.nodes:
            missing = {name: blob for name, blob in items.items() if node.disk.read_bytes(name) is None}
            for name, blob in missing.items():
                node.check_item(name.removeprefix("item/"), blob)
            node.disk.commit(missing)

    def hear(self, node: TreePeer) -> dict[int, bytes] | None:
        """What a node's sources say to it; None if one of them has nothing to say yet."""
        found = {}
        for other in node.sources:
            blob = self.nodes[other].get_message(node.hears, node.index)
            if blob is None:
                return None
            self.said.setdefault((other, node.hears), set()).add(blob)
            node.check(node.hears, other, blob)
            found[other] = blob
        return found

    def step(self, party: int) -> bool:
        node = self.nodes[party]
        heard = None if node.done or not node.ready else self.hear(node)
        if heard is None:
            return False
        node.advance(heard)
        return True

    def run(self, around: Callable[[int], None] = lambda party: None) -> np.ndarray:
        self.greet()
        while not all(node.done for node in self.nodes):
            moved = [self.step(party) for party in range(len(self.nodes))]
            assert any(moved), "nobody can go on"
            for party in range(len(self.nodes)):
                around(party)
        self.pass_items()
        models = [node.model() for node in self.nodes]
        for node in self.nodes:
            node.end()
        assert all(np.array_equal(model, models[0]) for model in models)
        return models[0]

    def close(self) -> None:
        for node in self.nodes:
            node.disk.close()


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (DPSGD, {"trust": "tree"}),
        (DPSGD, {"trust": "tree", "trees": "each-round"}),
        (DPSGD, {"schedule": PoissonSubset(0.5)}),
        (DPSGD, {"trust": "tree", "schedule": PoissonSubset(0.5)}),
        (DPSGD, {"colluders": 3}),
        (PreconditionedFixedPoint, {"topology": Topology.ring(6)}),
    ],
)
def test_the_model_is_that_of_one_process_bit_for_bit(kind: Any, changes: dict[str, Any], tmp_path: Path) -> None:
    plan, shards = make(kind, **changes)
    net = Net(plan, shards, tmp_path)
    assert np.array_equal(net.run(), execute(plan, shards, one_by_one=True)[0])
    net.close()


def test_restarts_and_crashes_between_any_two_writes_change_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    plan, shards = make()
    net, used = Net(plan, shards, tmp_path), dict[tuple[bytes, int], set[bytes]]()
    add = edge_masks.add_masks

    def note(words: Any, party: int, chains: Any, at: Occasion) -> None:
        before = words.tobytes()
        add(words, party, chains, at)
        for chain in chains.values():
            used.setdefault((chain, party), set()).add(before)

    monkeypatch.setattr(edge_masks, "add_masks", note)
    rng, commit, crashes = np.random.default_rng(3), Disk.commit, [0]

    class CrashError(Exception):
        pass

    def crash(self: Disk, *content: Any) -> None:
        if rng.random() < 0.2:  # before the write, as a power cut
            raise CrashError
        commit(self, *content)
        if rng.random() < 0.2:  # after it, before anything is sent
            raise CrashError

    net.greet()
    while not all(node.done for node in net.nodes):
        for party in range(6):
            monkeypatch.setattr(Disk, "commit", crash)
            try:
                net.step(party)
            except CrashError:
                crashes[0] += 1
                monkeypatch.setattr(Disk, "commit", commit)
                for each in range(6):
                    net.restart(each)
            monkeypatch.setattr(Disk, "commit", commit)
    assert crashes[0] > 10
    assert all(len(blobs) == 1 for blobs in net.said.values()), "a node said two things in one exchange"
    assert np.array_equal(net.nodes[0].model(), execute(plan, shards, one_by_one=True)[0])
    assert all(len(values) == 1 for values in used.values()), "a mask served two values"
    for node in net.nodes:  # one step a round, and no second one
        steps = [row["round"] for row in node.disk.journal() if row["what"] == "step"]
        assert steps == list(range(plan.rounds))
    net.close()


# --- what is on a link -----------------------------------------------------------------------------------------------


def test_masks_cancel_in_the_total_and_nowhere_else(tmp_path: Path) -> None:
    plan, shards = make()
    masked, bare = Net(plan, shards, tmp_path / "masked"), Net(plan, shards, tmp_path / "bare")
    for node in bare.nodes:
        node._partners, node._party._contributor._keys = (), None  # type: ignore[attr-defined]
    for net in (masked, bare):
        net.run()
    tree = plan.tree(0)
    for (node, number), blobs in masked.said.items():
        if number % 2 == 0:
            assert blobs != bare.said[node, number], "a sum on a link is not masked"
        elif tree.parents[node] < 0:
            assert blobs == bare.said[node, number], "masks do not cancel in the total"
    masked.close(), bare.close()


def test_a_mask_that_would_be_used_twice_is_refused(tmp_path: Path) -> None:
    plan, shards = make()
    net = Net(plan, shards, tmp_path)
    net.greet()
    net.step(0)
    node = net.nodes[0]
    # The disk of an earlier moment, by hand: the chain is a round ahead of the answer that is asked for.
    node.disk.commit({"answer/step": None, "said": None, "place": {**node.disk.read_json("place"), "round": -1}})
    with pytest.raises(PrivacyError, match="one value only"):
        node._party.answer(round_=0, stage="step", body=tree_peer.encode(node._down(0)), counted=-1)
    net.close()


def test_both_ends_of_an_edge_derive_the_same_chain_and_others_another() -> None:
    pairs = [KeyPair(bytes([i]) * 32) for i in range(3)]
    run = b"r" * 32
    one = edge_masks.start_chains(pairs[0], 0, {1: pairs[1].public, 2: pairs[2].public}, run)
    other = edge_masks.start_chains(pairs[1], 1, {0: pairs[0].public}, run)
    assert one[1] == other[0] != one[2]
    assert edge_masks.start_chains(pairs[0], 0, {1: pairs[1].public}, b"s" * 32)[1] != one[1]
    with pytest.raises(TamperError, match="same public key"):
        edge_masks.start_chains(pairs[0], 0, {1: pairs[1].public, 2: pairs[1].public}, run)


# --- liars -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def signatures(tmp_path_factory: pytest.TempPathFactory) -> list[Signatures]:
    folder = tmp_path_factory.mktemp("certs")
    certs.init(folder / "ca")
    names = {party: f"peer-{party}" for party in range(6)}
    found = []
    for name in names.values():
        own = certs.issue(folder / "ca", name, out=folder / name)
        found.append(
            Signatures(ca=own / "ca.pem", certificate=own / "cert.pem", key=own / "key.pem", names=names, run=RUN)
        )
    return found


@pytest.fixture
def at_round_one(tmp_path: Path, signatures: list[Signatures]) -> Any:
    """Plain nodes after one round, so that messages of two rounds are there."""
    plan, shards = make(trust="tree")
    net = Net(plan, shards, tmp_path, signatures)
    net.greet()
    while any(node.hears < 3 and net.step(node.index) for node in net.nodes):
        pass
    yield net
    net.close()


def ask(net: Net, number: int, other: int, party: int) -> bytes:
    blob = net.nodes[other].get_message(number, party)
    assert blob is not None
    return blob


def links(net: Net) -> tuple[int, int, int, int]:
    """A child and its parent, another child of somebody, and a child of the root."""
    tree = net.plan.tree(0)
    child = next(node for node in range(6) if tree.parents[node] >= 0 and tree.parents[tree.parents[node]] >= 0)
    other = next(node for node in range(6) if node not in (child, tree.root) and tree.parents[node] != child)
    return child, tree.parents[child], other, tree.children[tree.root][0]


def test_a_peer_that_sends_nonsense_is_refused(at_round_one: Net) -> None:
    child, parent, _, _ = links(at_round_one)
    good = ask(at_round_one, 2, child, parent)
    node = at_round_one.nodes[parent]
    for bad in (b"", good[:-8], good + b"\0", bytes(len(good))):
        with pytest.raises(MessageError):
            node.check(2, child, bad)
    huge = good[:-8] + (2**62).to_bytes(8, "little")
    with pytest.raises(MessageError, match="nodes and their noise can reach"):
        node.check(2, child, huge)


def test_a_peer_that_sends_anothers_sum_or_that_of_another_round_is_refused(at_round_one: Net) -> None:
    child, parent, other, _ = links(at_round_one)
    theirs = ask(at_round_one, 2, other, at_round_one.plan.tree(0).parents[other])
    for bad in (theirs, ask(at_round_one, 0, child, parent)):
        with pytest.raises(MessageError, match="another node's, of another round"):
            at_round_one.nodes[parent].check(2, child, bad)


def test_a_sum_is_told_to_nobody_but_the_parent(at_round_one: Net) -> None:
    child, parent, other, _ = links(at_round_one)
    for number, asking in ((2, other), (1, parent)):
        with pytest.raises(MessageError, match="somebody else asked"):
            at_round_one.nodes[child].get_message(number, asking)


def test_a_total_that_was_changed_on_its_way_is_refused(at_round_one: Net, signatures: list[Signatures]) -> None:
    *_, child = links(at_round_one)
    tree = at_round_one.plan.tree(0)
    good = ask(at_round_one, 1, tree.root, child)
    content = bytearray(good[:-SIGNATURE_BYTES])
    content[-1] ^= 1
    with pytest.raises(MessageError, match="made up or altered"):
        at_round_one.nodes[child].check(1, tree.root, bytes(content) + good[-SIGNATURE_BYTES:])
    relay = next(node for node in range(6) if node != tree.root)
    forged = good[:-SIGNATURE_BYTES] + signatures[relay].sign("total of round 0", good[:-SIGNATURE_BYTES])
    with pytest.raises(MessageError, match=f"it is 'peer-{tree.root}''s, and 'peer-{relay}' signed it"):
        at_round_one.nodes[child].check(1, tree.root, forged)


def test_a_root_that_tells_different_totals_is_found_out(tmp_path: Path, signatures: list[Signatures]) -> None:
    plan, shards = make(trust="tree", topology=Topology.star(6))
    net = Net(plan, shards, tmp_path, signatures)
    hear, lied = net.hear, []

    def lie(node: TreePeer) -> Any:
        heard = hear(node)
        if heard and node.index == 3 and node.hears == 1:
            words = bytearray(heard[0][:-SIGNATURE_BYTES])
            words[-8] ^= 1  # the smallest step there is
            lied.append(heard[0])
            heard = {0: bytes(words) + signatures[0].sign("total of round 0", bytes(words))}
            node.check(1, 0, heard[0])
        return heard

    net.hear = lie  # type: ignore[method-assign]
    with pytest.raises(TamperError, match="parties 3 say that they were told other totals than party 0"):
        net.run()
    assert lied
    net.close()


def test_under_masks_a_false_sum_spoils_the_total_and_is_not_named(tmp_path: Path) -> None:
    """A sum hides who spoiled it: an absurd total is refused, and nobody is accused."""
    plan, shards = make()
    net = Net(plan, shards, tmp_path)
    net.greet()
    tree, add = plan.tree(0), tree_peer.TreePeer._own
    liar = next(node for node in range(6) if node != tree.root)
    words, told = add(net.nodes[liar], 0)
    assert net.nodes[liar]._own(0)[0] is not words  # what is changed below is this node's message only
    net.nodes[liar]._own = lambda round_: (words + np.uint64(2**61), told)  # type: ignore[method-assign]
    while net.nodes[tree.root].hears == 0:
        for party in set(range(6)) - {tree.root}:
            net.step(party)
        if net.hear(net.nodes[tree.root]) is not None:
            net.step(tree.root)
    with pytest.raises(MessageError, match="a sum is wrong, or masks do not cancel"):
        net.step(tree.root)
    net.close()


def test_a_second_key_of_a_peer_changes_nothing_once_the_first_is_here(tmp_path: Path) -> None:
    plan, shards = make(sampler=Seeded(1))
    net = Net(plan, shards, tmp_path)
    net.greet()
    before = net.nodes[0]._read_keys()
    net.nodes[1].begin()  # a node that is started again keeps its key
    net.pass_items()
    assert net.nodes[0]._read_keys() == before
    net.close()
