"""`consenso forecast`: what a study can be expected to reach at several budgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consenso.cli.options import JsonWithoutBarOption, StudyArgument
from consenso.cli.reading import check_folder, read_numbers, read_study, simulate_with_bar

if TYPE_CHECKING:
    from consenso.study.forecast import Forecast


def register(app: typer.Typer) -> None:
    app.command(name="forecast", rich_help_panel="Studies")(show)


def show(
    study: StudyArgument,
    public: Annotated[
        Path | None, typer.Option(help="A PUBLIC file of the same schema to simulate on.", show_default=False)
    ] = None,
    epsilon: Annotated[str, typer.Option(help="Budgets, with commas between them.")] = "0.1,0.3,1,3,10",
    runs: Annotated[int, typer.Option(help="Simulated runs at each budget.", min=1)] = 3,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page, picture and table.", show_default=False)
    ] = None,
    as_json: JsonWithoutBarOption = False,
) -> None:
    """Tell what to expect of a study, before a private row is read: accuracy against epsilon for its size and trust.

    The study's own algorithm is simulated on made-up records of the same schema, or on a public file. Beside what each
    budget loses stands what it promises: how many of 100 attackers can be right.

    Exit codes: 0 fine, 2 bad input, 130 stopped by Ctrl-C.

    Example: consenso forecast income.toml --public other-year.csv --out forecast
    """
    from consenso.report.expected import curves_of, forecast_html
    from consenso.study.forecast import forecast

    loaded, budgets = read_study(study), read_numbers(epsilon)
    if out is not None:
        check_folder(out)
    found = simulate_with_bar(
        lambda tell: forecast(loaded, budgets, public=public, runs=runs, progress=tell), quiet=as_json
    )
    written = []
    if out is not None:
        written = curves_of(found).write(out, "forecast")
        (out / "forecast.html").write_text(forecast_html(found), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({**found.to_json(), "written": [str(path) for path in written]}, indent=2))
        return
    _show(found)
    for path in written[:1]:
        typer.echo(f"Page: {path}")


def _show(found: Forecast) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from consenso.report.expected import HEAD, curves_of, note_of, rows_of

    console = Console()
    table = Table(box=box.SIMPLE_HEAD, title=f"Expected {found.measure} at delta {found.delta:g}", title_justify="left")
    for head in HEAD:
        table.add_column(head, justify="right")
    for row in rows_of(found):
        table.add_row(*row)
    console.print(table)
    show = curves_of(found).show
    console.print(f"Without privacy {show(found.exact)}; without looking at features {show(found.simplest)}.")
    console.print(note_of(found), highlight=False)
