"""Training every study of the demo, each beside the same fit without privacy."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from consenso.demo.studies import write_studies
from consenso.privacy.card import Card
from consenso.solvers.exact import fit_exact
from consenso.study import Study
from consenso.study.metrics import compute_metrics
from consenso.study.plan_summary import epsilon_for
from consenso.study.training import model_with
from consenso.study.training import train as train_study


@dataclass(frozen=True, kw_only=True)
class DemoRun:
    """One study's model and how it did on public test records, beside the exact fit and the simplest guess.

    observer: whom the budget is for. tested: the number of public test records.
    """

    name: str
    title: str
    folder: Path
    card: Card
    observer: str
    epsilon: float
    tested: int
    measure: str
    private: float
    exact: float
    simplest: float
    seconds: float
    rounds_run: int
    rounds_planned: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Everything that the demo shows."""

    epsilon: float
    folder: Path
    trained: tuple[DemoRun, ...]


def train(epsilon: float, folder: Path, console: Console) -> Outcome:
    """Train all studies into folders below `folder`; what an earlier demo left there is replaced.

    A bar on the console shows how far it is, and is gone in the end.
    """
    paths = write_studies(folder, epsilon)
    loaded = {name: Study.load(path) for name, path in paths.items()}
    bar = Progress(
        TextColumn("{task.description:14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        trained = tuple(_train(name, study, folder / name, bar) for name, study in loaded.items())
    return Outcome(epsilon=epsilon, folder=folder, trained=trained)


def _train(name: str, study: Study, out: Path, bar: Progress) -> DemoRun:
    shutil.rmtree(out, ignore_errors=True)
    task = bar.add_task(name, total=study.plan().rounds)
    start = time.perf_counter()
    found = train_study(study, out, progress=_make_progress(bar, task))
    seconds = time.perf_counter() - start
    shown = found.rounds["rounds run"] or found.rounds["rounds planned"]
    bar.update(task, total=shown, completed=shown)
    public = study.evaluation_records()
    assert public is not None
    assert found.metrics is not None
    coefficients = fit_exact(study.problem(), study.shards()).reshape(-1, study.problem().outputs)
    exact = model_with(study, coefficients, None)
    observer = study.observer.key
    measure, simplest = ("accuracy", "majority") if "accuracy" in found.metrics else ("rmse", "rmse of the mean")
    return DemoRun(
        name=name,
        title=study.title,
        folder=out,
        card=found.card,
        observer=observer,
        epsilon=epsilon_for(found.card, observer),
        tested=int(found.metrics["records"]),
        measure=measure,
        private=float(found.metrics[measure]),
        exact=float(compute_metrics(exact, public)[measure]),
        simplest=float(found.metrics[simplest]),
        seconds=seconds,
        rounds_run=shown,
        rounds_planned=found.rounds["rounds planned"],
    )


def _make_progress(bar: Progress, task: Any) -> Callable[[int, int], None]:
    return lambda done, planned: bar.update(task, completed=done)
