"""Rows in storage: a pass over Parquet files beside a plain read of them, a cluster beside one process, memory.

Run `python -m benchmarks storage`. Passes are one gradient of the default solver each. Processor time is what the two
take of a machine, whatever else it does; the clock shows what reading ahead saves where a second core is free. Memory
is that of a process of its own, which cannot have more than a tenth of the table beyond what it has when it starts: the
system refuses it, and the process fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.measure import Figure, best, processor_seconds
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.preconditioning.whitening import Slopes, Whitening, sum_gradients
from consenso.engine.run import run as run_plan
from consenso.estimators.stored import FrameBatches, TargetCoding
from consenso.losses import Logistic
from consenso.metric import Metric
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Cohort, Shards
from consenso.shards.cluster import connect, hold_rows
from consenso.shards.stored import StoredShards
from consenso.tables.frames import open_frames

ROWS, FEATURES, FILES = 1_000_000, 50, 4
LONG = 8 * ROWS
# Rows of a part of a file that is decoded at once, as writers of long tables choose it; Polars reads whole ones.
GROUP = 20_000
DECADES = (1_000, 10_000, 100_000, 1_000_000)
REPEATS, LONG_REPEATS = 4, 2

LIMITED = """
import json, resource, sys, time
from pathlib import Path
from benchmarks import storage

folder, allowed = Path(sys.argv[1]), int(sys.argv[2])
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) * 1024
for _ in range(2):  # imports, compiled kernels, threads of the reader
    storage.fit_briefly(f"{folder}/small.parquet", storage.GROUP)
    storage.read(folder, "small.parquet")
limit = status("VmData") + allowed
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    refused = bytearray(allowed + (64 << 20))
    sys.exit("the limit does not hold")
except MemoryError:
    pass
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
times, before = [], status("VmRSS")
for _ in range(storage.LONG_REPEATS):
    # Fits and reads take turns, so that a machine that is busy with other things is so for both.
    start, busy = time.perf_counter(), time.process_time()
    passes = storage.fit_briefly(f"{folder}/[0-9]*.parquet", storage.LONG)
    fitted, fitting = time.perf_counter() - start, time.process_time() - busy
    peak = status("VmHWM") - before
    start, busy = time.perf_counter(), time.process_time()
    for _ in range(passes):
        storage.read(folder)
    times.append([fitted, time.perf_counter() - start, fitting, time.process_time() - busy])
fitted, read, fitting, reading = map(min, zip(*times))
print(json.dumps({"peak": peak, "passes": passes, "clock": [fitted, read], "processor": [fitting, reading]}))
"""


def run() -> Iterator[Figure]:
    """Ratios of times, of memory, and how cost grows with rows."""
    with tempfile.TemporaryDirectory() as name:
        table = _write(Path(name), ROWS)
        yield from _compare_passes(Path(name), table)
        yield from _fit_within_a_limit(Path(name))
    yield from _grow()


def _compare_passes(folder: Path, table: pl.DataFrame) -> Iterator[Figure]:
    """A pass beside a plain read, beside one in memory, and on two processes beside one."""
    shards = _open(f"{folder}/[0-9].parquet", ROWS)
    in_memory = _in_memory(table)
    calls = (lambda: _pass(shards.cohort()), lambda: read(folder, "[0-9].parquet"), lambda: _pass(in_memory))
    stored, plain, here = best(*calls, repeats=REPEATS, measure=processor_seconds)
    yield Figure("processor time of a pass over files, over reading them", stored / plain, limit=1.3)
    yield Figure("processor time of a pass over files, over one in memory", stored / here)
    stored, plain, _ = best(*calls, repeats=REPEATS)
    yield Figure("pass over files, over reading them, by the clock", stored / plain, limit=1.3)
    with connect(None) as client:
        held = hold_rows(client, shards.problem, shards.whole.batches)
        spread, here = best(lambda: _pass(held.cohort()), lambda: _pass(in_memory), repeats=REPEATS)
    yield Figure("cluster of two processes, over one process, by the clock", spread / here, limit=1.5)


def _grow() -> Iterator[Figure]:
    times = []
    for rows in DECADES:
        with tempfile.TemporaryDirectory() as name:
            _write(Path(name), rows)
            small = _open(f"{name}/[0-9].parquet", rows)
            times += best(lambda small=small: _pass(small.cohort()), repeats=REPEATS, measure=processor_seconds)
    # The steepest part of a curve on logarithmic axes.
    slope = float(np.max(np.diff(np.log(times)) / np.diff(np.log(DECADES))))
    yield Figure(f"growth of a pass with rows, {DECADES[0]} to {DECADES[-1]}", slope, unit="exponent", limit=1.1)


def _fit_within_a_limit(folder: Path) -> Iterator[Figure]:
    """A table ten times the memory that a process may use beside what it starts with."""
    for part in range(FILES, LONG * FILES // ROWS):
        os.link(folder / f"{part % FILES}.parquet", folder / f"{part}.parquet")
    size = 8 * LONG * FEATURES
    asked = [sys.executable, "-c", LIMITED, str(folder), str(size // 10)]
    found = json.loads(subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout)
    note = f"{found['peak'] / 2**20:.0f} MB of a table of {size / 2**20:.0f} MB; {size / 10 / 2**20:.0f} MB are allowed"
    yield Figure("memory of a fit beyond its start, over the table", found["peak"] / size, limit=0.1, note=note)
    for kind in ("processor", "clock"):
        fitted, read = found[kind]
        name = f"a fit with a tenth of the table as memory, over reading it as often, by the {kind}"
        yield Figure(name, fitted / read, limit=1.3, note=f"{found['passes']} times, {fitted:.0f} s")


def fit_briefly(pattern: str, rows: int) -> int:
    """The shortest run that the default solver makes: a look at the second moment, and its fewest steps.

    How often rows were read. Later passes are cheaper than the first two, so that longer runs are closer to reading.
    """
    seen: list[int] = []
    shards = _open(pattern, rows, seen.append)
    noise = {name: GaussianNoise(multiplier=1.0) for name in ("second moment", "gradient")}
    algorithm = PreconditionedFixedPoint(steps=PreconditionedFixedPoint.fewest_steps)
    rounds = algorithm.other_rounds + PreconditionedFixedPoint.fewest_steps
    run_plan(plan(shards.problem, algorithm, rounds=rounds, noise=noise, sampler=Seeded(0), trust="curator"), shards)
    return round(sum(seen) / rows)


def _write(folder: Path, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    columns = {f"x{place}": rng.normal(size=rows) for place in range(FEATURES)}
    table = pl.DataFrame({**columns, "y": rng.integers(0, 2, rows)})
    for part in range(FILES):
        chosen = table[part * rows // FILES : (part + 1) * rows // FILES]
        chosen.write_parquet(folder / f"{part}.parquet", row_group_size=GROUP)
    table[:GROUP].write_parquet(folder / "small.parquet", row_group_size=GROUP)
    return table


def _problem(rows: int) -> Problem:
    return Problem(
        loss=Logistic(), regularizer=L2(strength=1e-3), features=FEATURES, sizes=np.array([rows]), row_bound=10.0
    )


def _open(pattern: str, rows: int, watch: Callable[[int], None] | None = None) -> StoredShards:
    frames = open_frames(pattern)
    names = tuple(name for name in frames.names if name != "y")
    coding = TargetCoding("benchmark", np.array([0, 1]))
    return StoredShards.open(_problem(rows), FrameBatches(frames, names, "y", coding), watch=watch)


def _in_memory(table: pl.DataFrame) -> Cohort:
    targets = np.where(table["y"].to_numpy() == 1, 1.0, -1.0)
    X = np.ascontiguousarray(table.drop("y").to_numpy())
    return Shards.build(_problem(ROWS), X, targets, np.array([0, ROWS])).cohort()


def _pass(rows: Cohort) -> object:
    whitening = Whitening(Metric.round(1.0), 5.0, "round")
    return sum_gradients(rows, np.full(FEATURES, 0.01), Slopes(0.0, 1.0), whitening)


def read(folder: Path, pattern: str = "[0-9]*.parquet") -> int:
    """A plain read: every batch decoded and made rows of numbers."""
    frames = open_frames(str(folder / pattern))
    names = [name for name in frames.names if name != "y"]
    return sum(frame[names].to_numpy(order="c").shape[0] for frame in frames)
