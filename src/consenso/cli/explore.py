"""`consenso explore`: the budget explorer on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consenso.cli.options import StudyArgument


def register(app: typer.Typer) -> None:
    app.command(name="explore", rich_help_panel="Studies")(run)


def run(
    study: StudyArgument,
    out: Annotated[
        Path | None, typer.Option(help="The file that the page may write; by default the study's name and -explored.")
    ] = None,
    watch: Annotated[Path | None, typer.Option(help="A run's folder whose training is shown live.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a page with sliders for epsilon, delta, noise, rounds, clients, sampling rate and trust.

    It shows every observer's epsilon and the predicted error as they move, computed by the accountants of the library,
    and writes the study that was found. No data are read. Ctrl-C ends it.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso explore income.toml
    """
    import webbrowser

    from consenso.explorer.server import serve
    from consenso.study import Study

    def ready(address: str) -> None:
        typer.echo(f"The explorer is at {address} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    target = out or study.with_name(f"{study.stem}-explored.toml")
    serve(Study.load(study), out=target, run=watch, port=port, ready=ready)
