"""`consenso verify`: compute every number of a privacy card again, and see that the files of a run belong together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from consenso.cli.options import CardArgument, JsonOption


def register(app: typer.Typer) -> None:
    app.command(name="verify", rich_help_panel="Privacy")(check)


def check(
    path: CardArgument,
    numbers_only: Annotated[
        bool, typer.Option("--numbers-only", help="Do not plan anew: for cards of other programs.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make the plan of a card anew from its parameters and compute every number again.

    First every number is computed from the theorem beside it, then every theorem from the algorithm, the noise and the
    public facts on the card. In the folder of a run the study must plan the same card, and the model must carry it.
    Names the first field that does not follow.

    Exit codes: 0 fine, 1 verification failed, 2 bad input.

    Example: consenso verify runs/income
    """
    from consenso.privacy.card.document import read
    from consenso.privacy.card.withdrawn import advice
    from consenso.privacy.verify import first_failure, verify_file
    from consenso.version import __version__

    checks = verify_file(path)
    wrong = first_failure(checks)
    failure = None if wrong is None else str(wrong)
    if failure is None and not numbers_only:
        failure = _first_difference(path)
    if failure is not None and "make it anew" not in failure:
        failure += advice(read(path), __version__)
    if as_json:
        planned = failure is None and not numbers_only
        answer = {"path": str(path), "fields": len(checks), "failure": failure, "planned_anew": planned}
        typer.echo(json.dumps(answer, indent=2))
    if failure is not None:
        typer.secho(f"{path}: DOES NOT FOLLOW: {failure}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1)
    again = "" if numbers_only else ", and the plan made anew from the parameters promises the same"
    if not as_json:
        typer.echo(f"{path}: {len(checks)} fields checked, all of them follow from the parameters{again}")


def _first_difference(path: Path) -> str | None:
    from consenso.errors import TamperError
    from consenso.estimators import categories, histograms, search
    from consenso.planning import replan
    from consenso.privacy.card import Card

    try:
        card = Card.load(path)
        known = {
            histograms.HISTOGRAMS: histograms.differences,
            search.SEARCH: search.differences,
            categories.CATEGORIES: categories.differences,
        }
        differences = known.get(card.algorithm, replan.differences)
        found = next(iter(differences(card)), None)
    except TamperError as error:
        return str(error)
    if found is None and path.is_dir():
        from consenso.study.verification import folder_faults

        found = next(folder_faults(path), None)
    return found
