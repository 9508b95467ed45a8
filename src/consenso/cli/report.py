"""`consenso report`: the page of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from consenso.cli.completing import complete_runs
from consenso.cli.options import JsonOption


def register(app: typer.Typer) -> None:
    app.command(name="report", rich_help_panel="Studies")(write)


def write(
    run: Annotated[Path, typer.Argument(help="A run's folder.", autocompletion=complete_runs, show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Where the page goes; by default report.html in the folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the page of a run: one HTML file that needs no network.

    It shows what was learnt (quality on a public test file, if the study names one), what every observer learns, in
    words, the trade-off curves, the noise, the graph, and how to verify all of it. Only public files of the run are
    read.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso report runs/income
    """
    from consenso.report import write_report

    target = write_report(run, out)
    typer.echo(json.dumps({"report": str(target)}) if as_json else f"{target}")
