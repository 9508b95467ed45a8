"""Rounds of a hub and its parties over Flower: a SuperLink and a SuperNode for each party, as processes on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
PATIENCE = 300.0  # seconds that a message lives; nobody is expected to be lost

PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "round"
version = "1.0.0"
description = "Rounds to be timed"
license = "Apache-2.0"
dependencies = []
[tool.hatch.build.targets.wheel]
packages = ["round_app"]
[tool.flwr.app]
publisher = "consenso"
[tool.flwr.app.components]
serverapp = "round_app.server_app:app"
clientapp = "round_app.client_app:app"
[tool.flwr.app.config]
folder = ""
rounds = 1
"""
SERVER_APP = """from flwr.serverapp import ServerApp
from benchmarks.network import flower_hub
app = ServerApp()
@app.main()
def main(grid, context):
    flower_hub(grid, context.run_config["folder"], context.run_config["rounds"])
"""
CLIENT_APP = """from flwr.clientapp import ClientApp
from benchmarks.network import flower_party
app = ClientApp()
@app.train()
def train(message, context):
    return flower_party(message, context.node_config["party"], context.node_config["folder"])
@app.query()
def query(message, context):
    return flower_party(message, context.node_config["party"], context.node_config["folder"])
"""


def times(folder: Path, *, clients: int, rounds: int) -> list[float]:
    """Seconds of each round; the first, in which nodes are still starting, is not among them."""
    app = folder / "round-app"
    (app / "round_app").mkdir(parents=True)
    for name, text in {
        "pyproject.toml": PYPROJECT,
        "round_app/__init__.py": "",
        "round_app/server_app.py": SERVER_APP,
        "round_app/client_app.py": CLIENT_APP,
    }.items():
        (app / name).write_text(text)
    port = free_port()
    home = folder / "home"
    home.mkdir()
    told = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    (home / "config.toml").write_text(told)
    with contextlib.ExitStack() as stack:
        address = ("--host", "127.0.0.1", "--port", str(port))
        offline = "--disable-runtime-dependency-installation"
        stack.enter_context(_process(folder, "flower-superlink", "--insecure", *address, offline))
        _listening(port)
        for party in range(clients):
            config = f'party={party} folder="{folder}"'
            link = ("--superlink", f"127.0.0.1:{port}", "--port", str(free_port()))
            stack.enter_context(_process(folder, "flower-supernode", "--insecure", *link, "--node-config", config))
        config = f'folder="{folder}" rounds={rounds + 1}'
        command = ("flwr", "run", str(app), "here", "--stream", "--run-config", config)
        with _process(folder, *command) as run:
            run.wait(1800)
    found: list[float] = json.loads((folder / "times.json").read_text())
    return found[1:]


def _listening(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise TimeoutError("the SuperLink does not listen")


@contextlib.contextmanager
def _process(folder: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {
        "FLWR_HOME": str(folder / "home"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{Path(__file__).parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    with (folder / f"{command[0]}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(BIN / command[0]), *command[1:]], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        started = _descendants(process.pid)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> set[int]:
    """What a process started, and what that started: Flower's processes do not share a group."""
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


def free_port() -> int:
    """A port that nobody listens on."""
    with contextlib.closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def timed(rounds: Iterator[Any], count: int) -> list[float]:
    """Seconds of as many rounds."""
    found = []
    for _ in range(count):
        start = time.perf_counter()
        next(rounds)
        found.append(time.perf_counter() - start)
    return found
