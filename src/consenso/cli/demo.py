"""`consenso demo`: private models in every setting, on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="demo")(run)


def run(
    out: Annotated[Path, typer.Option(help="Folder for the studies, the runs and the report.")] = Path("consenso-demo"),
    epsilon: Annotated[float, typer.Option(help="Privacy budget of each model, at delta 1e-5.")] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON, without a progress bar.")] = False,
) -> None:
    """Train private models in all three settings, a sparse regression and ten classes, and write a report.

    The same logistic model is trained by one curator, by twenty clients with a server, and by twenty peers on a graph.
    Everything is written to the folder: the studies, a folder per run, and one page over all of them.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso demo --out my-demo --epsilon 1
    """
    import json

    from rich.console import Console

    from consenso.demo import show, train, write

    console = Console(quiet=as_json)
    outcome = train(epsilon, out, console)
    page = write(outcome)
    if as_json:
        figures = {
            each.name: {
                "measure": each.measure,
                "private": each.private,
                "exact": each.exact,
                "simplest": each.simplest,
            }
            for each in outcome.trained
        }
        typer.echo(json.dumps({"report": str(page), "epsilon": epsilon, "studies": figures}, indent=2))
        return
    show(outcome, console)
    console.print(f"\nReport: [bold]{page}[/bold]")
    console.print(f"Check every number on a card: consenso verify {out / 'central'}")
