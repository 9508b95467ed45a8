"""`consenso verify`: compute every number of a privacy card again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="verify")(check)


def check(
    path: Annotated[Path, typer.Argument(help="A card, or a run's folder with a card.json in it.", show_default=False)],
) -> None:
    """Rebuild every theorem of a card from its parameters and compute every number again.

    Names the first field that does not follow. Exit codes: 0 fine, 1 verification failed, 2 bad input.
    """
    from consenso.privacy.verify import first_failure, verify_file

    checks = verify_file(path)
    failure = first_failure(checks)
    if failure is not None:
        typer.secho(f"{path}: DOES NOT FOLLOW: {failure}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1)
    typer.echo(f"{path}: {len(checks)} fields checked, all of them follow from the parameters")
