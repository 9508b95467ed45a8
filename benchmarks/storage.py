"""Rows in storage: a pass over Parquet files beside a plain read of them, a cluster beside one process, memory.

Run `python -m benchmarks storage`. Times are of one gradient pass of the default solver. The memory figure is the peak
of a process of its own that fits a table ten times as large as what it may use beyond its imports.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.measure import Figure, best
from consenso.algorithms.whitening import Slopes, Whitening, sum_gradients
from consenso.estimators.stored import FrameBatches, TargetCoding
from consenso.losses import Logistic
from consenso.metric import Metric
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Cohort, Shards
from consenso.shards.cluster import connect, hold_rows
from consenso.shards.stored import StoredShards
from consenso.tables.frames import open_frames

ROWS, FEATURES, FILES = 1_000_000, 50, 4
DECADES = (10_000, 100_000, 1_000_000)

MEMORY = """
import resource, sys
import numpy as np
import consenso.engine.run, consenso.solvers, polars, consenso.kernels.exact_sums
from consenso import PrivateLogisticRegression
from consenso.tables import frames
model = PrivateLogisticRegression(epsilon=1.0, row_bound=8.0, classes=[0, 1], random_state=0)
rng = np.random.default_rng(0)
model.fit(rng.normal(size=(2000, {features})), rng.integers(0, 2, 2000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
PrivateLogisticRegression(epsilon=1.0, row_bound=8.0, classes=[0, 1], random_state=0).fit(sys.argv[1], "y")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def run() -> Iterator[Figure]:
    """Ratios of times, of memory, and how cost grows with rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = _write(folder, ROWS)
        shards = _open(folder, ROWS)
        in_memory = _in_memory(table)
        stored, read, here = best(
            lambda: _pass(shards.cohort()), lambda: _read(folder), lambda: _pass(in_memory), repeats=3
        )
        yield Figure("pass over files, over reading them", stored / read, limit=1.3)
        yield Figure("pass over files, over a pass in memory", stored / here)
        with connect(None) as client:
            held = hold_rows(client, shards.problem, shards.whole.batches)
            spread, here = best(lambda: _pass(held.cohort()), lambda: _pass(in_memory), repeats=3)
        yield Figure("cluster of two processes, over one process", spread / here, limit=1.5)
        asked = [sys.executable, "-c", MEMORY.format(features=FEATURES), str(folder / "*.parquet")]
        peak = float(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        yield Figure("peak memory of a fit, over the table", peak / (8 * ROWS * FEATURES), limit=0.5)
    times = []
    for rows in DECADES:
        with tempfile.TemporaryDirectory() as name:
            _write(Path(name), rows)
            small = _open(Path(name), rows)
            times += best(lambda small=small: _pass(small.cohort()), repeats=2)
    slope = np.polyfit(np.log(DECADES), np.log(times), 1)[0]
    yield Figure("growth of a pass with rows, 1e4 to 1e6", float(slope), unit="exponent", limit=1.1)


def _write(folder: Path, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    columns = {f"x{place}": rng.normal(size=rows) for place in range(FEATURES)}
    table = pl.DataFrame({**columns, "y": rng.integers(0, 2, rows)})
    for part in range(FILES):
        table[part * rows // FILES : (part + 1) * rows // FILES].write_parquet(folder / f"{part}.parquet")
    return table


def _problem(rows: int) -> Problem:
    return Problem(
        loss=Logistic(), regularizer=L2(strength=1e-3), features=FEATURES, sizes=np.array([rows]), row_bound=10.0
    )


def _open(folder: Path, rows: int) -> StoredShards:
    frames = open_frames(str(folder / "*.parquet"))
    names = tuple(name for name in frames.names if name != "y")
    return StoredShards.open(
        _problem(rows), FrameBatches(frames, names, "y", TargetCoding("benchmark", np.array([0, 1])))
    )


def _in_memory(table: pl.DataFrame) -> Cohort:
    targets = np.where(table["y"].to_numpy() == 1, 1.0, -1.0)
    X = np.ascontiguousarray(table.drop("y").to_numpy())
    return Shards.build(_problem(ROWS), X, targets, np.array([0, ROWS])).cohort()


def _pass(rows: Cohort) -> object:
    whitening = Whitening(Metric.round(1.0), 5.0, "round")
    return sum_gradients(rows, np.full(FEATURES, 0.01), Slopes(0.0, 1.0), whitening)


def _read(folder: Path) -> int:
    """A plain read: every batch decoded and made an array."""
    frames = open_frames(str(folder / "*.parquet"))
    return sum(frame.to_numpy().shape[0] for frame in frames)
