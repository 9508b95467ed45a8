"""Running a server, a party or a peer until its run has ended or it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from consenso.cli import STOPPED

if TYPE_CHECKING:
    from consenso.deployment.foreground import Runnable


def run_service(make: Callable[[], Runnable], *, as_json: bool, port: int | None) -> None:
    """Run what is made in the foreground, and say how it ended."""
    from consenso.deployment.foreground import run_in_foreground

    folder = run_in_foreground(make, as_json=as_json, port=port, echo=typer.echo)
    if folder is None:
        raise report_stop()
    if not as_json:
        typer.echo(f"{folder}: the run has ended. Next: consenso card {folder}, consenso verify {folder}")


def report_stop(what_next: str = "give the same command to go on") -> typer.Exit:
    """Say that a command was stopped and how to go on; to be raised."""
    typer.secho(f"consenso: stopped; {what_next}", fg=typer.colors.YELLOW, err=True)
    return typer.Exit(STOPPED)
