"""Several processes share one ledger, and some of them are killed: nothing is overspent and nothing spent is lost."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from consenso.privacy.accountants import epsilon
from consenso.privacy.events import Gaussian, repeat
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.ledger.costs import GAUSSIAN_SHARE

DELTA = 1e-5
# What of it several Gaussian runs have (docs/privacy.md#runs-that-are-chosen-by-results).
GAUSSIAN_DELTA = GAUSSIAN_SHARE * DELTA
EVENT = Gaussian(std=40.0, sensitivity=1.0)

# Imports once and forks eight racers, which all have one run before the race.
RACE = """
import multiprocessing, sys
from consenso.errors import BudgetError
from consenso.privacy.events import Gaussian
from consenso.privacy.ledger import Ledger, Scope

def race(racer):
    ledger = Ledger.open(sys.argv[1])
    scope = Scope(observer="public", unit="record", adjacency="replace-one")
    for number in range(1000):
        if number <= 1:
            everybody.wait(300)
        try:
            ledger.reserve(f"{racer}-{number}", {scope: Gaussian(std=40.0, sensitivity=1.0)}, what="race")
        except BudgetError as refused:
            assert "is left" in str(refused), refused
            break
        if number % 2:
            ledger.commit(f"{racer}-{number}")
    accepted[racer] = number

processes = multiprocessing.get_context("fork")
everybody, accepted = processes.Barrier(8), processes.Array("i", 8)
racers = [processes.Process(target=race, args=(racer,)) for racer in range(8)]
for racer in racers:
    racer.start()
for racer in racers:
    racer.join()
print(*accepted)
print(*(racer.exitcode for racer in racers))
"""

# Imports once and forks a worker for each line it reads, so that a kill costs milliseconds. A worker reserves and
# commits without end and reports what the ledger has acknowledged.
SPAWNER = """
import os, sys
from consenso.privacy.accountants import epsilon
from consenso.privacy.events import Gaussian
from consenso.privacy.ledger import Ledger, Scope

ledger = Ledger.open(sys.argv[1])
scope = Scope(observer="public", unit="record", adjacency="replace-one")
event = Gaussian(std=4000.0, sensitivity=1.0)
epsilon(event, 1e-5)
for line in sys.stdin:
    if os.fork() == 0:
        os.write(1, f"pid {os.getpid()}\\n".encode())
        number = 0
        while True:
            run = f"{line.strip()}-{number}"
            ledger.reserve(run, {scope: event}, what="to be killed")
            os.write(1, f"reserved {run}\\n".encode())
            ledger.commit(run)
            os.write(1, f"committed {run}\\n".encode())
            number += 1
    os.wait()
    os.write(1, b"dead\\n")
"""


def create(path: Path, limit: float) -> Ledger:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=limit, delta=DELTA)
    return Ledger.create(path, dataset="shared", budgets=[budget])


def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )


def send(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")


def test_eight_processes_racing_for_one_budget_never_overspend_it(tmp_path: Path) -> None:
    ledger = create(tmp_path / "l", limit=1.0)
    told = start(RACE, str(ledger.path)).communicate(timeout=600)[0]
    accepted, codes = (list(map(int, line.split())) for line in told.splitlines())
    assert codes == [0] * 8
    assert min(accepted) >= 1
    total = sum(accepted)
    (balance,) = ledger.balances()
    assert len(ledger.runs()) == total
    assert balance.spent == epsilon(repeat(EVENT, total), GAUSSIAN_DELTA)
    # The race was for one budget: it is not overspent, and used up to the last run that fits.
    assert balance.spent <= 1.0 < epsilon(repeat(EVENT, total + 1), GAUSSIAN_DELTA)
    assert ledger.verify().sound


def read_until(process: subprocess.Popen[bytes], buffer: bytearray, end: bytes, times: int = 1) -> None:
    """Collect output until `end` has been seen so many times."""
    assert process.stdout is not None
    deadline = time.monotonic() + 300.0
    while buffer.count(end) < times:
        ready, _, _ = select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0.0))
        assert ready, "a process has fallen silent"
        buffer += os.read(process.stdout.fileno(), 65536)


def test_killed_processes_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    ledger = create(tmp_path / "l", limit=50.0)
    rng = np.random.default_rng(11)
    spawner = start(SPAWNER, str(ledger.path))
    acknowledged: dict[str, str] = {}
    pinned = ledger.head().hash
    for number in range(30):
        output = bytearray()
        send(spawner, f"life-{number}")
        # After some acknowledged calls, at a random moment of the calls that follow.
        read_until(spawner, output, b"ed ", times=int(rng.integers(1, 7)))
        time.sleep(float(rng.uniform(0.0, 0.02)))
        os.kill(int(output.split()[1]), signal.SIGKILL)
        read_until(spawner, output, b"dead")
        for line in output.decode().splitlines():
            verb, _, run = line.partition(" ")
            if verb in ("reserved", "committed"):
                acknowledged[run] = verb
        assert ledger.verify(pinned).sound
        pinned = ledger.head().hash
        states = {run.run_id: run.state for run in ledger.runs()}
        for run, verb in acknowledged.items():
            assert states[run] == "committed" if verb == "committed" else states[run] in ("reserved", "committed")
    assert spawner.stdin is not None
    spawner.stdin.close()
    assert spawner.wait(timeout=300) == 0
    assert spawner.stdout is not None
    spawner.stdout.close()
    # At most the one call that was under way at a kill is in the ledger without having been acknowledged.
    assert len(acknowledged) <= len(ledger.runs()) <= len(acknowledged) + 30
    assert sum(verb == "committed" for verb in acknowledged.values()) > 30
    (balance,) = ledger.balances()
    charged = repeat(Gaussian(std=4000.0, sensitivity=1.0), len(ledger.runs()))
    assert balance.spent == epsilon(charged, GAUSSIAN_DELTA)
