"""The life of one node of a graph: says something to its neighbours in every round, hears them, goes on.

What a node says in a round is on its disk, with the state and the journal that belong to it, and its ledger knows that
this disk is the one that goes on, before anybody can ask for it. A neighbour is at most one round ahead or behind, so
the last two messages are kept; a restarted node hears its neighbours again and goes on at its round.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.engine.codec import MessageError, RecordSchema, decode, decode_values, encode, encode_values
from consenso.errors import InputError
from consenso.federation.budget_guard import BudgetGuard, NoBudget, go_on_with
from consenso.federation.disk import Disk, bind_disk
from consenso.federation.message_schemas import PeerMessageSchemas
from consenso.federation.node_round import take_node_round
from consenso.federation.party import NEVER
from consenso.federation.ranges import check_numbers, cut_numbers, largest_number
from consenso.federation.single_party_step import SinglePartyStep
from consenso.planning.plan import Plan
from consenso.shards import Shards


class Node:
    """One node. `begin` it, then `advance` it round by round with what its neighbours said."""

    def __init__(self, plan: Plan, shards: Shards, party: int, disk: Disk, *, guard: BudgetGuard | None = None) -> None:
        check_graph(plan)
        assert plan.topology is not None
        self.plan, self.index, self.disk = plan, party, disk
        self.neighbours = tuple(int(other) for other in plan.topology.neighbors(party))
        self._step = SinglePartyStep(plan, shards, party)
        self._guard = guard or NoBudget(plan)
        self._live = go_on_with(disk, self._guard)
        bind_disk(disk, self._step.cohort)
        self._schemas = PeerMessageSchemas(plan)
        self._mutex = threading.RLock()

    @property
    def round(self) -> int:
        """The last round in which the node said something; -1 before the first."""
        return int(self._place["round"])

    @property
    def exchanges(self) -> int:
        return self.plan.rounds

    @property
    def hears(self) -> int:
        """The exchange that the node waits for: that of the round in which it said something last."""
        return self.round

    @property
    def says(self) -> int:
        """The last exchange in which it said something."""
        return self.round

    @property
    def sources(self) -> tuple[int, ...]:
        return self.neighbours

    @property
    def ready(self) -> bool:
        """Nothing else is needed."""
        return True

    @property
    def done(self) -> bool:
        """Whether every round is over for this node."""
        return self.disk.read_bytes(f"item/{self.item}") is not None

    @property
    def item(self) -> str:
        """The name under which this node's model goes around."""
        return f"model-{self.index}"

    @property
    def wanted(self) -> tuple[str, ...]:
        """What everybody must have in the end: the models of all nodes, whose mean is the model."""
        return tuple(f"model-{party}" for party in range(self.plan.parties))

    def largest(self) -> int:
        """Bytes of the longest message."""
        return self._schemas.largest()

    def begin(self) -> None:
        """Say something in the first round, unless that is done."""
        with self._mutex:
            self._live.go_on()
            if self.round != NEVER:
                return
            self._guard.open()
            self._say(0, self._step.enroll(), {})

    def get_message(self, round_: int, other: int) -> bytes | None:
        """What was said in a round, the same to all; None if that is still to come."""
        with self._mutex:
            if round_ > self.round:
                return None
            self._live.go_on()
            blob = self.disk.read_bytes(f"said/{round_}")
        if blob is None:
            raise MessageError(f"round {round_} is long over for this node.")
        return blob

    def check(self, round_: int, other: int, blob: bytes) -> None:
        """Refuse what a neighbour cannot have said."""
        forms = self._schemas.at(round_)
        check_numbers(decode(forms.record, blob, forms.said), largest_number(self.plan.problem))

    def advance(self, heard: Mapping[int, bytes]) -> None:
        """Take in what the neighbours said in this round, and say something in the next, or have a model."""
        with self._mutex:
            round_, place = self.round, self._place
            forms, facts = self._schemas.at(round_), self._step.facts(round_)
            own, state = self.get_message(round_, self.index), self.disk.read_bytes("state")
            assert own is not None
            assert state is not None
            said = {party: decode(forms.record, blob, forms.said) for party, blob in {**heard, self.index: own}.items()}
            after = take_node_round(self.plan, facts, decode(self._step.state_kind, state), said)
            if round_ + 1 < self.plan.rounds:
                self._guard.open()
                self._say(round_ + 1, after, place["spent"])
                return
            model = self.plan.algorithm.models(self._step.facts(round_ + 1), after)[0]
            self._live.commit({f"item/{self.item}": encode_values("Model", {"model": model})}, [{"what": "model"}])

    def check_item(self, name: str, blob: bytes) -> None:
        """Refuse what is nobody's model."""
        if name not in self.wanted:
            raise MessageError("something goes around that is nobody's model.")
        decode_values(blob, self._model_schema)

    def owner(self, name: str) -> int:
        """Whose model it is."""
        return self.wanted.index(name)

    def item_bytes(self, name: str) -> bytes | None:
        """What goes around under a name, if it is here and this disk is the one that goes on."""
        with self._mutex:
            self._live.go_on()
            return self.disk.read_bytes(f"item/{name}")

    def model(self) -> Array:
        """The mean of all nodes' models, once they are here."""
        blobs = [self.item_bytes(name) for name in self.wanted]
        models = [decode_values(blob, self._model_schema)["model"] for blob in blobs if blob is not None]
        mean: Array = np.stack(models).mean(axis=0)
        return mean

    def end(self) -> None:
        """The run has ended."""
        self._guard.open()
        self._guard.close()

    @property
    def _model_schema(self) -> RecordSchema:
        return self._schemas.at(self.plan.rounds - 1).model

    @property
    def _place(self) -> dict[str, Any]:
        place: dict[str, Any] = self.disk.read_json("place") or {"round": NEVER, "spent": {}}
        return place

    def _say(self, round_: int, state: Any, spent: dict[str, Any]) -> None:
        taken = self._step.take(round_, state, spent)
        message = encode(cut_numbers(taken.message, largest_number(self.plan.problem)))
        if RecordSchema.of(taken.message) != self._schemas.at(round_).said:
            raise InputError("the step made another message than public facts tell; report this.")
        changes: dict[str, Any] = {
            f"said/{round_}": message,
            f"said/{round_ - 2}": None,
            "state": encode(taken.state),
            "place": {"round": round_, "spent": taken.spent},
        }
        self._live.commit(changes, [{"what": "step", "round": round_, "releases": list(taken.releases)}])


def check_graph(plan: Plan) -> None:
    """Refuse what neighbours on a graph cannot run, before anything starts."""
    name = type(plan.algorithm).__name__
    if plan.shape != "peer" or plan.topology is None:
        raise InputError(f"{name}: it has a hub; run it with `consenso serve` and `consenso join`.")
    if not plan.mode.noise_on_messages:
        raise InputError(f"{name}: nobody on a graph adds noise for others; set trust to 'local'.")
