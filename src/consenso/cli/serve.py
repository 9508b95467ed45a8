"""`consenso serve`: the server of a federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consenso.cli import options
from consenso.cli.options import check_seconds
from consenso.cli.service import run_service


def register(app: typer.Typer) -> None:
    app.command(name="serve", rich_help_panel="Federations")(serve)


def serve(
    study: options.SharedStudyArgument,
    listen: Annotated[str, typer.Option(help="Address to listen on, host:port.", show_default=False)],
    certs: Annotated[
        Path, typer.Option(help="Folder with ca.pem, cert.pem and key.pem of 'server'.", show_default=False)
    ],
    out: options.RunFolderOption = None,
    label: options.LabelOption = "1",
    patience: Annotated[
        float,
        typer.Option(
            help="Seconds after which a sampled round goes on without those who did not answer.",
            callback=check_seconds,
        ),
    ] = 60.0,
    linger: Annotated[
        float,
        typer.Option(help="Seconds to wait in the end for parties to take the model.", callback=check_seconds),
    ] = 60.0,
    status_port: options.PortOption = None,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Run a federation: wait for the parties of the study, ask them round by round, write the folder of the run.

    Parties dial in with `consenso join`. Every finished round is on disk: a server that was stopped or killed goes on
    where it was when the same command is given again. The folder gets study.toml, model.json, card.json, run.json and,
    if the study names a public test file, metrics.json. Given again when the run has ended, the command hands the model
    to parties that did not take it in time.

    Exit codes: 0 the run has ended, 2 bad input, 130 stopped (give the same command to go on).

    Example: consenso serve study.toml --listen 0.0.0.0:7447 --certs certs/server --out runs/study
    """
    from consenso.cli.train import default_folder
    from consenso.deployment.serve import HubService
    from consenso.study import Study

    loaded = Study.load(study)
    folder = out or default_folder(loaded, study)

    def make() -> HubService:
        return HubService(loaded, listen=listen, certs=certs, out=folder, label=label, patience=patience, linger=linger)

    run_service(make, as_json=as_json, port=status_port)
