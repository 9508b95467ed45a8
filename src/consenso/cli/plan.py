"""`consenso plan`: everything that is known of a run before data are touched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from consenso.cli.cluster import Engine, EngineOption
from consenso.cli.options import EpsilonOption, JsonOption, StudyArgument
from consenso.cli.reading import count_parties, count_units, read_study

if TYPE_CHECKING:
    from rich.console import Console

    from consenso.study.plan_summary import PlanSummary


def register(app: typer.Typer) -> None:
    app.command(name="plan", rich_help_panel="Studies")(show)


def show(
    study: StudyArgument,
    epsilon: EpsilonOption = None,
    engine: EngineOption = Engine.process,
    as_json: JsonOption = False,
) -> None:
    """Plan a study: noise, rounds, what every observer learns, what is read how often, time, memory, and the error.

    No data are touched and nothing is spent.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso plan income.toml --epsilon 0.5
    """
    from consenso.study.plan_summary import summarize_plan

    found = summarize_plan(read_study(study, epsilon), on_cluster=engine is Engine.dask)
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2, allow_nan=False))
        return
    from rich.console import Console

    _show(found, Console())


def _show(found: PlanSummary, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from consenso.privacy.card.depths import Overview
    from consenso.privacy.card.text import WARNING

    if found.simulation:
        console.print(Text(WARNING, style="bold red"))
    facts = Table(show_header=False, title=f"Plan: {found.algorithm}", title_justify="left")
    facts.add_column()
    facts.add_column(overflow="fold")
    for name, value in _facts(found):
        facts.add_row(name, Text(value))
    console.print(facts)
    shown = Overview(card=found.card)
    who = Table(title=f"Who learns what: epsilon at delta {found.delta:g}", title_justify="left")
    for place, head in enumerate(shown.heads):
        who.add_column(head, justify="right" if place else "left")
    for row in shown.rows:
        who.add_row(row.who, *row.epsilons, row.odds)
    console.print(who)
    for note in shown.notes:
        console.print(Text(note))
    console.print(
        Text("Nothing was read or spent. consenso train runs it; docs/privacy.md says what each figure means.")
    )


def _facts(found: PlanSummary) -> list[tuple[str, str]]:
    from consenso.privacy.card.text import cost_text
    from consenso.report.charts import number_text
    from consenso.study.cost import show_bytes

    rows = [
        ("why", found.reason),
        ("rounds paid for", f"{found.rounds}"),
        (
            "data",
            f"{count_units(found.records, found.card.data['unit'])} of {count_parties(found.parties)}, "
            f"{found.features} features",
        ),
        ("trust", f"{found.trust}; the budget is for: {found.observer}"),
        ("promise", cost_text(found.epsilon, found.delta)),
        ("noise", "; ".join(f"{name}: {number_text(scale)}" for name, scale in found.noise.items()) or "none"),
        ("sampler", found.sampler),
        ("reading", found.cost.reading.sentence),
        ("expected", f"about {_seconds(found.cost.seconds)} and {show_bytes(found.cost.memory)} on this machine"),
        ("study", found.study),
    ]
    if found.unprotected_people is not None:
        told = (
            f"not protected: the column {found.unprotected_people!r} says whose a record is, and the promise is for "
            'one record; privacy.unit = "person" protects all records of a person'
        )
        rows.insert(5, ("people", told))
    prediction = found.prediction
    if prediction is None:
        told = "no bound: it needs a squared penalty on all coefficients and a smooth loss with bounded slopes"
    elif prediction.informative:
        told = (
            f"at most {prediction.excess_risk:.3g} above the exact objective, for {prediction.rounds} noisy gradient "
            "steps with this budget (proved; the planned algorithm is meant to do better)"
        )
    else:
        told = (
            f"the proved bound ({prediction.excess_risk or prediction.squared_distance:.3g}) is above the zero model's "
            f"{prediction.at_zero:.3g} and says nothing here"
        )
    rows.insert(-1, ("predicted loss", told))
    return rows


def _seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
