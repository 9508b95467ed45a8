"""`consenso lint`: read studies and code for leaks that no run shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command(name="lint", rich_help_panel="Privacy")(check)


def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Study files, Python files, folders.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Findings as JSON.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Print the page of the rules instead.")] = False,
) -> None:
    """Warn of seeds, bounds, metrics and tuning that leak: what the laws and the audit cannot see from outside.

    Reads studies and schemas (TOML) and Python files that import this library. A comment allows a finding:
    "# consenso: allow RULE because ...".

    Exit codes: 0 nothing found, 1 something found, 2 bad input.

    Example: consenso lint study.toml analysis/
    """
    from consenso.errors import InputError
    from consenso.lint import lint
    from consenso.lint.page import page as rules_page

    if page:
        typer.echo(rules_page(), nl=False)
        return
    if not paths:
        raise InputError("lint: name at least one file or folder.")
    found = lint(paths)
    if as_json:
        typer.echo(json.dumps([notice.to_json() for notice in found], indent=2))
    else:
        for notice in found:
            typer.echo(str(notice))
        typer.echo(f"{len(found)} finding{'' if len(found) == 1 else 's'}")
    if found:
        raise typer.Exit(1)
