"""What the network costs: a round of a star of processes over mutual TLS, beside the same round in one process and a
round over Flower, all in one run.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import flower_round
from benchmarks.measure import Figure, seconds
from consenso.algorithms.consensus import ConsensusADMM
from consenso.deployment import certs
from consenso.engine.in_process import InProcessRun
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun
from consenso.federation.message_schemas import HubMessageSchemas
from consenso.federation.party import Party
from consenso.federation.single_party_step import SinglePartyStep
from consenso.losses import Logistic
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.transport.flower import FlowerHub, answer_message
from consenso.transport.zenoh.star import SERVER, StarHub, StarParty
from consenso.transport.zenoh.tls import Credentials

CLIENTS, FLOATS, RECORDS, ROUNDS = 10, 10_000, 20, 40
FLOWER_CLIENTS, FLOWER_ROUNDS = 2, 3  # fewer clients are in Flower's favour: it starts a process for each message
RUN = "be" * 32


def run() -> Iterator[Figure]:
    """All figures."""
    network = yield from _star()
    yield _flower(network)
    yield _idle()


def _plan(clients: int = CLIENTS) -> Plan:
    problem = Problem(
        loss=Logistic(),
        regularizer=L2(strength=1e-3),
        features=FLOATS,
        sizes=np.full(clients, RECORDS),
        row_bound=1.0,
        unit="party",
    )
    noise = GaussianNoise(multiplier=1.0)
    return plan(problem, ConsensusADMM(), rounds=10_000, noise=noise, sampler=Seeded(0))


def _table(party: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(party)
    rows = rng.standard_normal((RECORDS, FLOATS)) / np.sqrt(FLOATS)
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0)


def client(party: int, address: str, folder: str) -> None:
    """One client, in a process of its own; it ends when its standard input does."""
    import threading

    made, place = _plan(), Path(folder)
    shards = Shards.from_parties(made.problem, [_table(party)], parties=[party])
    name = f"p{party}"
    own = Party(made, shards, party, Disk(place / f"{name}.state", owner=name, run=RUN, fingerprint="f"))
    star = StarParty(
        own,
        name,
        run=RUN,
        server=address,
        credentials=Credentials.load(place / name, name=name),
        limit=HubMessageSchemas(made).largest(),
    )

    def watch() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    star.run()


def _star() -> Generator[Figure, None, float]:
    """Seconds of a round of the star, after the figure that compares it with one process."""
    made = _plan()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place = Path(folder)
        certs.init(place / "authority")
        for name in (SERVER, *(f"p{party}" for party in range(CLIENTS))):
            certs.issue(place / "authority", name, out=place / name, hosts=["127.0.0.1"])
        address = f"127.0.0.1:{flower_round.free_port()}"
        names = {party: f"p{party}" for party in range(CLIENTS)}
        credentials = Credentials.load(place / SERVER, name=SERVER)
        limit = HubMessageSchemas(made).largest()
        star = StarHub(names, run=RUN, listen=address, credentials=credentials, limit=limit)
        stack.callback(star.close)
        for party in names:
            code = f"from benchmarks.network import client; client({party}, {address!r}, {folder!r})"
            stack.enter_context(_process([sys.executable, "-c", code]))
        hub = HubRun(made, Disk(place / "hub", owner="hub", run=RUN, fingerprint="f"))
        rounds = hub.rounds(star)
        next(rounds)  # when it is over, everybody is there
        alone, own = _in_process(made)
        network, inside, step = _turns(rounds, alone, own)
    yield Figure(
        f"a star round, {CLIENTS} clients, {FLOATS:,} floats, over in-process round and a client's own step",
        network / (inside + step),
        limit=20,
        note=f"{1e3 * network:.1f} ms over {1e3 * inside:.1f} + {1e3 * step:.1f} ms",
    )
    return network


def _flower(network: float) -> Figure:
    """The same hub, parties and disks, with Flower in between."""
    with tempfile.TemporaryDirectory() as folder:
        found = flower_round.times(Path(folder), clients=FLOWER_CLIENTS, rounds=FLOWER_ROUNDS)
    return Figure(
        f"a Flower round, {FLOWER_CLIENTS} clients only, over a star round, {CLIENTS} clients; {FLOATS:,} floats",
        min(found) / network,
        limit=100,
        at_most=False,
        note=f"{min(found):.2f} s over {1e3 * network:.1f} ms",
    )


def flower_hub(grid: Any, folder: str, rounds: int) -> None:
    """The ServerApp: times its rounds."""
    made, place = _plan(FLOWER_CLIENTS), Path(folder)
    names = {party: f"p{party}" for party in range(FLOWER_CLIENTS)}
    line = FlowerHub(grid, names, run=RUN, limit=HubMessageSchemas(made).largest(), patience=flower_round.PATIENCE)
    hub = HubRun(made, Disk(place / "hub", owner="hub", run=RUN, fingerprint="f"))
    found = flower_round.timed(hub.rounds(line), rounds)
    (place / "times.json").write_text(json.dumps(found))


def flower_party(message: Any, party: int, folder: str) -> Any:
    """The ClientApp of one party."""

    def built() -> Party:
        made, name = _plan(FLOWER_CLIENTS), f"p{party}"
        shards = Shards.from_parties(made.problem, [_table(party)], parties=[party])
        return Party(made, shards, party, Disk(Path(folder) / name, owner=name, run=RUN, fingerprint="f"))

    return answer_message(
        message, f"p{party}", run=RUN, limit=HubMessageSchemas(_plan(FLOWER_CLIENTS)).largest, party=built
    )


def _turns(rounds: Any, alone: Any, own: Any) -> tuple[float, float, float]:
    times = [(seconds(lambda: next(rounds)), seconds(alone), seconds(own)) for _ in range(ROUNDS)]
    network, inside, step = (min(column) for column in zip(*times, strict=True))
    return network, inside, step


def _in_process(made: Plan) -> tuple[Any, Any]:
    """A round of all parties in this process, and the step of one."""
    tables = [_table(party) for party in range(CLIENTS)]
    shards = Shards.from_parties(made.problem, tables)
    rounds = InProcessRun(made, shards, stride=1).rounds()
    step = SinglePartyStep(made, Shards.from_parties(made.problem, [tables[0]], parties=[0]), 0)
    down, state = made.algorithm.down(made.facts, made.algorithm.start(made.facts)), step.enroll()
    return lambda: next(rounds), lambda: step.take(0, state, {}, down)


STUDY = """
[data]
schema = "schema.toml"
[model]
loss = "logistic"
[privacy]
multiplier = 1.0
delta = 1e-5
seed = 0
[setting]
kind = "federated"
algorithm = "ConsensusADMM"
rounds = 5
[setting.parties]
a = 10
b = 10
"""
SCHEMA = """
[columns.x]
kind = "numeric"
low = 0
high = 1
[columns.y]
kind = "label"
classes = ["no", "yes"]
"""


def _idle() -> Figure:
    """`consenso serve` while nobody is there: processor time over time."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        certs.init(place / "authority")
        certs.issue(place / "authority", SERVER, out=place / SERVER, hosts=["127.0.0.1"])
        (place / "study.toml").write_text(STUDY)
        (place / "schema.toml").write_text(SCHEMA)
        told = ["--listen", f"127.0.0.1:{flower_round.free_port()}", "--certs", SERVER, "--out", "run", "--json"]
        command = [sys.executable, "-m", "consenso", "serve", "study.toml", *told]
        with _process(command, cwd=place, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            server.stdout.readline()  # it waits
            time.sleep(0.5)
            before, began = _processor(server.pid), time.perf_counter()
            time.sleep(4.0)
            share = (_processor(server.pid) - before) / (time.perf_counter() - began)
    return Figure("`consenso serve` without clients, share of a core", share, "cores", limit=0.05)


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
