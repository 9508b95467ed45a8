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
    numbers_only: Annotated[
        bool, typer.Option("--numbers-only", help="Do not plan anew: for cards of other programs.")
    ] = False,
) -> None:
    """Make the plan of a card anew from its parameters and compute every number again.

    First every number is computed from the theorem beside it, then every theorem from the algorithm, the noise and the
    public facts on the card. Names the first field that does not follow.

    Exit codes: 0 fine, 1 verification failed, 2 bad input.

    Example: consenso verify runs/2026-01/card.json
    """
    from consenso.errors import TamperError
    from consenso.privacy.card import Card
    from consenso.privacy.verify import first_failure, verify_file
    from consenso.runtime.replan import differences

    checks = verify_file(path)
    wrong = first_failure(checks)
    failure = None if wrong is None else str(wrong)
    if failure is None and not numbers_only:
        try:
            failure = next(iter(differences(Card.load(path))), None)
        except TamperError as error:
            failure = str(error)
    if failure is not None:
        typer.secho(f"{path}: DOES NOT FOLLOW: {failure}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1)
    again = "" if numbers_only else ", and the plan made anew from the parameters promises the same"
    typer.echo(f"{path}: {len(checks)} fields checked, all of them follow from the parameters{again}")
