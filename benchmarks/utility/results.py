"""Running the grid, with every finished fit kept on disk so that an interrupted run goes on."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from benchmarks.utility import ours
from benchmarks.utility.methods import Method, attempt
from benchmarks.utility.tasks import DELTA, TASKS, Task

EXACT = "without privacy"


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One fit."""

    task: str
    metric: str
    method: str
    epsilon: float
    seed: int
    score: float
    excess: float
    seconds: float


class Book:
    """The finished fits, one JSON line each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._done: dict[str, dict[str, Any] | None] = dict(json.loads(line) for line in lines)

    def once(self, key: tuple[Any, ...], make: Any) -> dict[str, Any] | None:
        """What was made for this key, now or in an earlier run."""
        name = hashlib.sha256(repr(key).encode()).hexdigest()
        if name not in self._done:
            self._done[name] = make()
            with self.path.open("a") as out:
                out.write(json.dumps([name, self._done[name]]) + "\n")
        return self._done[name]


def collect(
    tasks: list[str], methods: list[Method], epsilons: list[float], seeds: int, book: Book, progress: Progress
) -> list[Fit]:
    """All fits of the grid."""
    fits: list[Fit] = []
    bar = progress.add_task("fits", total=len(tasks) * len(methods) * len(epsilons) * seeds)
    for name in tasks:
        task = TASKS[name]()
        best = book.once((name, "exact"), lambda task=task: _measured(task, lambda: ours.exact(task)))
        assert best is not None
        optimum = best["risk"]
        fits.append(_fit(task, EXACT, np.inf, 0, best, optimum))
        for method in methods:
            for epsilon in epsilons:
                if method.applies(task):
                    fits += _runs(task, name, method, epsilon, seeds, book, optimum)
                progress.advance(bar, seeds)
    return fits


def _runs(task: Task, name: str, method: Method, epsilon: float, seeds: int, book: Book, optimum: float) -> list[Fit]:
    def once(setting: Any, seed: int) -> dict[str, Any] | None:
        return book.once(
            (name, method.name, repr(setting), epsilon, seed),
            lambda: _measured(task, lambda: attempt(method, task, setting, epsilon, DELTA, seed)),
        )

    tried = [(setting, found) for setting in method.settings if (found := once(setting, 0)) is not None]
    if not tried:
        return []
    worse = -1 if task.kind == "regression" else 1
    setting = max(tried, key=lambda pair: worse * pair[1]["score"])[0]
    found = [(seed, once(setting, seed)) for seed in range(seeds)]
    return [_fit(task, method.name, epsilon, seed, each, optimum) for seed, each in found if each is not None]


def _measured(task: Task, make: Any) -> dict[str, Any] | None:
    start = time.perf_counter()
    model = make()
    took = time.perf_counter() - start
    return None if model is None else {"score": task.score(model), "risk": task.risk(model), "seconds": took}


def _fit(task: Task, method: str, epsilon: float, seed: int, found: dict[str, Any], optimum: float) -> Fit:
    return Fit(
        task=task.name,
        metric=task.metric,
        method=method,
        epsilon=epsilon,
        seed=seed,
        score=found["score"],
        excess=found["risk"] - optimum,
        seconds=found["seconds"],
    )


def save(fits: list[Fit], path: Path) -> None:
    """All fits as JSON."""
    path.write_text(json.dumps([asdict(fit) for fit in fits], indent=1))
