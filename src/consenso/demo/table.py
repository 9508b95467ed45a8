"""The demo's table: accuracy of each setting, and what every observer learns."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table

from consenso.demo.training import DELTA, Outcome
from consenso.privacy.observers import parse


def epsilons(outcome: Outcome) -> list[tuple[str, str, dict[str, float]]]:
    """Setting, observer, and epsilon by adjacency for one record; infinite where nothing protects."""
    rows = []
    for trained in outcome.trained:
        for observer in trained.plan.observers():
            found = {
                adjacency: trained.plan.guarantee(observer, DELTA, unit="record", adjacency=adjacency).epsilon(DELTA)
                for adjacency in ("add-remove", "replace-one")
            }
            rows.append((trained.name, observer.key, found))
    return rows


def shown(epsilon: float) -> str:
    """An epsilon as people read it."""
    return "no guarantee" if math.isinf(epsilon) else f"{epsilon:.3g}"


def show(outcome: Outcome, console: Console) -> None:
    """Print both tables."""
    table = Table(
        title=f"Is a digit even? Accuracy on public test digits, epsilon = {outcome.epsilon:g}, delta = {DELTA:g}"
    )
    for column in ("setting", "what", "algorithm", "accuracy", "seconds"):
        table.add_column(column, justify="right" if column in ("accuracy", "seconds") else "left")
    table.add_row("", "majority class", "", f"{outcome.majority:.1%}", "")
    for trained in outcome.trained:
        algorithm = type(trained.plan.algorithm).__name__
        table.add_row(trained.name, trained.what, algorithm, f"{trained.accuracy:.1%}", f"{trained.seconds:.1f}")
    table.add_row("", "the same without privacy", "", f"{outcome.exact:.1%}", "")
    console.print(table)
    who = Table(title="What each observer learns of one record (epsilon; smaller is better)")
    for column in ("setting", "observer", "who that is", "add-remove", "replace-one"):
        who.add_column(column)
    for setting, observer, found in epsilons(outcome):
        who.add_row(
            setting, observer, parse(observer).sentence, shown(found["add-remove"]), shown(found["replace-one"])
        )
    console.print(who)
    for trained in outcome.trained:
        console.print(f"\n[bold]{trained.name}[/bold]")
        console.print(trained.plan.card(DELTA).summary(), highlight=False, markup=False)
    console.print("The noise is seeded so that the demo repeats: a simulation, not private. Use Safe() for real data.")
