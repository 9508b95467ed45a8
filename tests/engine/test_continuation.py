"""A run has one live continuation: whatever engine it is, copies and older states of it send nothing."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.ipadmm import IPADMM
from consenso.engine.codec import encode, encode_values
from consenso.engine.continuation import UserTokens
from consenso.engine.ledger_charge import LedgerCharge
from consenso.engine.run import run
from consenso.engine.trace import Trace
from consenso.errors import InputError, PrivacyError
from consenso.federation.budget_guard import LedgerGuard, NoBudget
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun
from consenso.federation.node import Node
from consenso.federation.party import Party
from consenso.federation.walker import Walker
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.samplers import Safe, Seeded
from consenso.schedules import RandomWalk
from consenso.shards import Shards
from consenso.testing.laws import plan_example
from consenso.testing.worlds import draw
from consenso.topology import Topology


class KilledError(Exception):
    """The process is gone."""


def ledger_in(folder: Path, unit: Any = "party") -> Ledger:
    path = folder / "budget.ledger"
    if path.exists():
        return Ledger.open(path)
    budget = Budget(observer="public", unit=unit, adjacency="replace-one", epsilon=1e9, delta=1e-5)
    return Ledger.create(path, dataset="d", budgets=[budget])


class Engine:
    """One owner of a run, on a folder: `send` makes the next release, and keeps nothing but the folder when closed."""

    def __init__(self, made: Any, folder: Path, root: Path, data: Any = None) -> None:
        self.made, self.folder, self.root = made, folder, root
        self.data = data or draw(made.problem, np.random.default_rng(0))

    def open(self) -> None:
        """Start the process."""

    def send(self, round_: int) -> bytes:
        """What leaves in a round."""
        raise NotImplementedError

    def close(self) -> None:
        """The process is gone."""

    def guard(self) -> Any:
        if not self.made.sampler.private:
            return NoBudget(self.made)
        return LedgerGuard(self.made, LedgerCharge(ledger=ledger_in(self.root, self.made.problem.unit), run_id="r"))

    @property
    def shards(self) -> Shards:
        return Shards.from_parties(self.made.problem, self.data)

    def disk(self) -> Disk:
        return Disk(self.folder, owner="o", run="ab" * 32, fingerprint="f")


class OneProcess(Engine):
    """Everybody in this process, charged to a ledger."""

    def charge(self) -> LedgerCharge | None:
        if not self.made.sampler.private:
            return None
        return LedgerCharge(ledger=ledger_in(self.root), run_id="r")

    def send(self, round_: int) -> bytes:
        told = Trace()

        def stop(done: int, of: int) -> None:
            if done == round_ + 1:
                raise KilledError

        with contextlib.suppress(KilledError):
            options = {"checkpoint": self.folder, "progress": stop, "history": told, "trace": True}
            run(self.made, self.shards, charge=self.charge(), **options)
        return repr(told.columns).encode()


class NoLedger(OneProcess):
    """Everybody in this process, without a ledger."""

    def charge(self) -> None:
        return None


class OnDisk(Engine):
    """Engines that keep a disk open."""

    worker: Any

    def open(self) -> None:
        disk = self.disk()
        try:
            self.worker = self.make(disk)
        except BaseException:
            disk.close()
            raise

    def make(self, disk: Disk) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        self.worker.disk.close()


class OneParty(OnDisk):
    """A party around a hub."""

    def make(self, disk: Disk) -> Party:
        shards = Shards.from_parties(self.made.problem, self.data[:1], parties=[0])
        return Party(self.made, shards, 0, disk, guard=self.guard())

    def send(self, round_: int) -> bytes:
        facts = self.made.facts
        body = encode(self.made.algorithm.down(facts, self.made.algorithm.start(facts)))
        return self.worker.answer(round_=round_, stage="step", body=body, counted=round_ - 1)


class OneNode(OnDisk):
    """A neighbour on a graph."""

    def make(self, disk: Disk) -> Node:
        shards = Shards.from_parties(self.made.problem, self.data[:1], parties=[0])
        return Node(self.made, shards, 0, disk, guard=self.guard())

    def send(self, round_: int) -> bytes:
        if round_ == 0:
            self.worker.begin()
        elif self.worker.round < round_:
            own = self.worker.get_message(round_ - 1, 1)  # any message of the right form will do for the neighbours'
            self.worker.advance(dict.fromkeys(self.worker.neighbours, own))
        return self.worker.get_message(round_, 1)


class OneStop(OnDisk):
    """A party of a walk."""

    def make(self, disk: Disk) -> Walker:
        shards = Shards.from_parties(self.made.problem, self.data[1:2], parties=[1])
        return Walker(self.made, shards, 1, disk, guard=self.guard())

    def send(self, round_: int) -> bytes:
        self.worker.receive(round_, encode(self.made.algorithm.start(self.made.facts)))
        hop = self.worker.hop()
        assert hop is not None
        assert hop.number == round_ + 1
        return hop.token


class Curator(OnDisk):
    """A trusted hub, whose parties repeat their answers to whoever asks."""

    def make(self, disk: Disk) -> HubRun:
        return HubRun(self.made, disk)

    def ask(self, questions: Any, check: Any, *, partial: bool) -> dict[int, bytes]:
        found = {}
        for party, question in questions.items():
            shards = Shards.from_parties(self.made.problem, [self.data[party]], parties=[party])
            folder = self.root / f"party-{party}-{threading.get_ident()}"
            disk = Disk(folder, owner="p", run="cd" * 32, fingerprint="f")
            answering = Party(self.made, shards, party, disk, guard=Free())
            found[party] = answering.answer(round_=question.round, stage=question.stage, body=question.body, counted=-1)
            disk.close()
            shutil.rmtree(folder)
        return found

    def send(self, round_: int) -> bytes:
        rounds = self.worker.rounds(self)
        if self.worker.round <= round_:
            next(rounds)
        return self.worker.model_bytes()


class Free:
    """A ledger without a bottom."""

    charge = None

    def open(self) -> None: ...

    def close(self) -> None: ...


Make = Callable[..., Engine]


def private_engines() -> dict[str, tuple[type[Engine], Callable[[Any], Any]]]:
    ring = Topology.ring(6)
    return {
        "one process": (OneProcess, lambda sampler: plan_example(ConsensusADMM.example(), sampler=sampler)),
        "one process, walk": (
            OneProcess,
            lambda sampler: plan_example(ConsensusADMM.example(), schedule=RandomWalk(ring), sampler=sampler),
        ),
        "one process without a ledger": (
            NoLedger,
            lambda sampler: plan_example(ConsensusADMM.example(), sampler=sampler),
        ),
        "party": (OneParty, lambda sampler: plan_example(ConsensusADMM.example(), sampler=sampler)),
        "peer": (OneNode, lambda sampler: plan_example(IPADMM.example(), sampler=sampler)),
        "walk": (
            OneStop,
            lambda sampler: plan_example(ConsensusADMM.example(), schedule=RandomWalk(ring), sampler=sampler),
        ),
        "curator": (Curator, lambda sampler: plan_example(DPSGD.example(), trust="curator", sampler=sampler)),
    }


ENGINES = private_engines()
WITH_ROWS = [name for name in ENGINES if name != "curator"]


@pytest.fixture(params=ENGINES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    kind, plan_with = ENGINES[request.param]
    made = plan_with(Safe())

    def build(folder: str = "a", data: Any = None) -> Engine:
        return kind(made, tmp_path / folder, tmp_path, data)

    return build


@contextlib.contextmanager
def opened(engine: Engine) -> Iterator[Engine]:
    engine.open()
    try:
        yield engine
    finally:
        engine.close()


def send_some(engine: Engine, first: int, last: int) -> list[bytes]:
    with opened(engine):
        return [engine.send(round_) for round_ in range(first, last)]


def copied(engine: Engine, to: str) -> None:
    shutil.copytree(engine.folder, engine.folder.parent / to)


def refused(engine: Engine, round_: int) -> None:
    with pytest.raises(PrivacyError, match="went on from another copy or from a later state"), opened(engine):
        engine.send(round_)


def test_of_a_stopped_run_and_its_copies_one_goes_on(make: Make) -> None:
    send_some(make("a"), 0, 2)
    for copy in ("b", "c"):
        copied(make("a"), copy)
    send_some(make("b"), 2, 3)
    refused(make("a"), 2)
    refused(make("c"), 2)
    send_some(make("b"), 3, 4)  # what was refused has taken nothing from the one that goes on


def test_an_older_state_is_refused_beside_the_run_and_in_its_place(make: Make) -> None:
    engine = make("a")
    with opened(engine):
        engine.send(0)
        copied(engine, "old")
        engine.send(1)
        engine.send(2)
    refused(make("old"), 1)
    shutil.move(make("a").folder, make("latest").folder)
    shutil.move(make("old").folder, make("a").folder)
    refused(make("a"), 1)
    send_some(make("latest"), 3, 4)


def test_a_copy_of_a_running_run_stops_one_of_the_two_before_it_sends(make: Make) -> None:
    engine = make("a")
    with opened(engine):
        engine.send(0)
        copied(engine, "b")
        send_some(make("b"), 1, 2)
        if not isinstance(engine, OneProcess):  # in one process each `send` starts anew
            with pytest.raises(PrivacyError, match="went on from another copy"):
                engine.send(1)
            with pytest.raises(PrivacyError, match="went on from another copy"):
                engine.send(1)  # asking again does not help
    refused(make("a"), 1)


def test_of_two_copies_that_race_one_sends(make: Make) -> None:
    send_some(make("a"), 0, 1)
    copied(make("a"), "b")
    engines, sent, failed = [make("a"), make("b")], list[bytes](), list[Exception]()
    start = threading.Barrier(2)

    def work(engine: Engine) -> None:
        start.wait()
        try:
            sent.append(engine.send(1))
        except PrivacyError as error:
            failed.append(error)

    for engine in engines:
        engine.open()
    threads = [threading.Thread(target=work, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for engine in engines:
        engine.close()
    assert (len(sent), len(failed)) == (1, 1)


@pytest.mark.parametrize("make", [name for name in ENGINES if not name.startswith("one process")], indirect=True)
def test_killed_between_storing_and_sending_it_sends_what_it_stored(make: Make, monkeypatch: Any) -> None:
    """Also if the ledger has not heard of it; and the copy that was made at that moment has nothing to send."""
    send_some(make("a"), 0, 1)
    engine = make("a")
    with opened(engine), monkeypatch.context() as broken:
        _kill_before_the_second_token(broken)
        with pytest.raises(KilledError):
            engine.send(1)
        steps = [row for row in engine.worker.disk.journal() if row["what"] in ("step", "round")]
        assert [row["round"] for row in steps] == [0, 1]
    copied(engine, "b")
    (first,) = send_some(make("a"), 1, 2)
    refused(make("b"), 1)
    assert send_some(make("a"), 1, 2) == [first]
    with opened(engine := make("a")):
        again = [row for row in engine.worker.disk.journal() if row["what"] in ("step", "round")]
    assert again == steps, "noise was drawn once"


def _kill_before_the_second_token(patch: pytest.MonkeyPatch) -> None:
    """The first token is that of the start, the second that of an answer, which is stored by then."""
    calls = list[str]()
    for kind in (Ledger, UserTokens):

        def replace(self: Any, run_id: str, *, real: Any = kind.replace_token, **tokens: Any) -> None:
            calls.append(run_id)
            if len(calls) > 1:
                raise KilledError
            real(self, run_id, **tokens)

        patch.setattr(kind, "replace_token", replace)


@pytest.mark.parametrize("name", [name for name in ENGINES if name.startswith("one process")])
def test_in_one_process_no_round_that_was_begun_is_drawn_again(name, tmp_path, monkeypatch) -> None:
    kind, plan_with = ENGINES[name]
    engine = kind(plan_with(Safe()), tmp_path / "a", tmp_path)
    with monkeypatch.context() as broken:
        _kill_before_the_second_token(broken)
        with pytest.raises(KilledError):
            run(engine.made, engine.shards, charge=engine.charge(), checkpoint=engine.folder, every=3)
    copied(engine, "b")
    found = run(engine.made, engine.shards, charge=engine.charge(), checkpoint=engine.folder)
    rounds = [entry.round for entry in found.entries]
    assert sorted(set(rounds)) == list(range(engine.made.rounds))
    assert len(rounds) == len(set(rounds))
    refused(kind(engine.made, tmp_path / "b", tmp_path), engine.made.rounds)


@pytest.mark.parametrize("name", ["one process without a ledger", "curator"])
def test_without_a_ledger_a_run_goes_on_where_it_was_begun_and_not_elsewhere(name, tmp_path, monkeypatch) -> None:
    kind, plan_with = ENGINES[name]
    made = plan_with(Safe())
    send_some(kind(made, tmp_path / "a", tmp_path), 0, 1)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("CONSENSO_STATE", str(tmp_path / "another machine"))
        refused(kind(made, tmp_path / "a", tmp_path), 1)
    shutil.move(tmp_path / "a", tmp_path / "moved")
    send_some(kind(made, tmp_path / "moved", tmp_path), 1, 2)


def test_a_curator_does_not_begin_a_run_a_second_time(tmp_path) -> None:
    kind, plan_with = ENGINES["curator"]
    made = plan_with(Safe())
    send_some(kind(made, tmp_path / "a", tmp_path), 0, 1)
    refused(kind(made, tmp_path / "new", tmp_path), 0)


def test_without_a_checkpoint_the_name_of_a_charge_is_used_once(tmp_path) -> None:
    engine = OneProcess(ENGINES["one process"][1](Safe()), tmp_path / "a", tmp_path)
    run(engine.made, engine.shards, charge=engine.charge())
    with pytest.raises(PrivacyError, match="went on from another copy"):
        run(engine.made, engine.shards, charge=engine.charge())
    assert [each.state for each in ledger_in(tmp_path).runs()] == ["committed"]


def test_a_refused_copy_gives_back_nothing_of_what_the_run_has_reserved(tmp_path) -> None:
    engine = OneProcess(ENGINES["one process"][1](Safe()), tmp_path / "a", tmp_path)
    send_some(engine, 0, 1)
    copied(engine, "b")
    send_some(engine, 1, 2)
    head = ledger_in(tmp_path).head()
    refused(OneProcess(engine.made, tmp_path / "b", tmp_path), 1)
    assert ledger_in(tmp_path).head() == head
    assert [each.state for each in ledger_in(tmp_path).runs()] == ["reserved"]


def test_what_is_traced_is_shown_when_it_is_saved(tmp_path) -> None:
    """A round that is not saved may be drawn again from a copy, so nothing of it is shown."""
    engine = OneProcess(ENGINES["one process"][1](Safe()), tmp_path / "a", tmp_path)
    told, seen = Trace(), list[int]()
    run(
        engine.made,
        engine.shards,
        checkpoint=tmp_path / "a",
        every=3,
        charge=engine.charge(),
        trace=True,
        history=told,
        progress=lambda done, of: seen.append(len(told.columns.get("model movement", []))),
    )
    rounds = engine.made.rounds
    assert seen == [done - done % 3 for done in range(1, rounds + 1)]
    assert len(told.columns["model movement"]) == rounds


# --- state belongs to its rows ----------------------------------------------------------------------------------------


def changed_rows(data: Any) -> dict[str, Any]:
    """The same public facts, other rows."""
    permuted = [(rows[::-1], targets[::-1]) for rows, targets in data]
    another = [(np.array(rows, copy=True), targets) for rows, targets in data]
    for rows, _ in another:
        rows[-1] = rows[-1] / 2 + 1e-9
    flipped = [(rows, np.concatenate([-targets[:1], targets[1:]])) for rows, targets in data]
    return {"another order": permuted, "another row": another, "another target": flipped}


@pytest.mark.sweep
@pytest.mark.parametrize("change", ["another order", "another row", "another target"])
@pytest.mark.parametrize("sampler", [Seeded(3), Safe()], ids=["seeded", "safe"])
@pytest.mark.parametrize("name", WITH_ROWS)
def test_a_run_that_goes_on_with_other_rows_is_refused(name, sampler, change, tmp_path) -> None:
    kind, plan_with = ENGINES[name]
    made = plan_with(sampler)
    engine = kind(made, tmp_path / "a", tmp_path)
    send_some(engine, 0, 2)
    with (
        pytest.raises(InputError, match="begun with other rows"),
        opened(kind(made, tmp_path / "a", tmp_path, changed_rows(engine.data)[change])) as other,
    ):
        other.send(2)
    send_some(kind(made, tmp_path / "a", tmp_path), 2, 3)


def test_the_digest_of_rows_is_keyed_readable_by_its_owner_and_forgotten_with_the_state(tmp_path) -> None:
    kind, plan_with = ENGINES["party"]
    made, kept = plan_with(Seeded(3)), []
    for name in ("a", "b"):
        with opened(kind(made, tmp_path / name, tmp_path)) as engine:
            kept.append(engine.worker.disk.read_json("rows"))
            assert all(file.stat().st_mode & 0o077 == 0 for file in engine.folder.iterdir())
            if name == "b":
                model = np.zeros(made.problem.dim)
                engine.worker.end(encode_values("Model", {"model": model}))
                assert engine.worker.disk.read_json("rows") is None
    assert kept[0]["digest"] != kept[1]["digest"]
