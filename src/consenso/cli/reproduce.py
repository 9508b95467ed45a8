"""`consenso reproduce`: the experiments of a paper, as published and as they should have been run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from consenso.cli.completing import complete_papers
from consenso.cli.service import report_stop


def register(app: typer.Typer) -> None:
    app.command()(reproduce)


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="000, 001, 002, 003, 004, all, list, or summary.", autocompletion=complete_papers, show_default=False
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All that the paper did, or less than five minutes of it.")
    ] = False,
    grid: Annotated[
        str, typer.Option(help="Another grid of the paper, such as 'table' of 003.", show_default=False)
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder for reports, tables, figures and kept results.")] = Path(
        "reproductions"
    ),
    page: Annotated[
        Path | None, typer.Option(help="Markdown page whose generated part becomes the summary.", show_default=False)
    ] = None,
    objection: Annotated[
        str, typer.Option(help="Compute one objection to the paper anew, by name, or all.", show_default=False)
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, without a progress bar.")] = False,
) -> None:
    """Run a paper's experiments with its parameters, as published and corrected at equal total epsilon and delta.

    `consenso reproduce list` shows the papers, their grids and the objections to them; `consenso reproduce summary`
    writes the page over all papers anew from what lies in OUT. Figures need Matplotlib
    (pip install 'consenso[reproduce]'). Results are kept in OUT; an interrupted run resumes where it stopped. Two
    processes with one thread each.

    Exit codes: 0 fine, 1 a card of a corrected run does not verify, 2 bad input, 130 stopped by Ctrl-C.

    Example: consenso reproduce 000 --quick --out reproductions
    """
    from consenso.errors import InputError, TamperError

    reproduction = import_experiments()
    known = reproduction.papers()
    if paper == "list":
        _list(known, as_json=as_json)
        return
    if paper == "summary":
        typer.echo(reproduction.index.write(known, out))
        if page is not None:
            reproduction.index.into_page(out, page)
        return
    if paper != "all" and paper not in known:
        raise InputError(f"reproduce({paper!r}): the papers are {', '.join(known)}, or all of them with 'all'.")
    if objection:
        asked = known if paper == "all" else {paper: known[paper]}
        _object(reproduction, asked, objection, out, page)
        return
    grid, told = grid or ("full" if full else "quick"), []
    for number in known if paper == "all" else (paper,):
        try:
            done = _one(reproduction, known[number], grid, out, quiet=as_json)
        except KeyboardInterrupt:
            raise report_stop() from None
        except TamperError as error:
            typer.secho(f"consenso: {error}", fg=typer.colors.RED, err=True)
            raise typer.Exit(1) from None
        told.append(done)
    if page is not None:
        reproduction.index.into_page(out, page)
    if as_json:
        typer.echo(json.dumps([_machine(done) for done in told], indent=2))
        return
    _show(told, out)


def import_experiments() -> Any:
    """The module that reproduces papers: from the checkout that this package lies in, or from the wheel."""
    import importlib
    import importlib.util
    import sys

    import consenso
    from consenso.errors import InputError

    package = Path(consenso.__file__).resolve().parent
    places = (package.parents[1], package / "_reproductions")
    root = next((place for place in places if (place / "experiments" / "reproduction.py").is_file()), None)
    if root is None:
        raise InputError(
            f"reproduce: no experiments in {' or '.join(map(str, places))}; they come with the wheel and with a "
            "checkout of the repository: install either again."
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("reproduce: figures need Matplotlib; install it with pip install 'consenso[reproduce]'.")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module("experiments.reproduction")


def _list(known: Any, *, as_json: bool) -> None:
    told = [
        {
            "paper": number,
            "title": paper.title,
            "reference": paper.reference,
            "minutes": {grid: sum(cell.seconds for cell in paper.cells_of(grid)) / 120 for grid in paper.grids},
            "objections": [case.name for case in paper.cases],
        }
        for number, paper in known.items()
    ]
    if as_json:
        typer.echo(json.dumps(told, indent=2))
        return
    for each in told:
        grids = ", ".join(f"{grid} {_duration(60 * minutes)}" for grid, minutes in each["minutes"].items())
        typer.echo(f"{each['paper']}  {each['title']} ({each['reference']})")
        typer.echo(f"     grids, on two cores: {grids}")
        typer.echo(f"     objections: {', '.join(each['objections']) or 'none'}")


def _object(reproduction: Any, asked: Any, name: str, out: Path, page: Path | None) -> None:
    from consenso.errors import InputError

    if name == "all":
        text = reproduction.all_objections(asked, out)
        if page is None:
            typer.echo(text)
        else:
            reproduction.index.put(page, "objections", text)
        return
    if len(asked) > 1 or page is not None:
        raise InputError(
            f"reproduce --objection {name}: an objection is to one paper and goes to the screen; name the paper."
        )
    ((number, paper),) = asked.items()
    for head, text in reproduction.report.objection_lines(number, name, reproduction.object_to(paper, name, out)):
        typer.echo(f"{head}: {text}\n")


def _one(reproduction: Any, paper: Any, grid: str, out: Path, *, quiet: bool) -> Any:
    if quiet:
        return reproduction.reproduce(paper, grid, out)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    ahead = reproduction.forecast(paper, grid, out)
    console = Console()
    console.print(
        f"[bold]{paper.number}[/bold] {paper.title}: {grid}, {ahead.cells} cells, {ahead.cells - ahead.missing} kept; "
        f"expected to take {_duration(ahead.seconds)} on {reproduction.WORKERS} cores"
    )
    if ahead.stale:
        console.print(f"{ahead.stale} results that came with the repository were made by other code and are not used")
    columns = (
        TextColumn("{task.fields[cells]} of {task.fields[all]} cells"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # A cell may take minutes: a speed from the last half minute would often be none.
    with Progress(*columns, console=console, speed_estimate_period=3600) as progress:
        # In seconds of work, of which kept cells have none.
        bar = progress.add_task("", total=ahead.seconds * reproduction.WORKERS, cells=0, all=ahead.cells)
        done = 0

        def step(cell: Any, kept: bool) -> None:
            nonlocal done
            done += 1
            progress.update(bar, advance=0.0 if kept else cell.seconds, cells=done)

        return reproduction.reproduce(paper, grid, out, step=step)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _machine(done: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "paper": done.paper.number,
        "report": str(done.page),
        "seconds": done.seconds,
        "verdicts": [asdict(verdict) for verdict in done.outcome.verdicts],
        "spent": [asdict(spent) for spent in done.outcome.spent],
    }


def _show(told: list[Any], out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("paper", "claim", "verdict", "reported", "ours")
    colours = {"reproduced": "green", "only with the flaw": "yellow", "not reproduced": "red", "undecided": "white"}
    for done in told:
        for verdict in done.outcome.verdicts:
            state = f"[{colours[verdict.state]}]{verdict.state}[/]"
            table.add_row(done.paper.number, verdict.claim, state, verdict.reported, verdict.ours)
    console.print(table)
    for done in told:
        console.print(f"{done.paper.number}: {done.page} ({_duration(done.seconds)})")
    console.print(f"Index: [bold]{out / 'index.html'}[/bold]")
