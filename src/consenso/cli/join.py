"""`consenso join`: one party of a federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consenso.cli import options
from consenso.cli.cluster import Engine, EngineOption, SchedulerOption, cluster
from consenso.cli.service import run_service


def register(app: typer.Typer) -> None:
    app.command(name="join", rich_help_panel="Federations")(join)


def join(
    study: options.AcceptedStudyArgument,
    server: Annotated[str, typer.Option(help="Address of the server, host:port.", show_default=False)],
    party: options.OwnNameOption,
    certs: options.OwnCertsOption,
    data: options.OwnDataOption = None,
    ledger: options.OwnLedgerOption = None,
    state: options.OwnStateOption = None,
    out: options.OwnRunOption = None,
    label: options.LabelOption = "1",
    status_port: options.PortOption = None,
    engine: EngineOption = Engine.process,
    scheduler: SchedulerOption = None,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Take part in a federation with your own table, which does not leave this machine.

    Only this command dials out; nothing listens here. Before anything is released, the server must run exactly the
    study and version that you started with, and your ledger must allow what your own computation says it costs. State,
    journal and every answer are on disk before they are sent: when killed, give the same command again.

    Exit codes: 0 the run has ended, 2 bad input or something that keeps you from going on, 130 stopped.

    Example: consenso join study.toml --server hub.example:7447 --party clinic-a --data a.csv --certs certs/clinic-a
    --ledger a.ledger
    """
    from consenso.deployment.join import Member
    from consenso.study import Study

    with cluster(engine, scheduler) as client:
        loaded = Study.load(study)

        def make() -> Member:
            return Member(
                loaded,
                party,
                data=data,
                server=server,
                certs=certs,
                state=state or Path(f"{party}.state"),
                out=out or Path(f"{party}.run"),
                ledger=ledger,
                label=label,
                client=client,
            )

        run_service(make, as_json=as_json, port=status_port)
