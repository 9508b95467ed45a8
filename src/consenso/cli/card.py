"""`consenso card`: show the privacy card of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consenso.errors import TamperError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from consenso.privacy.card import Card


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="card", rich_help_panel="Privacy")(show)


def show(
    path: Annotated[Path, typer.Argument(help="The folder of a run, or a card.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="The JSON of the card.")] = False,
    plain: Annotated[bool, typer.Option("--text", help="Plain text instead of tables.")] = False,
) -> None:
    """Show a privacy card: who learns what, by which theorem, on which assumptions.

    Shown is what the card says; `consenso verify` computes its numbers again.

    Exit codes: 0 fine, 1 the card was changed after it was written, 2 bad input.

    Example: consenso card runs/income --text
    """
    from rich.console import Console

    from consenso.privacy.card import Card

    try:
        card = Card.load(path)
    except TamperError as error:
        typer.secho(f"consenso: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(json.dumps(card.to_json(), indent=2, sort_keys=True))
    elif plain:
        typer.echo(card.text(), nl=False)
    else:
        _show_tables(card, Console())


def _show_tables(card: Card, console: Console) -> None:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from consenso.privacy.card.text import (
        BLANKED,
        UNIT_NAMES,
        WARNING,
        Notes,
        claims_a_blanked_record,
        facts_text,
        figures_text,
        overview,
        scopes,
        spread_text,
        threat_text,
    )
    from consenso.privacy.release import sums_in_steps

    if card.simulation:
        console.print(Panel(Text(WARNING, style="bold red"), border_style="red"))
    facts = Table(title=f"Privacy card of {card.algorithm}", title_justify="left", show_header=False)
    facts.add_column()
    facts.add_column(overflow="fold")
    for name, value in (
        ("data", facts_text(card.data)),
        ("parameters", facts_text(card.parameters)),
        ("trust", card.trust),
        *([("threat model", threat_text(card))] if sums_in_steps(card.trust) else []),
        ("sampler", card.sampler),
        ("delta", f"{card.delta:g}"),
        ("versions", facts_text(card.versions)),
    ):
        facts.add_row(name, Text(value))
    console.print(facts)
    table = Table(title=f"Who learns what: epsilon at delta {card.delta:g}", title_justify="left")
    table.add_column("observer")
    for unit, relation in scopes(card):
        table.add_column(f"{UNIT_NAMES[unit]}, {relation}", justify="right")
    for who, figures in overview(card):
        table.add_row(who, *figures)
    console.print(table)
    if claims_a_blanked_record(card):
        console.print(Text(BLANKED))
    if card.trust == "tree":
        console.print(_pairs_table(card))
    notes = Notes()
    for entry in card.entries:
        over_parties = spread_text(entry)
        cost = figures_text(entry) + (f"; over the parties: {over_parties}" if over_parties else "")
        console.print(Text(f"- {entry.sentence} {notes.of(entry)}\n  {cost}"))
    console.print()
    for number, note in notes:
        console.print(Text(f"[{number}] {note}"))


def _pairs_table(card: Card) -> Table:
    """What peers learn of each other, by the distance between them; follows from the parameters of the card."""
    from rich.table import Table

    from consenso.planning.pairs import QUANTILES, pair_costs
    from consenso.planning.replan import replan
    from consenso.privacy.card.entry import round_up

    table = Table(title=f"Pairs of peers: quantiles of epsilon at delta {card.delta:g}", title_justify="left")
    table.add_column("pairs")
    for head in ("how many", *(f"{share:.0%}" for share in QUANTILES)):
        table.add_column(head, justify="right")
    for label, many, found in pair_costs(replan(card), card.delta).quantiles():
        table.add_row(label, f"{many:,}", *map(round_up, found))
    return table
