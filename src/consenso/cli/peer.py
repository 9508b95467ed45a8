"""`consenso peer`: one peer of a graph, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consenso.cli import options
from consenso.cli.options import check_seconds
from consenso.cli.service import run_service


def register(app: typer.Typer) -> None:
    app.command(name="peer", rich_help_panel="Federations")(peer)


def peer(
    study: options.AcceptedStudyArgument,
    name: options.OwnNameOption,
    certs: options.OwnCertsOption,
    data: options.OwnDataOption = None,
    addresses: Annotated[
        Path | None,
        typer.Option(
            help='TOML file with a line name = "host:port" for you and each neighbour; by default '
            "addresses.toml beside the study."
        ),
    ] = None,
    ledger: options.OwnLedgerOption = None,
    state: options.OwnStateOption = None,
    out: options.OwnRunOption = None,
    label: options.LabelOption = "1",
    linger: Annotated[
        float,
        typer.Option(help="Seconds to wait in the end for neighbours that are not done.", callback=check_seconds),
    ] = 60.0,
    status_port: options.PortOption = None,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Take part in a graph of peers: hear your neighbours round by round, or hand a walk's token on.

    The graph is in the study, addresses are in a file of their own. You talk to your neighbours only, and they to you.
    Before anything is released, neighbours must run exactly the study and version that you started with, and your
    ledger must allow what your own computation says it costs. When killed, give the same command again.

    Exit codes: 0 the run has ended, 2 bad input or something that keeps you from going on, 130 stopped.

    Example: consenso peer study.toml --name clinic-a --data a.csv --certs certs/clinic-a --ledger a.ledger
    """
    from consenso.deployment.peer import PeerMember
    from consenso.study import Study

    loaded = Study.load(study)

    def make() -> PeerMember:
        return PeerMember(
            loaded,
            name,
            data=data,
            addresses=addresses or study.parent / "addresses.toml",
            certs=certs,
            state=state or Path(f"{name}.state"),
            out=out or Path(f"{name}.run"),
            ledger=ledger,
            label=label,
            linger=linger,
        )

    run_service(make, as_json=as_json, port=status_port)
