"""`consenso card`: show the privacy card of a run, in the depth and the form that is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consenso.cli.options import CardArgument
from consenso.errors import InputError, TamperError
from consenso.trust import mode_of

if TYPE_CHECKING:
    from consenso.privacy.card import Card


def register(app: typer.Typer) -> None:
    app.command(name="card", rich_help_panel="Privacy")(show)


def show(
    path: CardArgument,
    everything: Annotated[
        bool, typer.Option("--all", help="Every promise with its theorem, assumptions and parameters.")
    ] = False,
    one: Annotated[bool, typer.Option("--sentence", help="One sentence for everybody.")] = False,
    registry: Annotated[
        bool, typer.Option("--registry", help="YAML for the public registry of deployments; fill in what is left open.")
    ] = False,
    evaluation: Annotated[
        bool, typer.Option("--evaluation", help="Answers to the questions of NIST SP 800-226, as Markdown.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The JSON of the card.")] = False,
) -> None:
    """Show a privacy card: one sentence, and a table of who learns what; with --all everything.

    Shown is what the card says; `consenso verify` computes its numbers again.

    Exit codes: 0 fine, 1 the card was changed after it was written, 2 bad input.

    Example: consenso card runs/income --all
    """
    from consenso.privacy.card import Card

    if sum((everything, one, registry, evaluation, as_json)) > 1:
        raise InputError("--all, --sentence, --registry, --evaluation, --json: one form at a time; choose one.")
    try:
        card = Card.load(path)
    except TamperError as error:
        typer.secho(f"consenso: {path}: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(json.dumps(card.to_json(), indent=2, sort_keys=True))
    elif one:
        typer.echo(card.sentence())
    elif everything:
        typer.echo(card.text(), nl=False)
    elif registry:
        from consenso.privacy.card.deployment import registry_yaml

        typer.echo(registry_yaml(card, name=_title(path)), nl=False)
    elif evaluation:
        from consenso.privacy.card.evaluation import evaluation_text

        typer.echo(evaluation_text(card), nl=False)
    else:
        typer.echo(card.summary(), nl=False)
        if mode_of(card.trust).has_open_tree:
            typer.echo(_pairs_text(card))
        typer.echo(f"Everything, with theorems and assumptions: consenso card {path} --all")


def _title(path: Path) -> str | None:
    """The title of the study beside a card, if there is one."""
    import tomllib

    from consenso.study.folder import STUDY

    study = (path if path.is_dir() else path.parent) / STUDY
    if not study.exists():
        return None
    try:
        return str(tomllib.loads(study.read_text(encoding="utf-8")).get("title") or "") or None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InputError(f"{study}: not TOML; restore the file that the run was written with.") from None


def _pairs_text(card: Card) -> str:
    """What peers learn of each other, by the distance between them; follows from the parameters of the card."""
    from consenso.planning.pairs import QUANTILES, pair_costs
    from consenso.planning.replan import replan
    from consenso.privacy.rounding import round_up

    lines = [f"Pairs of peers: quantiles ({', '.join(f'{share:.0%}' for share in QUANTILES)}) of epsilon"]
    for label, many, found in pair_costs(replan(card), card.delta).quantiles():
        lines.append(f"  {label} ({many:,} pairs): {', '.join(map(round_up, found))}")
    return "\n".join(lines)
