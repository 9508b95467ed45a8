"""Misuses that must be refused: of the ledger, of masks, of the releaser. Each runs in an empty folder."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.engine.ledger_charge import LedgerCharge
from consenso.engine.run import run
from consenso.planning.plan import plan
from consenso.privacy.events import Event, Gaussian, Pure, Told, compose, repeat
from consenso.privacy.ledger import Budget, Ledger, Scope
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.secure_sum import Client, Occasion, SumServer, SumTerms
from consenso.secure_sum.messages import RosterMessage, Survivors
from consenso.testing.plans import plan_example, shards_of

PUBLIC = Scope(observer="public", unit="record", adjacency="replace-one")
COST: Event = Gaussian(std=40.0, sensitivity=1.0)


def ledger_in(folder: Path, adjacency: Any = "replace-one") -> Ledger:
    budget = Budget(observer="public", unit="record", adjacency=adjacency, epsilon=1.0, delta=1e-5)
    return Ledger.create(folder / "a.ledger", dataset="planted", budgets=[budget])


def copy_files(path: Path, target: Path) -> None:
    """A ledger as somebody would copy it."""
    for end in ("", ".head", "-wal"):
        source = path.with_name(path.name + end)
        if source.exists():
            shutil.copy(source, target.with_name(target.name + end))


def overspend(folder: Path) -> None:
    """Reserve more than is left."""
    ledger_in(folder).reserve("r", {PUBLIC: repeat(COST, 10_000)}, what="too much")


def choose_by_results(folder: Path) -> None:
    """Look at a run, then ask for another kind: with a Gaussian alternative the two make twice the delta."""
    ledger = ledger_in(folder)
    ledger.reserve("r", {PUBLIC: Gaussian(std=10.0, sensitivity=1.0)}, what="looked at")
    ledger.reserve("s", {PUBLIC: Pure(0.67)}, what="chosen by what was seen")


def tell_too_often(folder: Path) -> None:
    """Fit again and again, and let each fit look for labels: results may choose how often."""
    ledger, fit = ledger_in(folder), compose(COST, Told(0.01e-5))
    for number in range(11):
        ledger.reserve(f"r{number}", {PUBLIC: fit}, what="labels are looked for")


def spend_more_than_reserved(folder: Path) -> None:
    """Commit more than was reserved."""
    ledger = ledger_in(folder)
    ledger.reserve("r", {PUBLIC: COST}, what="little")
    ledger.commit("r", {PUBLIC: repeat(COST, 5)})


def mix_adjacencies(folder: Path) -> None:
    """Charge a replace-one run, which uses the number of records, to an add-remove budget."""
    ledger_in(folder, "add-remove").reserve("r", {PUBLIC: COST}, what="another adjacency")


def resume_a_copy(folder: Path) -> None:
    """Go on twice from one checkpoint: two answers to one question, charged once."""
    ledger = ledger_in(folder)
    ledger.reserve("r", {PUBLIC: COST}, what="a run")
    ledger.replace_token("r", before=None, now="begun")
    ledger.replace_token("r", before="begun", now="the first copy")
    ledger.replace_token("r", before="begun", now="the second copy")


def reserve_again_as_another(folder: Path) -> None:
    """Run something else under the name of a run that has reserved."""
    ledger = ledger_in(folder)
    ledger.reserve("r", {PUBLIC: COST}, what="a run")
    ledger.reserve("r", {PUBLIC: repeat(COST, 2)}, what="another run")


def write_on_two_hosts(folder: Path) -> None:
    """Spend one budget on two hosts, each with its copy of the ledger."""
    with _host("one"):
        ledger = ledger_in(folder)
    copy_files(ledger.path, folder / "copy.ledger")
    with _host("other"):
        Ledger.open(folder / "copy.ledger").reserve("r", {PUBLIC: COST}, what="elsewhere")


def write_to_a_copy(folder: Path) -> None:
    """Spend one budget twice on one host, in the ledger and in a copy of it."""
    ledger = ledger_in(folder)
    copy_files(ledger.path, folder / "copy.ledger")
    Ledger.open(folder / "copy.ledger").reserve("r", {PUBLIC: COST}, what="beside it")


def set_the_ledger_back(folder: Path) -> None:
    """Restore an old copy of the ledger, without its anchor file, and go on spending."""
    ledger = ledger_in(folder)
    shutil.copy(ledger.path, folder / "old")
    ledger.reserve("r", {PUBLIC: COST}, what="forgotten")
    for end in ("-wal", "-shm"):
        ledger.path.with_name(ledger.path.name + end).unlink(missing_ok=True)
    shutil.copy(folder / "old", ledger.path)
    ledger.reserve("s", {PUBLIC: COST}, what="again")


def edit_a_row(folder: Path) -> None:
    """Make a charge smaller by hand."""
    ledger = ledger_in(folder)
    ledger.reserve("r", {PUBLIC: COST}, what="a run")
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("DROP TRIGGER entries_keep")
        connection.execute("UPDATE entries SET content = replace(content, '40.0', '90.0')")
        connection.commit()
    ledger.reserve("s", {PUBLIC: COST}, what="another run")


def begin_a_deleted_ledger_anew(folder: Path) -> None:
    """Delete the ledger and make it again, with nothing spent."""
    ledger_in(folder).path.unlink()
    ledger_in(folder)


def charge_seeded_noise(folder: Path) -> None:
    """Deploy noise from a seed that others know."""
    example = DualConsensusADMM.example()
    noise = GaussianNoise(multiplier=4.0)
    sampler = Seeded(0)  # consenso: allow fixed-seed a planted fault, which is refused
    made = plan(example.problem, DualConsensusADMM(), rounds=4, noise=noise, trust="curator", sampler=sampler)
    run(made, shards_of(example), charge=LedgerCharge(ledger=ledger_in(folder), run_id="r"))


def release_what_is_not_finite(folder: Path) -> None:
    """Send NaN, which no noise hides."""

    class Diverges(ConsensusADMM):
        def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
            releaser("residual", np.full((len(facts.cohort), facts.dim), np.nan))
            raise AssertionError("NaN was released")

    from consenso.testing.plans import execute

    example = replace(ConsensusADMM.example(), algorithm=Diverges(step=0.5))
    execute(plan_example(example), shards_of(example))


def mask_twice(folder: Path) -> None:
    """Put two values under one mask: their difference is exact."""
    clients, calls, values = _mask()
    clients[1].mask(calls[1], values[1])
    clients[1].mask(calls[1], values[2])


def ask_for_two_sums(folder: Path) -> None:
    """Ask for the sum with a party and for the sum without it."""
    clients, calls, values = _mask()
    for party, call in calls.items():
        clients[party].mask(call, values[party])
    clients[0].reveal(_survivors(0, 1, 2, 3))
    clients[0].reveal(_survivors(0, 1, 2, 4))


def ask_for_a_sum_of_two(folder: Path) -> None:
    """Ask for a sum of fewer than its noise was made for."""
    clients, calls, values = _mask()
    for party, call in calls.items():
        clients[party].mask(call, values[party])
    clients[0].reveal(_survivors(0, 1))


def _mask() -> tuple[list[Client], dict[int, RosterMessage], Any]:
    terms, draw, at = SumTerms(run=bytes(32), parties=6, absent=2), random.Random(0), Occasion(round=0)
    clients, server = [Client(terms, party, entropy=draw.randbytes) for party in range(6)], SumServer(terms)
    for client in clients:
        server.greet(client.hello())
    for client in clients:
        client.meet(server.circle())
    for client in clients:
        server.take_advert(client.advertise(at))
    values = np.random.default_rng(0).integers(0, 2**64, size=(6, 5), dtype=np.uint64)
    return clients, dict(server.call(at)), values


def _survivors(*parties: int) -> Survivors:
    return Survivors(run=bytes(32), occasion=Occasion(round=0), survivors=np.array(parties, dtype=np.int64))


@contextlib.contextmanager
def _host(name: str) -> Iterator[None]:
    with mock.patch.dict("os.environ", {"CONSENSO_HOST": name}):
        yield
