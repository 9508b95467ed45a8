"""What it costs to have no server: a round of masked sums along a tree of peers over mutual TLS, beside a star round
with as many clients and local noise, all in processes of their own.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import flower_round
from benchmarks.measure import Figure, seconds
from benchmarks.network import RUN, _process
from consenso.algorithms.dp_sgd import DPSGD
from consenso.deployment import certs
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun
from consenso.federation.message_schemas import HubMessageSchemas
from consenso.federation.party import Party
from consenso.losses import Logistic
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.secure_sum.tree_peer import TreePeer
from consenso.shards import Shards
from consenso.topology import Topology
from consenso.transport.zenoh.graph import GraphPeer
from consenso.transport.zenoh.star import SERVER, StarHub, StarParty
from consenso.transport.zenoh.tls import Credentials
from consenso.trust import Trust

PEERS, FLOATS, RECORDS, ROUNDS, DEGREE = (10, 30), 1000, 20, 15, 4
PER_LEVEL = 3  # a tree round may take so many star rounds for each level of the tree


def run() -> Iterator[Figure]:
    """All figures."""
    for count in PEERS:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            certs.init(place / "authority")
            for name in (SERVER, *(f"p{party}" for party in range(count))):
                certs.issue(place / "authority", name, out=place / name, hosts=["127.0.0.1"])
            star = _time_star(count, place)
            tree, messages, size = _time_tree(count, place)
        depth = make_plan(count, "masked-sum").tree(0).depth
        yield Figure(
            f"a masked round, {count} peers, {FLOATS:,} floats, depth {depth}, over a star round with as many clients",
            tree / star,
            limit=PER_LEVEL * depth,
            note=f"{1e3 * tree:.0f} ms over {1e3 * star:.0f} ms",
        )
        yield Figure(f"messages of a node and round, {count} peers, mean", messages, "messages")
        yield Figure(f"bytes that a node sends in a round, {count} peers, mean", size, "bytes")


def make_plan(count: int, trust: Trust) -> Plan:
    """The same problem for both."""
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=1e-3), features=FLOATS, sizes=np.full(count, RECORDS), row_bound=1.0
    )
    graph = trust == "masked-sum"
    return plan(
        problem,
        DPSGD(step=1.0, clip=0.5),
        rounds=ROUNDS,
        noise=GaussianNoise(multiplier=1.0),
        sampler=Seeded(0),
        trust=trust,
        topology=Topology.random_regular(count, DEGREE, seed=0) if graph else None,
        colluders=1 if graph else 0,
    )


def client(party: int, count: int, address: str, folder: str) -> None:
    """One client of the star, until its standard input ends."""
    made, place, name = make_plan(count, "local"), Path(folder), f"p{party}"
    own = Party(made, _shards(made, party), party, Disk(place / f"{name}.s", owner=name, run=RUN, fingerprint="f"))
    credentials, limit = Credentials.load(place / name, name=name), HubMessageSchemas(made).largest()
    _end_with_input()
    StarParty(own, name, run=RUN, server=address, credentials=credentials, limit=limit).run()


def peer(party: int, count: int, ports: list[int], folder: str) -> None:
    """One peer of the tree; it writes down when each of its exchanges ended."""
    made, place = make_plan(count, "masked-sum"), Path(folder)
    names = {other: f"p{other}" for other in range(count)}
    credentials = Credentials.load(place / names[party], name=names[party])
    disk = Disk(place / f"{names[party]}.t", owner=names[party], run=RUN, fingerprint="f")
    worker = TreePeer(made, _shards(made, party), party, disk, signatures=credentials.signatures(names, RUN))
    addresses = {other: f"127.0.0.1:{port}" for other, port in enumerate(ports)}
    ends: list[float] = []
    own = GraphPeer(
        worker,
        names,
        addresses,
        run=RUN,
        credentials=credentials,
        advanced=lambda: ends.append(time.monotonic()),
    )
    _end_with_input()
    own.run()
    said = [row["bytes"] for row in disk.journal() if row["what"] == "said"]
    (place / f"{names[party]}.json").write_text(json.dumps({"ends": ends, "said": said}))


def _shards(made: Plan, party: int) -> Shards:
    rng = np.random.default_rng(party)
    rows = rng.standard_normal((RECORDS, FLOATS)) / np.sqrt(FLOATS)
    return Shards.from_parties(made.problem, [(rows, np.where(rows[:, 0] > 0, 1.0, -1.0))], parties=[party])


def _end_with_input() -> None:
    def watch() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _time_star(count: int, place: Path) -> float:
    made, names = make_plan(count, "local"), {party: f"p{party}" for party in range(count)}
    address = f"127.0.0.1:{flower_round.free_port()}"
    with contextlib.ExitStack() as stack:
        credentials, limit = Credentials.load(place / SERVER, name=SERVER), HubMessageSchemas(made).largest()
        star = StarHub(names, run=RUN, listen=address, credentials=credentials, limit=limit)
        stack.callback(star.close)
        for party in names:
            code = f"from benchmarks.graph_sum import client; client({party}, {count}, {address!r}, {str(place)!r})"
            stack.enter_context(_process([sys.executable, "-c", code]))
        rounds: Any = HubRun(made, Disk(place / "hub", owner="hub", run=RUN, fingerprint="f")).rounds(star)
        next(rounds)  # when it is over, everybody is there
        return min(seconds(lambda: next(rounds)) for _ in range(ROUNDS - 1))


def _time_tree(count: int, place: Path) -> tuple[float, float, float]:
    """Seconds of a round, messages and bytes that a node sends in one."""
    ports = [flower_round.free_port() for _ in range(count)]
    with contextlib.ExitStack() as stack:
        running = []
        for party in range(count):
            code = f"from benchmarks.graph_sum import peer; peer({party}, {count}, {ports!r}, {str(place)!r})"
            running.append(stack.enter_context(_process([sys.executable, "-c", code])))
        for process in running:
            process.wait()
        told = [json.loads((place / f"p{party}.json").read_text()) for party in range(count)]
    made = make_plan(count, "masked-sum")
    tree = made.tree(0)
    ends = told[tree.root]["ends"][2::2]  # the root has a total at every second one, after the first of all
    best = min(later - earlier for earlier, later in itertools.pairwise(ends))
    copies = [len(children) for children in tree.children]
    sent = [
        (node != tree.root) * np.mean(each["said"][0::2]) + copies[node] * np.mean(each["said"][1::2])
        for node, each in enumerate(told)
    ]
    return best, 2 * (count - 1) / count, float(np.mean(sent))
