"""`consenso peer`: one peer of a graph, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consenso.cli import STOPPED
from consenso.cli.completing import complete_studies
from consenso.cli.reading import PortOption, check_seconds


def register(app: typer.Typer) -> None:
    app.command(name="peer", rich_help_panel="Federations")(peer)


def peer(
    study: Annotated[
        Path,
        typer.Argument(
            help="The study, as you have read and accepted it.", autocompletion=complete_studies, show_default=False
        ),
    ],
    name: Annotated[str, typer.Option(help="Your name in the study and on your certificate.", show_default=False)],
    certs: Annotated[
        Path, typer.Option(help="Folder with ca.pem, your cert.pem and your key.pem.", show_default=False)
    ],
    data: Annotated[
        Path | None, typer.Option(help="Your table; without it, the one that the study names for you.")
    ] = None,
    addresses: Annotated[
        Path | None,
        typer.Option(
            help='TOML file with a line name = "host:port" for you and each neighbour; by default '
            "addresses.toml beside the study."
        ),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Your budget ledger; needed unless the study is a simulation with a seed.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Private folder of your state and journal; by default ./<name>.state.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the model and the card; by default ./<name>.run.")
    ] = None,
    label: Annotated[str, typer.Option(help="Tells repeated runs of one study apart; the same for everybody.")] = "1",
    linger: Annotated[
        float, typer.Option(help="Seconds to wait in the end for neighbours that are not done.", callback=check_seconds)
    ] = 60.0,
    status_port: PortOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a panel.")] = False,
) -> None:
    """Take part in a graph of peers: hear your neighbours round by round, or hand a walk's token on.

    The graph is in the study, addresses are in a file of their own. You talk to your neighbours only, and they to you.
    Before anything is released, neighbours must run exactly the study and version that you started with, and your
    ledger must allow what your own computation says it costs. When killed, give the same command again.

    Exit codes: 0 the run has ended, 2 bad input or something that keeps you from going on, 130 stopped.

    Example: consenso peer study.toml --name clinic-a --data a.csv --certs certs/clinic-a --ledger a.ledger
    """
    from consenso.deployment.foreground import run_in_foreground
    from consenso.deployment.peer import PeerMember, PeerOptions
    from consenso.study import Study

    told = PeerOptions(
        study=Study.load(study),
        name=name,
        data=data,
        addresses=addresses or study.parent / "addresses.toml",
        certs=certs,
        state=state or Path(f"{name}.state"),
        out=out or Path(f"{name}.run"),
        ledger=ledger,
        label=label,
        linger=linger,
    )
    folder = run_in_foreground(lambda: PeerMember(told), as_json=as_json, port=status_port, echo=typer.echo)
    if folder is None:
        typer.secho("consenso: stopped; give the same command to go on", fg=typer.colors.YELLOW, err=True)
        raise typer.Exit(STOPPED)
    if not as_json:
        typer.echo(f"{folder}: the run has ended. Next: consenso card {folder}, consenso verify {folder}")
