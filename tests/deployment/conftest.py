"""A small federation on disk: tables, schema, study, certificates, and the program itself in processes of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import forks
from tests.ports import free_port

from consenso.deployment import certs
from consenso.federation.disk import read_journal
from consenso.models import Model, load_model

SCHEMA = """
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.pressure]
kind = "numeric"
low = 50
high = 250
[columns.smoker]
kind = "binary"
categories = ["no", "yes"]
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""

PARTIES = ("ash", "birch", "cedar")
ROWS = 20


def study_text(
    *,
    kind: str = "federated",
    algorithm: str = "ConsensusADMM",
    rounds: int = 12,
    privacy: str = "multiplier = 2.0\nseed = 7",
    setting: str = "",
    parties: tuple[str, ...] = PARTIES,
) -> str:
    sizes = "\n".join(f"{name} = {ROWS}" for name in parties)
    return f"""
[data]
schema = "schema.toml"

[model]
loss = "logistic"
regularizer = {{kind = "l2", strength = 0.01}}

[privacy]
{privacy}
delta = 1e-5

[setting]
kind = "{kind}"
algorithm = "{algorithm}"
rounds = {rounds}
{setting}

[setting.parties]
{sizes}
"""


def table_text(seed: int) -> str:
    rng = np.random.default_rng(seed)
    age, pressure = rng.integers(20, 90, ROWS), rng.integers(90, 200, ROWS)
    smoker = rng.choice(["no", "yes"], ROWS)
    ill = np.where(age + 0.3 * pressure + 20 * (smoker == "yes") + rng.normal(0, 15, ROWS) > 105, "yes", "no")
    lines = [f"{a},{p},{s},{i}" for a, p, s, i in zip(age, pressure, smoker, ill, strict=True)]
    return "age,pressure,smoker,ill\n" + "\n".join(lines) + "\n"


def numbers(model: Model) -> np.ndarray:
    return model.coefficients.ravel()


@dataclass
class Federation:
    """A folder with everything that a federation needs; processes are killed when the test ends."""

    folder: Path
    port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def write(self, name: str, text: str) -> Path:
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def free_port(self) -> int:
        return free_port()

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        log = self.folder / f"{arguments[0]}-{len(self.processes)}.log"
        log.touch()
        env = os.environ | {"PYTHONUNBUFFERED": "1"}
        process: Any = forks.start(*arguments, cwd=self.folder, env=env, out=log, **options)
        process.log = log
        self.processes.append(process)
        return process  # type: ignore[no-any-return]

    def serve(self, *more: str, study: str = "study.toml", out: str = "run", **options: Any) -> subprocess.Popen[str]:
        address = ["--listen", f"127.0.0.1:{self.port}"]
        told = ["--certs", "certs/server", "--out", out, "--linger", "20", "--json", *more]
        return self.start("serve", study, *address, *told, **options)

    def join(self, party: str, *more: str, study: str = "study.toml", **options: Any) -> subprocess.Popen[str]:
        address = ["--server", f"127.0.0.1:{self.port}"]
        told = ["--party", party, "--data", f"{party}.csv", "--certs", f"certs/{party}", "--json", *more]
        return self.start("join", study, *address, *told, **options)

    def peer(self, party: str, *more: str, study: str = "study.toml", **options: Any) -> subprocess.Popen[str]:
        told = ["--name", party, "--data", f"{party}.csv", "--certs", f"certs/{party}", "--json", *more]
        return self.start("peer", study, *told, "--linger", "20", **options)

    def train(self, study: str = "study.toml") -> np.ndarray:
        """The model of the local engine, which takes its parties one by one."""
        from consenso.engine.run import run
        from consenso.study import Study
        from consenso.study.training import model_of

        loaded = Study.load(self.folder / study)
        whole = loaded.change({"data.tables": {name: f"{name}.csv" for name in loaded.parties}})
        result = run(loaded.plan(), whole.shards(), one_by_one=True)
        return numbers(model_of(loaded, result, result.card(1e-5)))

    def model(self, out: str) -> np.ndarray:
        return numbers(load_model(self.folder / out))

    def journal(self, party: str) -> list[dict[str, Any]]:
        return read_journal(self.folder / f"{party}.state")

    def wait(self, *processes: subprocess.Popen[str], seconds: float = 300.0) -> None:
        """Wait until all have ended well."""
        end = time.monotonic() + seconds
        for process in processes:
            try:
                code = process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{process.args[3:]} did not end: {self.tail(process)}") from None
            assert code == 0, f"{process.args} ended with {code}: {self.tail(process)}"

    def tail(self, process: subprocess.Popen[str]) -> str:
        return process.log.read_text()[-1500:]  # type: ignore[attr-defined]

    def until(self, process: subprocess.Popen[str], text: str, seconds: float = 300.0) -> None:
        """Wait until a process has written something."""
        end = time.monotonic() + seconds
        while text not in process.log.read_text():  # type: ignore[attr-defined]
            assert time.monotonic() < end, f"no {text!r} in: {self.tail(process)}"
            assert process.poll() is None or text in process.log.read_text(), self.tail(process)  # type: ignore[attr-defined]
            time.sleep(0.02)

    def close(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of everybody, made once."""
    folder = tmp_path_factory.mktemp("certs")
    certs.init(folder / "authority")
    for name in ("server", *PARTIES, "oak", "pine", "mallory", *(f"pine-{number}" for number in range(8))):
        certs.issue(folder / "authority", name, out=folder / name, hosts=["127.0.0.1"])
    return folder


@pytest.fixture
def federation(tmp_path: Path, authority: Path) -> Iterator[Callable[..., Federation]]:
    """Makes federations; the text of a study is made by `study_text`."""
    made: list[Federation] = []

    def make(text: str | None = None, *, parties: tuple[str, ...] = PARTIES, **changes: Any) -> Federation:
        folder = tmp_path / f"federation-{len(made)}"
        folder.mkdir()
        (folder / "certs").symlink_to(authority)
        found = Federation(folder)
        made.append(found)
        found.write("schema.toml", SCHEMA)
        found.write("study.toml", text or study_text(parties=parties, **changes))
        for seed, name in enumerate(parties):
            found.write(f"{name}.csv", table_text(seed))
        addresses = "\n".join(f'{name} = "127.0.0.1:{free_port()}"' for name in parties)
        found.write("addresses.toml", addresses + "\n")
        return found

    try:
        yield make
    finally:
        for each in made:
            each.close()
