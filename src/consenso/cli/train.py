"""`consenso train`: run a study and write its folder."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consenso.cli.cluster import Engine, EngineOption, SchedulerOption, cluster
from consenso.cli.options import EpsilonOption, JsonWithoutBarOption, RunFolderOption, StudyArgument
from consenso.cli.reading import read_study, stop_bar
from consenso.cli.service import report_stop

if TYPE_CHECKING:
    from consenso.study import Study
    from consenso.study.training import Trained


def register(app: typer.Typer) -> None:
    app.command(name="train", rich_help_panel="Studies")(run)


def run(
    study: StudyArgument,
    epsilon: EpsilonOption = None,
    out: RunFolderOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped in that folder.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.html.")] = False,
    engine: EngineOption = Engine.process,
    scheduler: SchedulerOption = None,
    as_json: JsonWithoutBarOption = False,
) -> None:
    """Train a study: read the table through its schema, charge the ledger, run, and write the folder of the run.

    The folder gets study.toml, model.json, card.json, trace.json, report.html and, if the study names a public test
    file, metrics.json. Nothing in it depends on private data but through the noise. Ctrl-C stops at the next
    checkpoint, which is private and is removed when the run is complete. With seeded noise a resumed run gives the same
    model as one that was never stopped; in every case the ledger is charged once.

    Exit codes: 0 fine, 2 bad input (nothing was spent), 130 stopped by Ctrl-C (go on with --resume).

    Example: consenso train income.toml --out runs/income
    """
    loaded = read_study(study, epsilon)
    folder = out or default_folder(loaded, study)
    with _interruptible(quiet=as_json) as stop:
        try:
            with cluster(engine, scheduler) as client:
                found = _with_bar(loaded, folder, resume=resume, stop=stop, quiet=as_json, client=client)
        except KeyboardInterrupt:
            asked = "" if epsilon is None else f" --epsilon {epsilon:g}"
            again = f"consenso train {study}{asked}" + (f" --out {out}" if out is not None else "") + " --resume"
            saved = (folder / "checkpoint").exists()
            told = f"go on with: {again}" if saved else "nothing was begun"
            if as_json:
                typer.echo(json.dumps({"folder": str(folder), "stopped": True, "resumable": saved}, indent=2))
            raise report_stop(told) from None
    page = None
    if not no_report:
        from consenso.report import write_report

        page = write_report(found.folder)
    if as_json:
        typer.echo(json.dumps(summary(loaded, found), indent=2, allow_nan=False))
    else:
        _show(loaded, found, page)


def default_folder(study: Study, file: Path) -> Path:
    """Where a run goes when nothing is said."""
    return study.folder / (study.output.folder or f"runs/{file.stem}")


def summary(study: Study, found: Trained) -> dict[str, Any]:
    """What a run left, as JSON values."""
    from consenso.study.folder import finite
    from consenso.study.plan_summary import epsilon_for

    observer = study.observer.key
    return {
        "folder": str(found.folder),
        "study": study.digest,
        "algorithm": found.card.algorithm,
        "rounds": found.rounds["rounds run"],
        "rounds_paid": found.rounds["rounds planned"],
        "observer": observer,
        "epsilon": finite(epsilon_for(found.card, observer)),
        "delta": found.card.delta,
        "simulation": found.card.simulation,
        "metrics": found.metrics,
    }


@contextlib.contextmanager
def _interruptible(*, quiet: bool) -> Iterator[Any]:
    """Turn the first Ctrl-C into a wish that is granted at the next checkpoint; the second stops at once."""
    asked = False

    def wish(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        if not quiet:
            typer.secho("consenso: stopping at the next checkpoint; Ctrl-C again stops at once", err=True)

    before = signal.signal(signal.SIGINT, wish)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass
class Pace:
    """How far a run is that reads its rows in every round, and how fast. rows: as many as are declared."""

    rows: int
    clock: Callable[[], float] = time.monotonic
    _done: int = 0
    _here: int = 0  # rows of this round
    _all: int = 0
    _start: float | None = None

    def read(self, rows: int) -> float:
        """Rounds that are done, with the part of the one that is under way."""
        self._start = self.clock() if self._start is None else self._start
        self._here, self._all = self._here + rows, self._all + rows
        return self._done + min(self._here / self.rows, 1.0)

    def finish(self, done: int) -> int:
        """A round has ended."""
        self._done, self._here = done, 0
        return done

    @property
    def text(self) -> str:
        """Rows a second since the first."""
        taken = 0.0 if self._start is None else self.clock() - self._start
        return f", {self._all / taken:,.0f} rows a second" if taken > 0 else ""


def _with_bar(study: Study, folder: Path, *, resume: bool, stop: Any, quiet: bool, client: Any) -> Trained:
    from consenso.study.training import train

    if quiet:
        return train(study, folder, resume=resume, stop=stop, client=client)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds,"),
        TimeRemainingColumn(),
        TextColumn("left{task.fields[speed]}"),
        console=Console(stderr=True),
    )
    task = bar.add_task("training", total=None, speed="")
    pace = Pace(rows=study.problem().records)

    def tell(done: int, planned: int) -> None:
        bar.start()  # with the first round: what is wrong is told before it, on a clean screen
        bar.update(task, completed=pace.finish(done), total=planned)

    # How many rows there are is private under add-remove, and so is how many a person has.
    is_public = study.problem().adjacency == "replace-one" and study.problem().unit != "person"

    def watch(rows: int) -> None:
        if not is_public:
            return
        bar.start()
        bar.update(task, completed=pace.read(rows), total=study.plan().rounds, speed=pace.text)

    try:
        found = train(study, folder, resume=resume, stop=stop, client=client, progress=tell, watch=watch)
        # An algorithm may be done before its rounds are used up.
        shown = found.rounds["rounds run"] or found.rounds["rounds planned"]
        bar.update(task, completed=shown, total=shown)
    finally:
        stop_bar(bar)
    return found


def _show(study: Study, found: Trained, page: Path | None) -> None:
    from consenso.privacy.card.text import cost_text
    from consenso.study.rounds import rounds_text

    told = summary(study, found)
    epsilon = told["epsilon"]
    promise = cost_text(float(epsilon), told["delta"])
    typer.echo(f"{found.folder}: {told['algorithm']}; {rounds_text(found.rounds)}; {told['observer']}: {promise}")
    if found.card.simulation:
        typer.echo("The noise is seeded: a simulation, which protects nobody.")
    if found.metrics is not None:
        figures = {name: value for name, value in found.metrics.items() if isinstance(value, float)}
        typer.echo("On the public test records: " + ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
    if page is not None:
        typer.echo(f"Page: {page}")
    typer.echo(
        f"Next: consenso card {found.folder}, consenso verify {found.folder}, consenso predict {found.folder} FILE"
    )
