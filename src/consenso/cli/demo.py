"""`consenso demo`: the same private model centrally, in a federation and on a graph, on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def demo(
        out: Annotated[Path, typer.Option(help="Folder for the report and the cards.")] = Path("consenso-demo"),
        epsilon: Annotated[float, typer.Option(help="Privacy budget of each model, at delta 1e-5.")] = 2.0,
    ) -> None:
        """Train a private model in three settings and write a report.

        Example: consenso demo --out my-demo --epsilon 1
        """
        from rich.console import Console

        from consenso.demo import show, train, write

        console = Console()
        outcome = train(epsilon, console)
        show(outcome, console)
        page = write(outcome, out)
        console.print(f"\nReport: [bold]{page}[/bold]")
        console.print(f"Check every number on a card: consenso verify {out / 'central.json'}")
