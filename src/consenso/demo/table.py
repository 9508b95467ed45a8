"""The demo's tables: quality beside the fit without privacy, and what every observer learns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from consenso.demo.studies import DELTA
from consenso.demo.training import DemoRun, Outcome
from consenso.report.words import show_epsilon


def quality(trained: DemoRun) -> tuple[str, str, str]:
    """The measure of the private model, of the exact fit and of the simplest guess, as people read them."""
    kind = ".1%" if trained.measure == "accuracy" else ".3g"
    unit = "" if trained.measure == "accuracy" else " RMSE"
    return (
        f"{trained.private:{kind}}{unit}",
        f"{trained.exact:{kind}}{unit}",
        f"{trained.simplest:{kind}}{unit}",
    )


def observers(trained: DemoRun) -> list[tuple[str, str, str]]:
    """Observer, epsilon with the record blanked, epsilon with it replaced."""
    found = {
        (entry.observer, entry.adjacency): show_epsilon(entry.epsilon)
        for entry in trained.card.entries
        if entry.unit == "record"
    }
    names = list(dict.fromkeys(observer for observer, _ in found))
    return [(name, found[name, "blanked"], found[name, "replace-one"]) for name in names]


def show(outcome: Outcome, console: Console) -> None:
    """Print both tables and one whole card."""
    table = Table(title=f"On public test records, epsilon = {outcome.epsilon:g}, delta = {DELTA:g}")
    for column in ("study", "algorithm", "private", "without privacy", "simplest guess", "seconds"):
        table.add_column(column, justify="left" if column in ("study", "algorithm") else "right")
    for trained in outcome.trained:
        console.print(f"{trained.name:14} {trained.title} ({trained.rounds})", highlight=False)
        table.add_row(trained.name, trained.card.algorithm, *quality(trained), f"{trained.seconds:.1f}")
    console.print(table)
    console.print("The simplest guess is the commonest class, or the mean.")
    who = Table(title="What each observer learns of one record (epsilon; smaller is better; none: no guarantee)")
    for column in ("study", "observer", "blanked, n public", "replace-one"):
        who.add_column(column)
    for trained in outcome.trained:
        for observer, removed, replaced in observers(trained):
            who.add_row(trained.name, observer, removed, replaced)
    console.print(who)
    first = outcome.trained[0]
    console.print(f"\n[bold]The privacy card of {first.name}[/bold]")
    console.print(first.card.text(), highlight=False, markup=False)
    console.print(
        "The noise is seeded so that the demo repeats: a simulation, not private. Without privacy.seed in its "
        "study a run "
        "draws secret noise."
    )
