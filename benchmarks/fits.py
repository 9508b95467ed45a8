"""A private fit against scikit-learn's of the same model: processor time, and memory over that of the data."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import HuberRegressor, Lasso, LogisticRegression, Ridge

import consenso
from benchmarks.measure import Figure

RECORDS, COLUMNS, REPEATS = 100_000, 50, 3


def run() -> Iterator[Figure]:
    """A row for each model: time, then the most memory at once, with the table itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(RECORDS, COLUMNS))
    # Columns of different sizes that go together, as tables have them; the other fits take their steps for it.
    X = (X + rng.normal(size=(RECORDS, 1))) * np.geomspace(0.3, 3.0, COLUMNS)
    score = X @ (rng.normal(size=COLUMNS) / np.geomspace(0.3, 3.0, COLUMNS) / np.sqrt(COLUMNS))
    labels, targets = (score + rng.logistic(size=RECORDS) > 0).astype(int), score + rng.normal(size=RECORDS)
    shared = {"row_bound": float(np.linalg.norm(X, axis=1).max()), "random_state": 0}
    bounds = {**shared, "target_bound": float(np.abs(targets).max())}
    pairs: list[tuple[Any, Any, Any]] = [
        (consenso.PrivateLogisticRegression(classes=[0, 1], **shared), LogisticRegression(max_iter=1000), labels),
        (consenso.PrivateHuberRegressor(**bounds), HuberRegressor(max_iter=1000), targets),
        (consenso.PrivateLasso(**bounds), Lasso(alpha=0.003), targets),
        (consenso.PrivateRidge(**bounds), Ridge(), targets),
    ]
    for ours, theirs, y in pairs:
        name = f"{type(ours).__name__}, {RECORDS:,} x {COLUMNS}"
        own, other = (_least(lambda model=model, y=y: model.fit(X, y)) for model in (ours, theirs))
        # A ridge of so few columns is one product, and a private one reads the rows some fifty times: more than that is
        # held against it.
        limit = 15.0 if isinstance(ours, consenso.PrivateRidge) else 5.0
        yield Figure(
            f"time of {name} over scikit-learn's", own / other, limit=limit, note=f"{own:.2f} s, {other:.2f} s"
        )
        tracemalloc.start()
        ours.fit(X, y)
        most = X.nbytes + tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        yield Figure(f"memory of {name} over the data", most / X.nbytes, limit=3.0, note=f"{most / 2**20:.0f} MB")


def _least(fit: Callable[[], Any]) -> float:
    """Processor seconds, which a busy machine changes little; the first fit loads and compiles, and is not counted."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.process_time()
        fit()
        times.append(time.process_time() - start)
    return min(times[1:])
