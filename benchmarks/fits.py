"""A private fit against scikit-learn's of the same model: processor time, and memory over that of the data.

Fits take turns, and the least of each counts. Both have one thread: what others do while they wait for work or for
memory is counted as processor time, and would be most of it on a busy machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
from sklearn.linear_model import HuberRegressor, Lasso, LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

import consenso
from benchmarks.measure import Figure, best, processor_seconds

RECORDS, COLUMNS, REPEATS = 100_000, 50, 7
CLASSIFIERS = ("PrivateLogisticRegression", "PrivateLinearSVC")
REGRESSORS = ("PrivateRidge", "PrivateLasso", "PrivateElasticNet", "PrivateHuberRegressor", "PrivateLADRegressor")
# Peaks of memory are those of a process that has done nothing else. A fit of few rows loads and compiles first. The
# peak starts anew before the fit: a process begins with that of the one which started it.
MEMORY = """
import json, sys
import numpy as np
import consenso
name, given, folder = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
make = lambda: getattr(consenso, name)(**given)
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) * 1024
few = np.load(folder + "/X.npy", mmap_mode="r")[:4000].copy()
make().fit(few, np.load(folder + f"/{name}.npy")[:4000])
X, y = np.load(folder + "/X.npy"), np.load(folder + f"/{name}.npy")
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
make().fit(X, y)
print(status("VmHWM") - before)
"""


def run() -> Iterator[Figure]:
    """A row for each model: time; then for each estimator the most memory at once, with the table itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(RECORDS, COLUMNS))
    # Columns of different sizes that go together, as tables have them; the other fits take their steps for it.
    X = (X + rng.normal(size=(RECORDS, 1))) * np.geomspace(0.3, 3.0, COLUMNS)
    score = X @ (rng.normal(size=COLUMNS) / np.geomspace(0.3, 3.0, COLUMNS) / np.sqrt(COLUMNS))
    labels, targets = (score + rng.logistic(size=RECORDS) > 0).astype(int), score + rng.normal(size=RECORDS)
    shared = {"row_bound": float(np.linalg.norm(X, axis=1).max()), "random_state": 0}
    bound = float(np.abs(targets).max())
    given = {name: {**shared, "classes": [0, 1]} for name in CLASSIFIERS}
    given |= {name: {**shared, "target_bound": bound} for name in REGRESSORS}
    rivals: dict[str, Any] = {
        "PrivateLogisticRegression": LogisticRegression(max_iter=1000),
        "PrivateHuberRegressor": HuberRegressor(max_iter=1000),
        "PrivateLasso": Lasso(alpha=0.003),
        "PrivateRidge": Ridge(),
    }
    for name, theirs in rivals.items():
        ours, y = getattr(consenso, name)(**given[name]), labels if name in CLASSIFIERS else targets
        with threadpool_limits(1, user_api="blas"), patch.object(numba.config, "NUMBA_NUM_THREADS", 1):
            fits = [lambda model=model, y=y: model.fit(X, y) for model in (ours, theirs)]
            own, other = best(*fits, repeats=REPEATS, measure=processor_seconds)
        told, note = f"time of {name}, {RECORDS:,} x {COLUMNS}, over scikit-learn's", f"{own:.2f} s, {other:.2f} s"
        yield Figure(told, own / other, limit=5.0, note=note)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), X)
        for name, options in given.items():
            np.save(Path(folder, f"{name}.npy"), labels if name in CLASSIFIERS else targets)
            most = X.nbytes + _measure_growth(name, options, folder)
            told, note = f"memory of {name}, {RECORDS:,} x {COLUMNS}, over the data", f"{most / 2**20:.0f} MB"
            yield Figure(told, most / X.nbytes, limit=3.0, note=note)


def _measure_growth(name: str, options: dict[str, Any], folder: str) -> int:
    """By how many bytes a process grows at most while it fits."""
    command = [sys.executable, "-c", MEMORY, name, json.dumps(options), folder]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
