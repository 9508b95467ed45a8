"""`consenso flower`: a study as a Flower app."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from consenso.cli.options import SharedStudyArgument


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(help="Run a study on Flower, where an organisation has it already.", no_args_is_help=True)
    group.command(name="build")(build)
    app.add_typer(group, name="flower", rich_help_panel="Federations")


def build(
    study: SharedStudyArgument,
    out: Annotated[
        Path, typer.Option(help="Folder to write: letters, digits and hyphens, 32 at most.", show_default=False)
    ],
    name: Annotated[str | None, typer.Option(help="Name of the app; by default that of the folder.")] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help='TOML file, a line party = "node.pub" for each: nodes are believed with their key only.'),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Write a study as a Flower app: pyproject.toml, a ServerApp and a ClientApp that only call this library.

    `flwr run DIR CONNECTION` runs it. Every node states its party with flower-supernode --node-config
    'study="..." party="..." data="..." state="..." ledger="..." out="..."', where study is the copy that its own
    operator accepted. What Flower cannot run (peers on a graph, walks) is refused and nothing is written.

    Exit codes: 0 written, 2 bad input.

    Example: consenso flower build study.toml --out flower-app
    """
    from consenso.deployment.flower import build as build_app
    from consenso.study import Study

    loaded = Study.load(study)
    folder = build_app(loaded, out, name=name, keys=keys)
    if as_json:
        typer.echo(json.dumps({"app": str(folder), "study": loaded.digest, "parties": list(loaded.parties)}))
    else:
        typer.echo(f"{folder}: written. Next: flwr run {folder} CONNECTION --stream (see docs/flower.md)")
