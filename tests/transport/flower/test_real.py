"""A SuperLink, SuperNodes and `flwr run`, as an organisation starts them, on loopback.

One run has it all, since Flower takes its time: a node is killed and started again, and the model is the same as ever.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from tests.ports import free_port

from consenso.deployment.flower import build
from consenso.engine.run import run
from consenso.errors import InputError
from consenso.federation.disk import read_journal
from consenso.models import Model, load_model
from consenso.study import Study
from consenso.study.training import model_of

SCHEMA = """
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.smoker]
kind = "binary"
categories = ["no", "yes"]
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""
STUDY = """
[data]
schema = "schema.toml"
[model]
loss = "logistic"
regularizer = {kind = "l2", strength = 0.01}
intercept = true
[privacy]
multiplier = 2.0
seed = 7
delta = 1e-5
[setting]
kind = "federated"
algorithm = "ConsensusADMM"
rounds = 2
[setting.parties]
ash = 12
birch = 12
"""
PARTIES = ("ash", "birch")
# Seconds that a message lives: longer than a live node takes on any machine. Flower itself notices within a minute that
# a node is dead; that an answer was lost, which it gives up on a busy machine, is noticed when the message expires.
PATIENCE = 120.0
LIMIT = 3600.0  # seconds after which a test that waits has failed
BIN = Path(sys.executable).parent


def table(seed: int) -> str:
    rng = np.random.default_rng(seed)
    age, smoker = rng.integers(20, 90, 12), rng.choice(["no", "yes"], 12)
    ill = np.where(age + 20 * (smoker == "yes") + rng.normal(0, 15, 12) > 65, "yes", "no")
    return "age,smoker,ill\n" + "".join(f"{a},{s},{i}\n" for a, s, i in zip(age, smoker, ill, strict=True))


def descendants(pid: int) -> set[int]:
    """Processes that a process started, and those that they started: Flower's do not share a group with it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, more = {pid}, {pid}
    while more:
        more = {child for child, parent in parents.items() if parent in more} - found
        found |= more
    return found - {pid}


@dataclass
class Flower:
    folder: Path
    port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "FLWR_HOME": str(self.folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
        }

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(BIN / arguments[0]), *arguments[1:]],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    def link(self) -> None:
        told = ("--host", "127.0.0.1", "--port", str(self.port), "--disable-runtime-dependency-installation")
        process = self.start("superlink", "flower-superlink", "--insecure", *told)
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.1)
        raise AssertionError(self.logs())

    def node(self, party: str, **changes: str) -> None:
        at = self.folder
        told = {
            "study": f"{at}/study.toml",
            "party": party,
            "data": f"{at}/{party}.csv",
            "state": f"{at}/{party}.state",
            "out": f"{at}/{party}.run",
        }
        config = " ".join(f'{name}="{value}"' for name, value in (told | changes).items())
        address = ("--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port()))
        name = f"node-{party}-{len(self.processes)}"
        self.nodes[party] = self.start(name, "flower-supernode", "--insecure", *address, "--node-config", config)

    def kill(self, party: str) -> None:
        """What a machine that loses its power does to a node and to the processes that it started."""
        node = self.nodes.pop(party)
        for pid in (node.pid, *descendants(node.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait()

    def steps(self, party: str, what: str = "step") -> list[int]:
        """The rounds that a party has in its journal so far."""
        try:
            return [row["round"] for row in read_journal(self.folder / f"{party}.state") if row["what"] == what]
        except (InputError, sqlite3.OperationalError):  # not there, or not yet filled
            return []

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not holds():
            assert time.monotonic() < end, self.logs()
            time.sleep(0.1)  # each look reads a database, for a minute or two

    def submit(self, app: Path) -> subprocess.Popen[bytes]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\ninsecure = true\n'
        )
        config = f'out="{self.folder}/run" patience={PATIENCE} linger={LIMIT}'
        return self.start("run", "flwr", "run", str(app), "here", "--stream", "--run-config", config)

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.logs()) from None
        assert code == 0, self.logs()

    def logs(self) -> str:
        return "\n".join(f"--- {file.name}\n{file.read_text()[-2000:]}" for file in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        started = {child for process in self.processes for child in descendants(process.pid)}
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        end = time.monotonic() + 15
        while time.monotonic() < end and any(alive(pid) for pid in started):
            time.sleep(0.1)
        for pid in filter(alive, started):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def flower(tmp_path: Path) -> Iterator[Flower]:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "study.toml").write_text(STUDY)
    for seed, name in enumerate(PARTIES):
        (tmp_path / f"{name}.csv").write_text(table(seed))
    at = Flower(tmp_path)
    try:
        yield at
    finally:
        at.close()
        left = [process for process in at.processes if process.poll() is None]
        assert not left


def local_model(folder: Path) -> Model:
    """What the local engine learns, taking its parties one by one."""
    study = Study.load(folder / "study.toml")
    study = study.change({"data.tables": {name: f"{name}.csv" for name in PARTIES}})
    result = run(study.plan(), study.shards(), one_by_one=True)
    return model_of(study, result, result.card(study.privacy.delta))


def same(one: Model, other: Model) -> bool:
    return np.array_equal(one.coefficients, other.coefficients) and np.array_equal(one.intercept, other.intercept)


@pytest.mark.waits
def test_a_node_is_killed_and_the_model_is_that_of_the_local_engine_bit_for_bit(flower: Flower) -> None:
    app = build(Study.load(flower.folder / "study.toml"), flower.folder / "app")
    flower.link()
    for party in PARTIES:
        flower.node(party)
    run_of_flower = flower.submit(app)
    # Its step is on its disk, and the answer may or may not be on its way.
    flower.until(lambda: flower.steps("birch") == [0])
    flower.kill("birch")
    assert run_of_flower.poll() is None
    flower.node("birch")
    flower.wait(run_of_flower)
    expected = local_model(flower.folder)
    assert (flower.folder / "run" / "model.json").exists(), flower.logs()
    assert same(load_model(flower.folder / "run"), expected)
    told = json.loads((flower.folder / "run" / "run.json").read_text())
    assert (told["rounds"], told["missing"]) == (2, {})
    for party in PARTIES:
        # Every party has the model too, and on its own disk exactly what left it: no second noise for a step.
        assert same(load_model(flower.folder / f"{party}.run"), expected)
        assert flower.steps(party) == flower.steps(party, "sent") == [0, 1]
        assert read_journal(flower.folder / f"{party}.state")[-1]["what"] == "ended"
