"""One node of a sum on a graph, without a server: sums go up a public tree, the total comes down, everybody goes on.

Exchange 2k of round k goes up: a node hears its children and says the sum over its subtree to its parent. Exchange 2k+1
goes down: it hears the total from its parent and says it to its children. The total carries the root's signature, since
others pass it on. Every node keeps the hub's state and computes the next question itself, from totals alone.

Whatever is said is on the disk before anybody can ask for it, and is repeated byte for byte: the node's own step with
its masks in one transaction (`consenso.federation.party`), its sum in the next. So a restarted node, the root too, goes
on where it was, and no mask and no noise ever serves two values. In the end everybody tells a digest of the totals that
it was told: a root that told different ones is found out.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from consenso.algorithms.shape import Finishes
from consenso.arrays import Array
from consenso.engine.checkpoint import fingerprint
from consenso.engine.codec import MessageError, RecordSchema, decode, decode_values, encode, encode_values
from consenso.engine.fixed_point import Words, check
from consenso.engine.round import take_hub_round
from consenso.errors import InputError, TamperError
from consenso.federation.budget_guard import BudgetGuard
from consenso.federation.disk import Disk
from consenso.federation.message_schemas import BOUND, SHARE, HubMessageSchemas
from consenso.federation.party import MEMORY, Party
from consenso.federation.ranges import cut_numbers, largest_number
from consenso.federation.signatures import SIGNATURE_BYTES, Signatures
from consenso.federation.sum_protocol import STEP
from consenso.planning.plan import Plan
from consenso.secure_sum.columns import check_range, columns
from consenso.secure_sum.edge_masks import CONTRIBUTION, SECRET, EdgeContributor
from consenso.secure_sum.gathering import open_fields
from consenso.secure_sum.masks import KEY_BYTES, KeyPair
from consenso.shards import Shards

KEPT = 4  # exchanges whose messages a neighbour may still ask for
_TURN, _HUB, _SAID, _DIGEST = "tree/turn", "tree/hub", "tree/said/", "tree/digest"


class TreePeer:
    """A node. `begin` it, then `advance` it from exchange to exchange.

    signatures: with them a total is believed only with the signature of the round's root.
    """

    def __init__(
        self,
        plan: Plan,
        shards: Shards,
        party: int,
        disk: Disk,
        *,
        guard: BudgetGuard | None = None,
        signatures: Signatures | None = None,
    ) -> None:
        check_tree(plan)
        assert plan.topology is not None
        self.plan, self.index, self.disk = plan, party, disk
        self.neighbours = tuple(int(other) for other in plan.topology.neighbors(party))
        self._signatures, self._mutex = signatures, threading.RLock()
        masked = plan.mode.has_masks
        self._partners = tuple(int(other) for other in plan.mask_graph.neighbors(party)) if masked else ()
        run = hashlib.sha256(f"{fingerprint(plan)} {disk.run}".encode()).digest()
        contributor = EdgeContributor(plan, run, self._read_keys if masked else None)
        self._party = Party(plan, shards, party, disk, guard=guard, contributor=contributor)
        self._schemas = HubMessageSchemas(plan)
        if disk.read_json(_TURN) is None:
            start = encode(plan.algorithm.start(plan.facts))
            disk.commit({_TURN: 0, _HUB: start, _DIGEST: hashlib.sha256(run).digest()})

    # --- where the node stands ----------------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """The last round that is over; -1 before the first."""
        return self.hears // 2 - 1

    @property
    def exchanges(self) -> int:
        return 2 * self.plan.rounds

    @property
    def hears(self) -> int:
        """The exchange that the node waits for."""
        turn: int = self.disk.read_json(_TURN) or 0
        return turn

    @property
    def says(self) -> int:
        """The last exchange in which it said something."""
        return self.hears - 1

    @property
    def sources(self) -> tuple[int, ...]:
        """Its children on the way up, its parent on the way down."""
        round_, down = divmod(self.hears, 2)
        tree = self.plan.tree(round_)
        if not down:
            return tree.children[self.index]
        return () if tree.root == self.index else (tree.parents[self.index],)

    @property
    def ready(self) -> bool:
        """Whether the keys of all are here with whom the node shares masks."""
        return all(self.disk.read_bytes(f"item/key-{other}") is not None for other in self._partners)

    @property
    def done(self) -> bool:
        """Whether every round is over for this node."""
        return self.disk.read_bytes(f"item/{self._end}") is not None

    @property
    def wanted(self) -> tuple[str, ...]:
        """What every peer must have in the end: the keys of all, and the totals that each of them received."""
        everyone = range(self.plan.parties)
        keys = [f"key-{party}" for party in everyone] if self._partners else []
        return (*keys, *(f"end-{party}" for party in everyone))

    def largest(self) -> int:
        """Bytes of the longest message."""
        return self._schemas.largest() * 2 + SIGNATURE_BYTES + 1024  # a value may take two words

    # --- what it does -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Draw a key for masks, unless that is done."""
        with self._mutex:
            self._party.go_on()
            if self._partners and self.disk.read_bytes(f"item/key-{self.index}") is None:
                pair = KeyPair.draw(os.urandom)
                public = encode_values("Key", {"key": np.frombuffer(pair.public, dtype="<i8").astype(np.int64)})
                self.disk.commit({MEMORY + SECRET: pair.secret, f"item/key-{self.index}": public})

    def get_message(self, number: int, other: int) -> bytes | None:
        """What was said in an exchange to whom it is meant for; None if that is still to come."""
        with self._mutex:
            round_, down = divmod(number, 2)
            tree = self.plan.tree(round_)
            if (tree.parents[other] if down else tree.parents[self.index]) != (self.index if down else other):
                raise MessageError("sums go to a node's parent and totals to its children, and somebody else asked.")
            if number > self.says:
                return None
            self._party.go_on()
            blob = self.disk.read_bytes(_SAID + str(number))
        if blob is None:
            raise MessageError(f"round {round_} is long over for this node.")
        return blob

    def check(self, number: int, other: int, blob: bytes) -> None:
        """Refuse what a neighbour cannot have said."""
        round_, down = divmod(number, 2)
        with self._mutex:
            if down:
                self._read_total(round_, blob)
            else:
                self._read_sum(round_, other, blob)

    def advance(self, heard: Mapping[int, bytes]) -> None:
        """Add up what the children said, or take in the total."""
        with self._mutex:
            turn = self.hears
            round_, down = divmod(turn, 2)
            if not down:
                words = self._own(round_)[0].copy()
                for child in self.sources:
                    words += self._read_sum(round_, child, heard[child])
                self._say(turn, self._write(round_, self.index, words), {})
                return
            (blob,) = heard.values() if heard else (self._sign_total(round_),)
            words = self._read_total(round_, blob)
            after = self._combine(round_, words)
            digest = hashlib.sha256((self.disk.read_bytes(_DIGEST) or b"") + words.tobytes()).digest()
            changes: dict[str, Any] = {_HUB: encode(after), _DIGEST: digest}
            if self._is_over(round_ + 1, after):
                told = {"rounds": round_ + 1, "digest": np.frombuffer(digest, dtype="<i8").astype(np.int64)}
                changes[f"item/{self._end}"] = encode_values("End", told)
            self._say(turn, blob, changes)

    def check_item(self, name: str, blob: bytes) -> None:
        """Refuse what is neither a key nor an end."""
        if name not in self.wanted:
            raise MessageError("something goes around that is nobody's key and nobody's end.")
        decode_values(blob, _KEY if name.startswith("key-") else _END)

    def owner(self, name: str) -> int:
        """Whose key or end it is."""
        return int(name.partition("-")[2])

    def item_bytes(self, name: str) -> bytes | None:
        """What goes around under a name, if it is here and this disk is the one that goes on."""
        with self._mutex:
            if not self._party.finished:
                self._party.go_on()
            return self.disk.read_bytes(f"item/{name}")

    def model(self) -> Array:
        """The model, which every node has computed from the totals."""
        model: Array = self.plan.algorithm.model(self.plan.facts.at(self.round + 1), self._hub)
        return model

    def end(self) -> None:
        """End the run; TamperError names the peers that received other totals than this one."""
        with self._mutex:
            mine = self.disk.read_bytes(f"item/{self._end}")
            ends = {party: self.disk.read_bytes(f"item/end-{party}") for party in range(self.plan.parties)}
            others = [party for party, told in ends.items() if told is not None and told != mine]
            if others:
                raise TamperError(
                    f"sum on a graph: parties {', '.join(map(str, others))} say that they were told other totals than "
                    f"party {self.index}; a root or one of them lies, and the model is not one that all agree on."
                )
            self._party.end(encode_values("Model", {"model": np.asarray(self.model(), dtype=np.float64)}))

    # --- inside -------------------------------------------------------------------------------------------------

    @property
    def _end(self) -> str:
        return f"end-{self.index}"

    @cached_property
    def _hub_kind(self) -> type[Any]:
        return type(self.plan.algorithm.start(self.plan.facts))

    @property
    def _hub(self) -> Any:
        blob = self.disk.read_bytes(_HUB)
        assert blob is not None
        return decode(self._hub_kind, blob)

    def _read_keys(self) -> dict[int, bytes]:
        blobs = {other: self.disk.read_bytes(f"item/key-{other}") for other in self._partners}
        return {other: decode_values(blob or b"", _KEY)["key"].astype("<i8").tobytes() for other, blob in blobs.items()}

    def _down(self, round_: int) -> Any:
        down = self.plan.algorithm.down(self.plan.facts.at(round_), self._hub)
        return cut_numbers(down, largest_number(self.plan.problem))

    def _own(self, round_: int) -> tuple[Words, dict[str, tuple[float, float]]]:
        """The node's own integers of a round, with the bound and the share of each field: made once, then repeated."""
        form = self._schemas.at(round_).up
        blob = self._party.answer(round_=round_, stage=STEP, body=encode(self._down(round_)), counted=round_ - 1)
        costs = {name + end: 1.0 for name in form.terms for end in (BOUND, SHARE)}
        ones = dict.fromkeys(form.terms, (1.0, 1.0))
        size = sum(column.size for column in columns(self.plan, round_, form, ones))
        schema = RecordSchema.of_values(CONTRIBUTION, {"words": np.empty(size, dtype=np.int64), **costs})
        values = decode_values(blob, schema)
        return values["words"].view(np.uint64), {
            name: (values[name + BOUND], values[name + SHARE]) for name in form.terms
        }

    def _write(self, round_: int, party: int, words: Words) -> bytes:
        nodes = self.plan.tree(round_).sizes[party]
        told = {"round": round_, "party": party, "nodes": nodes, "words": words.view(np.int64)}
        return encode_values("Sum", told)

    def _read_sum(self, round_: int, party: int, blob: bytes) -> Words:
        """The sum over a node's subtree; MessageError where it is another's, of another round, or none."""
        own, costs = self._own(round_)
        schema = RecordSchema.of_values(
            "Sum", {"round": 0, "party": 0, "nodes": 0, "words": np.empty(own.size, dtype=np.int64)}
        )
        told, nodes = decode_values(blob, schema), self.plan.tree(round_).sizes[party]
        if (told["round"], told["party"], told["nodes"]) != (round_, party, nodes):
            raise MessageError("Sum: it is another node's, of another round, or over another number of nodes.")
        words: Words = told["words"].view(np.uint64)
        if not self._partners or nodes == self.plan.parties:
            check_range(self.plan, round_, self._schemas.at(round_).up, costs, words, nodes)
        return words

    def _sign_total(self, round_: int) -> bytes:
        blob = self.disk.read_bytes(_SAID + str(2 * round_))
        assert blob is not None
        if self._signatures is None:
            return blob
        return blob + self._signatures.sign(_total(round_), blob)

    def _read_total(self, round_: int, blob: bytes) -> Words:
        """The total of a round, as its root said it."""
        root = self.plan.tree(round_).root
        if self._signatures is not None:
            blob, signature = blob[:-SIGNATURE_BYTES], blob[-SIGNATURE_BYTES:]
            self._signatures.check(root, _total(round_), blob, signature)
        return self._read_sum(round_, root, blob)

    def _combine(self, round_: int, words: Words) -> Any:
        form = self._schemas.at(round_).up
        table = columns(self.plan, round_, form, self._own(round_)[1])
        total = form.record(**open_fields(table, words))
        return take_hub_round(self.plan.algorithm, self.plan.facts.at(round_), self._hub, lambda down: total)

    def _is_over(self, round_: int, hub: Any) -> bool:
        if round_ >= self.plan.rounds:
            return True
        algorithm = self.plan.algorithm
        return isinstance(algorithm, Finishes) and algorithm.finished(self.plan.facts.at(round_), hub)

    def _say(self, turn: int, blob: bytes, changes: dict[str, Any]) -> None:
        old = _SAID + str(turn - KEPT)
        row = {"what": "said", "exchange": turn, "bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
        self.disk.commit({**changes, _SAID + str(turn): blob, old: None, _TURN: turn + 1}, [row])


_KEY = RecordSchema.of_values("Key", {"key": np.empty(KEY_BYTES // 8, dtype=np.int64)})
_END = RecordSchema.of_values("End", {"rounds": 0, "digest": np.empty(4, dtype=np.int64)})


def _total(round_: int) -> str:
    return f"total of round {round_}"


def check_tree(plan: Plan) -> None:
    """Refuse what peers cannot sum along a tree, before anything starts."""
    if not plan.mode.on_graph:
        raise InputError(
            f"{type(plan.algorithm).__name__}: trust={plan.trust!r} is not for sums on a graph; set trust to "
            "'tree' or 'masked-sum'."
        )
    check(plan, plan.algorithm.releases)
