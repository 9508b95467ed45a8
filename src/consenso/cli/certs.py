"""`consenso certs`: a private certificate authority for those who have none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DaysOption = Annotated[int, typer.Option(help="How long it is valid.", min=1, max=100 * 365)]

group = typer.Typer(
    no_args_is_help=True,
    help="Certificates for a federation: one authority, one certificate for the server and one for each party.\n\n"
    "Exit codes: 0 fine, 2 bad input.",
)


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    app.add_typer(group, name="certs", rich_help_panel="Federations")


@group.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A new folder for the authority.", show_default=False)],
    name: Annotated[str, typer.Option(help="Name of the authority.")] = "consenso",
    days: DaysOption = 3650,
) -> None:
    """Make an authority. Whoever has its key can issue any name: keep the folder off the machines of the run.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso certs init authority
    """
    from consenso.deployment import certs

    typer.echo(f"{certs.init(folder, name=name, days=days)}: an authority, valid for {days} days")


@group.command()
def issue(
    name: Annotated[str, typer.Argument(help="A party's name in the study, or 'server'.", show_default=False)],
    ca: Annotated[Path, typer.Option(help="Folder of the authority.", show_default=False)],
    out: Annotated[Path, typer.Option(help="A new folder for the certificate and its key.", show_default=False)],
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name or address under which others dial this one; repeat for several. By default localhost."
        ),
    ] = None,
    days: DaysOption = 365,
) -> None:
    """Issue the certificate of one party: hand it the folder, and nobody else.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso certs issue server --ca authority --out certs/server --host hub.example
    """
    from consenso.deployment import certs

    made = certs.issue(ca, name, out=out, hosts=host or (), days=days)
    typer.echo(f"{made}: the certificate of {name}, valid for {days} days")
