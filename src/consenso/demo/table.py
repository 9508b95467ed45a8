"""The demo's table: every model beside the fit without privacy, its epsilon, and against whom."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.table import Table

from consenso.demo.studies import DELTA
from consenso.demo.training import DemoRun, Outcome
from consenso.report.words import show_epsilon

HEAD = ("setting", "learnt", "accuracy", "without privacy", "epsilon", "against whom")
SETTINGS = ("central", "federated", "decentralized")
LEARNT = {"digits": "which digit", "ward": "days in ward"}
AGAINST = {"public": "the public", "server": "the server", "eavesdropper": "every listener"}


def quality(trained: DemoRun) -> tuple[str, str, str]:
    """The measure of the private model, of the exact fit and of the simplest guess, as people read them."""
    kind = ".1%" if trained.measure == "accuracy" else "#.3g"
    unit = "" if trained.measure == "accuracy" else " days"
    return (
        f"{trained.private:{kind}}{unit}",
        f"{trained.exact:{kind}}{unit}",
        f"{trained.simplest:{kind}}{unit}",
    )


def rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """A row for every model, under HEAD."""
    return [
        (
            trained.name if trained.name in SETTINGS else "central",
            LEARNT.get(trained.name, "even or odd"),
            *quality(trained)[:2],
            show_epsilon(trained.epsilon),
            AGAINST[trained.observer],
        )
        for trained in outcome.trained
    ]


def compare_settings(outcome: Outcome) -> str:
    """Whether the three settings are equally accurate, as far as the test records can tell."""
    first, *others = [trained for trained in outcome.trained if trained.name in SETTINGS]
    unsure = math.sqrt(first.exact * (1 - first.exact) / first.tested)
    below = {each.name: first.private - each.private for each in others if first.private - each.private > unsure}
    told = f"{first.tested} test records cannot tell {100 * unsure:.1f} points apart"
    if not below:
        return f"The same accuracy in all three settings ({told})."
    equal = [each.name for each in (first, *others) if each.name not in below]
    worse = " and ".join(f"{name} is {100 * gap:.1f} points below" for name, gap in below.items())
    same = f"The same accuracy for {' and '.join(equal)} ({told}); " if len(equal) > 1 else ""
    return f"{same}{worse}: each party adds noise for itself, because no sum is hidden."


def markdown(outcome: Outcome) -> str:
    """The table and what it shows, for a page."""
    lines = [f"| {' | '.join(HEAD)} |", f"| {' | '.join('---' for _ in HEAD)} |"]
    lines += [f"| {' | '.join(row)} |" for row in rows(outcome)]
    return "\n".join([*lines, "", compare_settings(outcome), ""])


def show(outcome: Outcome, console: Console) -> None:
    """Print the table and what it shows."""
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=f"Private models, delta {DELTA:g}, on public test records"
    )
    for column in HEAD:
        # Two words above each other, so that the table fits into eighty letters.
        table.add_column(column.replace(" ", "\n"), justify="right" if column in HEAD[2:5] else "left", no_wrap=True)
    for row in rows(outcome):
        table.add_row(*row)
    console.print(table)
    console.print(compare_settings(outcome), highlight=False)
    console.print("The noise is seeded so that the demo repeats: a simulation, not private.", highlight=False)
