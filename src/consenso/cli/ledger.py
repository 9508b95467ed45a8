"""`consenso ledger`: the budget ledger of a data set."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consenso.cli import in_words
from consenso.cli.completing import complete_ledgers
from consenso.errors import TamperError

if TYPE_CHECKING:
    from consenso.privacy.ledger import Balance, Ledger, Run

_Path = Annotated[Path, typer.Argument(help="The ledger file.", autocompletion=complete_ledgers, show_default=False)]
_Json = Annotated[bool, typer.Option("--json", help="JSON instead of tables.")]

group = typer.Typer(
    no_args_is_help=True,
    help="The privacy budget of a data set, enforced over all runs.\n\n"
    "Exit codes: 0 fine, 1 verification failed, 2 bad input.",
)


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    app.add_typer(group, name="ledger", rich_help_panel="Privacy")


@group.command()
def create(
    path: _Path,
    dataset: Annotated[str, typer.Option(help="Name of the data set.")],
    epsilon: Annotated[float, typer.Option(help="The most that all runs together may cost.")],
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is stated.")],
    unit: Annotated[str, typer.Option(help="What is protected: record or party.")] = "record",
    adjacency: Annotated[str, typer.Option(help="replace-one or add-remove.")] = "replace-one",
    observer: Annotated[
        list[str] | None, typer.Option(help="Against whom; repeat for several observers with this budget.")
    ] = None,
    renew: Annotated[
        str | None, typer.Option(help="month: every calendar month (UTC) has this budget anew; left out, never.")
    ] = None,
) -> None:
    """Make a ledger; an existing one is never replaced.

    Exit codes: 0 fine, 1 the ledger cannot be believed, 2 bad input.

    Example: consenso ledger create patients.ledger --dataset patients --epsilon 3 --delta 1e-6
    """
    from consenso.privacy.ledger import Budget, Ledger

    # Budgets check the texts that the command line hands over as they are.
    scope: dict[str, Any] = {"unit": unit, "adjacency": adjacency, "renews": renew}
    budgets = [Budget(observer=name, epsilon=epsilon, delta=delta, **scope) for name in observer or ["public"]]
    ledger = Ledger.create(path, dataset=dataset, budgets=budgets)
    count = "1 budget" if len(budgets) == 1 else f"{len(budgets)} budgets"
    typer.echo(f"{path}: {count} for {ledger.dataset}; head {ledger.head().hash}")


@group.command()
def show(path: _Path, as_json: _Json = False) -> None:
    """Every run, and what is spent and left of each budget. Never writes.

    Exit codes: 0 fine, 1 the ledger cannot be believed, 2 bad input.

    Example: consenso ledger show patients.ledger
    """
    from consenso.privacy.ledger import Ledger

    with _report_tampering():
        ledger = Ledger.open(path)
        runs, balances = ledger.runs(), ledger.balances()
    if as_json:
        typer.echo(json.dumps(_describe_ledger(ledger, runs, balances), indent=2))
    else:
        _show_tables(ledger, runs, balances)


@group.command()
def verify(
    path: _Path,
    head: Annotated[str | None, typer.Option(help="A head noted earlier, which must be part of the chain.")] = None,
) -> None:
    """Check every row, the chain, the anchors and the history; exit 1 and name the first bad row if one is found.

    Exit codes: 0 fine, 1 the ledger cannot be believed, 2 bad input.

    Example: consenso ledger verify patients.ledger --head 1f0c
    """
    from consenso.privacy.ledger import verify_file

    verdict = verify_file(path, head)
    if verdict.fault is not None:
        typer.secho(f"{path}: NOT SOUND: {verdict.fault}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1)
    typer.echo(f"{path}: sound, {verdict.rows} rows, head {verdict.head}")


@group.command()
def head(path: _Path) -> None:
    """Print the head: note it elsewhere, and `verify --head` finds any later change of what stands before it.

    Exit codes: 0 fine, 1 the ledger cannot be believed, 2 bad input.

    Example: consenso ledger head patients.ledger
    """
    from consenso.privacy.ledger import Ledger

    with _report_tampering():
        typer.echo(Ledger.open(path).head().hash)


@group.command()
def export(
    path: _Path,
    out: Annotated[Path | None, typer.Option(help="The file to write; without it, standard output.")] = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="What was spent, as YAML for the public registry of deployments.")
    ] = False,
) -> None:
    """Every row with its hash, as JSON; or what was spent in all, as a draft for the public registry.

    Exit codes: 0 fine, 1 the ledger cannot be believed, 2 bad input.

    Example: consenso ledger export patients.ledger --out rows.json
    """
    from consenso.privacy.ledger import Ledger
    from consenso.privacy.ledger.deployment import spending_yaml

    with _report_tampering():
        ledger = Ledger.open(path)
        text = spending_yaml(ledger) if registry else json.dumps(ledger.export(), indent=2, sort_keys=True) + "\n"
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(f"{out}: written")


@group.command()
def plot(
    path: _Path,
    out: Annotated[Path, typer.Option(help="The picture to write: .svg or .png.")] = Path("budget.svg"),
) -> None:
    """Draw what was spent of every budget over time, with its limit. Never writes to the ledger.

    Exit codes: 0 fine, 1 the ledger cannot be believed, 2 bad input.

    Example: consenso ledger plot patients.ledger --out budget.png
    """
    from consenso.privacy.ledger import Ledger
    from consenso.report.spending import draw_spending

    with _report_tampering():
        draw_spending(Ledger.open(path), out)
    typer.echo(f"{out}: written")


@group.command()
def lease(
    path: _Path,
    to: Annotated[
        str | None, typer.Option(help="Hand the ledger to this host; copy the files there afterwards.")
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Write here from now on; you state that no other copy is in use.")
    ] = False,
) -> None:
    """Which host may write to the ledger, and to which file: show it, hand it over, or take it over.

    Two copies of a ledger would be spent twice, so one host writes to one file. A file that is renamed stays the same.
    To move a ledger to another host, hand it over (`lease` there prints the name of that host) and copy it. To go on
    with a copy on this host, because it was restored or moved to another disk, take the copy over.

    Exit codes: 0 fine, 1 the ledger cannot be believed, 2 bad input.

    Example: consenso ledger lease patients.ledger --to other-host
    """
    from consenso.errors import InputError
    from consenso.privacy.ledger import Ledger
    from consenso.privacy.ledger.lease import this_host

    if to is not None and take_over:
        raise InputError("ledger lease: --to gives the ledger away and --take-over takes it; say one of them.")
    with _report_tampering():
        ledger = Ledger.open(path)
        if to is not None:
            ledger.hand_over(to)
        if take_over:
            ledger.take_over()
        typer.echo(
            f"{path}: written to by {ledger.holder() or 'whoever comes first'} at "
            f"{ledger.place() or 'the first copy that is written to'}; this host is {this_host()}"
        )


@contextlib.contextmanager
def _report_tampering() -> Iterator[None]:
    """A ledger that cannot be believed ends the command like a failed verification."""
    try:
        yield
    except TamperError as error:
        typer.secho(f"consenso: {in_words(str(error))}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from error


def _describe_ledger(ledger: Ledger, runs: tuple[Run, ...], balances: tuple[Balance, ...]) -> dict[str, Any]:
    return {
        "dataset": ledger.dataset,
        "budgets": [
            {
                "observer": balance.budget.observer,
                "unit": balance.budget.unit,
                "adjacency": balance.budget.adjacency,
                "delta": balance.budget.delta,
                "epsilon": balance.budget.epsilon,
                "spent": balance.spent,
                "left": balance.left,
                "method": balance.method,
                "renews": balance.budget.renews,
                "period": balance.period,
                "overall": balance.overall,
            }
            for balance in balances
        ],
        "runs": [
            {
                "run": run.run_id,
                "what": run.what,
                "state": run.state,
                "row": run.row,
                "closed": run.closed,
                "time": run.time,
                "exceeds": list(run.exceeds),
            }
            for run in runs
        ],
    }


def _show_tables(ledger: Ledger, runs: tuple[Run, ...], balances: tuple[Balance, ...]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from consenso.privacy.rounding import round_down, round_up

    console = Console()
    spending = Table(title=f"Budgets of {ledger.dataset}", title_justify="left")
    renewing = any(balance.period for balance in balances)
    columns = ("observer", "unit", "adjacency", "delta", "budget", "spent", "left")
    for column in (*columns, *(("month", "all months") if renewing else ())):
        spending.add_column(column, overflow="fold")
    for balance in balances:
        budget = balance.budget
        left = Text(round_down(balance.left, 6), style="red" if balance.left < 0 else "")
        cells = [budget.observer, budget.unit, budget.adjacency, round_up(budget.delta, 3), f"{budget.epsilon:.6g}"]
        since = [balance.period or "-", round_up(balance.overall, 6)] if renewing else []
        spending.add_row(*map(Text, cells), Text(round_up(balance.spent, 6)), left, *map(Text, since))
    console.print(spending)
    if not runs:
        console.print("No run has been charged yet.")
        return
    history = Table(title="Runs", title_justify="left")
    for column in ("row", "run", "what", "state", "since"):
        history.add_column(column, overflow="fold")
    for run in runs:
        state = f"{run.state}, spent more than reserved" if run.exceeds else run.state
        history.add_row(*map(Text, [str(run.row), run.run_id, run.what, state, run.time]))
    console.print(history)
