"""`consenso join`: one party of a federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consenso.cli import STOPPED
from consenso.cli.cluster import Engine, EngineOption, SchedulerOption, cluster
from consenso.cli.completing import complete_studies
from consenso.cli.reading import PortOption


def register(app: typer.Typer) -> None:
    app.command(name="join", rich_help_panel="Federations")(join)


def join(
    study: Annotated[
        Path,
        typer.Argument(
            help="The study, as you have read and accepted it.", autocompletion=complete_studies, show_default=False
        ),
    ],
    server: Annotated[str, typer.Option(help="Address of the server, host:port.", show_default=False)],
    party: Annotated[str, typer.Option(help="Your name in the study and on your certificate.", show_default=False)],
    certs: Annotated[
        Path, typer.Option(help="Folder with ca.pem, your cert.pem and your key.pem.", show_default=False)
    ],
    data: Annotated[
        Path | None, typer.Option(help="Your table; without it, the one that the study names for you.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Your budget ledger; needed unless the study is a simulation with a seed.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Private folder of your state and journal; by default ./<party>.state.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the model and the card; by default ./<party>.run.")
    ] = None,
    label: Annotated[str, typer.Option(help="Tells repeated runs of one study apart; the same for everybody.")] = "1",
    status_port: PortOption = None,
    engine: EngineOption = Engine.process,
    scheduler: SchedulerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a panel.")] = False,
) -> None:
    """Take part in a federation with your own table, which does not leave this machine.

    Only this command dials out; nothing listens here. Before anything is released, the server must run exactly the
    study and version that you started with, and your ledger must allow what your own computation says it costs. State,
    journal and every answer are on disk before they are sent: when killed, give the same command again.

    Exit codes: 0 the run has ended, 2 bad input or something that keeps you from going on, 130 stopped.

    Example: consenso join study.toml --server hub.example:7447 --party clinic-a --data a.csv --certs certs/clinic-a
    --ledger a.ledger
    """
    from consenso.deployment.foreground import run_in_foreground
    from consenso.deployment.join import Member, PartyOptions
    from consenso.study import Study

    with cluster(engine, scheduler) as client:
        told = PartyOptions(
            study=Study.load(study),
            party=party,
            data=data,
            server=server,
            certs=certs,
            state=state or Path(f"{party}.state"),
            out=out or Path(f"{party}.run"),
            ledger=ledger,
            label=label,
            client=client,
        )
        folder = run_in_foreground(lambda: Member(told), as_json=as_json, port=status_port, echo=typer.echo)
    if folder is None:
        typer.secho("consenso: stopped; give the same command to go on", fg=typer.colors.YELLOW, err=True)
        raise typer.Exit(STOPPED)
    if not as_json:
        typer.echo(f"{folder}: the run has ended. Next: consenso card {folder}, consenso verify {folder}")
