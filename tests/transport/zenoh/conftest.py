"""Stars and graphs in this process: every party has its own session over mutual TLS on loopback, and its own disk."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ports import free_port

from consenso.deployment import certs
from consenso.deployment.engines import peer_kind
from consenso.deployment.sum_protocols import parts_of
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun
from consenso.federation.party import Party
from consenso.planning.plan import Plan
from consenso.secure_sum.tree_peer import TreePeer
from consenso.shards import Shards
from consenso.testing.laws import execute
from consenso.testing.worlds import draw
from consenso.transport.zenoh.graph import GraphPeer
from consenso.transport.zenoh.star import StarHub, StarParty, Stopped
from consenso.transport.zenoh.tls import Credentials

RUN = "ab" * 32


def free_address() -> str:
    return f"127.0.0.1:{free_port()}"


class Authority:
    """Issues certificates when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = certs.init(folder)

    def __call__(self, name: str) -> Credentials:
        out = self.folder.parent / f"{self.folder.name}-{name}"
        if not out.exists():
            certs.issue(self.folder, name, out=out, hosts=["127.0.0.1"])
        return Credentials.load(out, name=name)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certs") / "authority")


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "stranger")


class World:
    """The parties of a plan, and whatever is running of them."""

    def __init__(self, made: Plan, folder: Path, authority: Authority) -> None:
        self.made, self.folder, self.authority = made, folder, authority
        self.names = {party: f"p{party}" for party in range(made.parties)}
        self.data = draw(made.problem, np.random.default_rng(0))
        self.address = free_address()
        self.addresses = {party: free_address() for party in self.names}
        self.running: list[Any] = []
        self.threads: list[threading.Thread] = []
        self.errors: list[Exception] = []
        self.disks: list[Disk] = []

    def disk(self, owner: str) -> Disk:
        self.disks.append(Disk(self.folder / owner, owner=owner, run=RUN, fingerprint="f"))
        return self.disks[-1]

    def shards(self, party: int) -> Shards:
        return Shards.from_parties(self.made.problem, [self.data[party]], parties=[party])

    def local(self) -> np.ndarray:
        return execute(self.made, Shards.from_parties(self.made.problem, self.data), one_by_one=True)[0]

    def spawn(self, runnable: Any) -> Any:
        def work() -> None:
            try:
                runnable.run()
            except Stopped:
                pass
            except Exception as error:
                self.errors.append(error)

        thread = threading.Thread(target=work)
        self.running.append(runnable)
        self.threads.append(thread)
        thread.start()
        return runnable

    # --- star ---------------------------------------------------------------------------------------------------

    def hub(self, run: str = RUN, **options: Any) -> tuple[HubRun, StarHub]:
        parts = parts_of(self.made)
        star = StarHub(
            self.names, run=run, listen=self.address, credentials=self.authority("server"), limit=parts.limit, **options
        )
        self.running.append(star)
        return HubRun(self.made, self.disk("hub"), summation=parts.summation), star

    def client(self, party: int, *, run: str = RUN, **options: Any) -> StarParty:
        signatures = self.authority(self.names[party]).signatures(self.names, run)
        parts, disk = parts_of(self.made, signatures), self.disk(f"p{party}")
        told = {"contributor": parts.contributor} | options
        made = Party(self.made, self.shards(party), party, disk, **told)
        name = self.names[party]
        return self.spawn(
            StarParty(made, name, run=run, server=self.address, credentials=self.authority(name), limit=parts.limit)
        )

    # --- graph --------------------------------------------------------------------------------------------------

    def peer(self, party: int, *, run: str = RUN, kind: type[GraphPeer] = GraphPeer, **options: Any) -> GraphPeer:
        credentials, works = self.authority(self.names[party]), peer_kind(self.made)
        more = {"signatures": credentials.signatures(self.names, run)} if works is TreePeer else {}
        worker = works(self.made, self.shards(party), party, self.disk(f"p{party}"), **more)
        told = {"run": run, "credentials": credentials, "linger": 10.0} | options
        return self.spawn(kind(worker, self.names, self.addresses, **told))

    def join(self, seconds: float = 300.0) -> None:
        for thread in self.threads:
            thread.join(seconds)
            assert not thread.is_alive(), f"something did not end: {self.errors}"

    def close(self) -> None:
        for each in self.running:
            each.stop()
            if isinstance(each, StarHub):
                each.close()
        for thread in self.threads:
            thread.join(30)
        for disk in self.disks:
            disk.close()


@pytest.fixture
def world(tmp_path: Path, authority: Authority) -> Iterator[Callable[[Plan], World]]:
    """Makes worlds, and ends them."""
    logging.getLogger("consenso").setLevel(logging.CRITICAL)
    made: list[World] = []

    def make(plan: Plan) -> World:
        made.append(World(plan, tmp_path / str(len(made)), authority))
        return made[-1]

    try:
        yield make
    finally:
        for each in made:
            each.close()
        logging.getLogger("consenso").setLevel(logging.NOTSET)
