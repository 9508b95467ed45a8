"""`consenso demo`: private models in every setting, on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consenso.cli.options import JsonWithoutBarOption
from consenso.cli.reading import check_folder


def register(app: typer.Typer) -> None:
    app.command(name="demo")(run)


def run(
    out: Annotated[Path, typer.Option(help="Folder for the studies, the runs and the report.")] = Path("consenso-demo"),
    epsilon: Annotated[float, typer.Option(help="Privacy budget of each model, at delta 1e-5.")] = 2.0,
    page: Annotated[
        Path | None, typer.Option(help="A Markdown page whose table of the demo is written anew.", show_default=False)
    ] = None,
    as_json: JsonWithoutBarOption = False,
) -> None:
    """Train private models in all three settings, a sparse regression and ten classes, and write a report.

    The same logistic model is trained by one curator, by twenty clients with a server, and by twenty peers on a graph.
    Everything is written to the folder: the studies, a folder per run, and one page over all of them.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso demo --out my-demo --epsilon 1
    """
    import json

    from rich.console import Console

    from consenso.demo import markdown, show, train, write
    from consenso.demo.page import MARKERS

    check_folder(out)
    outcome = train(epsilon, out, Console(stderr=True, quiet=as_json))
    made = write(outcome)
    if page is not None:
        from consenso.audit.table import write_into

        write_into(page, markdown(outcome), MARKERS)
    if as_json:
        figures = {
            each.name: {
                "measure": each.measure,
                "private": each.private,
                "exact": each.exact,
                "simplest": each.simplest,
                "epsilon": each.epsilon,
                "observer": each.observer,
            }
            for each in outcome.trained
        }
        typer.echo(json.dumps({"report": str(made), "epsilon": epsilon, "studies": figures}, indent=2))
        return
    show(outcome, Console())
    typer.echo(f"Page: {made}")
    typer.echo(f"Next: consenso card {out / 'central'}, consenso verify {out / 'central'}")
