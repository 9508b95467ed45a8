"""The program in processes of its own that need no second to start: forked from one that has imported everything.

Starting an interpreter and importing NumPy, SciPy and Numba costs two seconds of processor time, and tests start the
program hundreds of times. One process a test session does it once and forks whenever it is asked to. What it forks has
its own folder, environment, files and signals, calls the program's entry point, and ends as an interpreter ends. Where
processes cannot be forked they are started.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

CAN_FORK = hasattr(os, "fork") and sys.platform != "darwin"


class Forked:
    """What tests use of `subprocess.Popen`."""

    def __init__(self, forks: Forks, pid: int, arguments: Sequence[str]) -> None:
        self._forks, self.pid, self.args = forks, pid, arguments

    @property
    def returncode(self) -> int | None:
        return self._forks.ended.get(self.pid)

    def poll(self) -> int | None:
        self._forks.listen(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = 1.0 if end is None else end - time.monotonic()
            if left <= 0 and self.poll() is None:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self._forks.listen(min(1.0, max(0.0, left)))
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forks:
    """Starts programs and hears of their ends."""

    def __init__(self) -> None:
        self.ended: dict[int, int] = {}
        self._lock = threading.RLock()
        self._socket: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def start(
        self,
        *arguments: str,
        cwd: Path | None,
        env: Mapping[str, str],
        out: Path,
        err: Path | None = None,
        typed: Path | None = None,
        largest_file: int | None = None,
        script: str | None = None,
    ) -> Any:
        """`consenso ARGUMENTS`, which writes to the files `out` and `err` (to `out` as well if there is none).

        largest_file: bytes after which the disk is full for it. script: text of a Python program to run instead.
        """
        interpreted = ["-m", "consenso", *arguments] if script is None else ["-c", script, *arguments]
        if not CAN_FORK:
            with out.open("w") as written, open(err or os.devnull, "w") as wrong, open(typed or os.devnull) as given:
                return subprocess.Popen(
                    [sys.executable, *interpreted],
                    cwd=cwd,
                    env=dict(env),
                    stdin=given,
                    stdout=written,
                    stderr=wrong if err else subprocess.STDOUT,
                    preexec_fn=None if largest_file is None else partial(_limit_files, largest_file),
                )
        asked = {
            "arguments": arguments,
            "cwd": str(cwd or Path.cwd()),
            "env": dict(env),
            "files": [str(typed or os.devnull), str(out), None if err is None else str(err)],
            "largest_file": largest_file,
            "script": script,
        }
        with self._lock:
            connection = self._connect()
            connection.sendall(json.dumps(asked).encode() + b"\n")
            pid = None
            while pid is None:
                pid = self._hear()
        return Forked(self, pid, [sys.executable, *interpreted])

    def run(
        self, *arguments: object, cwd: Path | None = None, env: Mapping[str, str | None] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Wait for the end, and tell what was written.

        env: what differs from this process, None for what is not there. typed: what is typed in.
        """
        with tempfile.TemporaryDirectory() as name:
            given, out, err = (Path(name) / each for each in ("in", "out", "err"))
            given.write_text(options.pop("typed", ""), encoding="utf-8")
            changed = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1", **(env or {})}
            kept = {name: value for name, value in changed.items() if value is not None}
            told = {"cwd": cwd, "env": kept, "out": out, "err": err, "typed": given}
            process = self.start(*map(str, arguments), **told, **options)
            try:
                code = process.wait(400)
            finally:
                process.kill()
            written = [each.read_text(encoding="utf-8") for each in (out, err)]
        return subprocess.CompletedProcess(process.args, code, *written)

    def type_in(self, line: str, cwd: Path) -> None:
        """Run a line of a page, which must succeed: the program without a shell, whatever else is in it with one."""
        if line.startswith("consenso ") and not set(line) & set("|&;<>$*`\n"):
            done = self.run(*shlex.split(line)[1:], cwd=cwd)
        else:
            env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
            done = subprocess.run(line, shell=True, cwd=cwd, env=env, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"

    def listen(self, seconds: float) -> None:
        """Take in all ends that are known, waiting for the first of them."""
        with self._lock:
            connection = self._connect()
            while select.select([connection], [], [], seconds)[0]:
                self._hear()
                seconds = 0.0

    def close(self) -> None:
        """Let the server end."""
        if self._server is not None and self._socket is not None:
            self._socket.close()
            self._server.wait()

    def _connect(self) -> socket.socket:
        if self._socket is None:
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            command = [sys.executable, "-P", __file__, str(theirs.fileno())]
            self._server = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            theirs.close()
        return self._socket

    def _hear(self) -> int | None:
        """One message: the number of a process that was started, or None for the end of one."""
        assert self._socket is not None
        said = json.loads(self._socket.recv(4096) or b'{"started": -1}')
        if "ended" in said:
            self.ended[said["ended"]] = said["code"]
            return None
        assert said["started"] > 0, "the process that forks has died"
        self.ended.pop(said["started"], None)  # of an earlier process that had this number
        return int(said["started"])


FORKS = Forks()
atexit.register(FORKS.close)
start, run, type_in = FORKS.start, FORKS.run, FORKS.type_in


# What commands import when they come to it, a second for each that trains. Not Polars: it starts threads, which a
# process that is forked would not have.
LATE = ("networkx", "pandas", "rich.markdown", "rich.progress", "scipy.signal", "scipy.stats", "sklearn.metrics")


def _import_everything() -> None:
    """What most commands use, compiled loops included."""
    import importlib

    from consenso import registry
    from consenso.algorithms.consensus import ConsensusADMM
    from consenso.testing.plans import execute, plan_example, shards_of

    for room in ("cli", "deployment.join", "deployment.serve", "deployment.peer", "report", "study.training"):
        importlib.import_module(f"consenso.{room}")
    for command in sorted(Path(importlib.import_module("consenso.cli").__file__ or "").parent.glob("[a-z]*.py")):
        importlib.import_module(f"consenso.cli.{command.stem}")
    for family in registry.FAMILIES:
        registry.kinds(family)
    for late in LATE:
        importlib.import_module(late)
    example = ConsensusADMM.example()
    execute(plan_example(example), shards_of(example), one_by_one=True)


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for every request. Returns in the forked process, with the request; and at the end of the session."""
    woken, wake = socket.socketpair()
    woken.setblocking(False)
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    while True:
        ready, _, _ = select.select([connection, woken], [], [])
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                woken.recv(4096)
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    code = os.waitstatus_to_exitcode(ended[1])
                    connection.sendall(json.dumps({"ended": ended[0], "code": code}).encode())
        if connection in ready:
            text = connection.recv(1 << 20)
            if not text:
                return None
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for each in (connection, woken, wake):
                    each.close()
                return dict(json.loads(text))
            connection.sendall(json.dumps({"started": pid}).encode())


def _limit_files(largest: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))


def _become(asked: dict[str, Any]) -> None:
    """Take the folder, environment, files and arguments of a request."""
    given, out, err = asked["files"]
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    written = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(given, os.O_RDONLY), 0)
    os.dup2(written, 1)
    os.dup2(written if err is None else os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["consenso", *asked["arguments"]]
    if asked["largest_file"] is not None:
        _limit_files(asked["largest_file"])


if __name__ == "__main__":
    _import_everything()
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        _become(request)
        if request["script"] is not None:
            exec(compile(request["script"], "<string>", "exec"), {"__name__": "__main__"})
        else:
            from consenso.cli import main

            main()
