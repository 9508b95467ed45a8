"""`consenso compare`: several runs, studies or budgets side by side."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consenso.errors import InputError

if TYPE_CHECKING:
    from consenso.privacy.card import Card
    from consenso.study import Study


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="compare", rich_help_panel="Studies")(show)


def show(
    items: Annotated[list[Path], typer.Argument(help="Studies, or folders of runs.", show_default=False)],
    epsilon: Annotated[str | None, typer.Option(help="Budgets to compare for one study, such as 0.5,1,3.")] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Train each study, too. Every run spends its own budget.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the runs of --train.")] = Path("runs/compare"),
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Put runs or plans side by side: algorithm, rounds, noise, epsilon by observer, error on public test records.

    Studies are planned, which touches no data, unless --train is given.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso compare income.toml --epsilon 0.5,1,3 --json
    """
    studies = _studies(items, epsilon)
    if train and any(study is None for _, study, _ in studies):
        raise InputError("--train: a folder of a run is trained already; compare studies, or leave --train out.")
    rows = []
    for name, study, path in studies:
        if study is None:
            rows.append(_of_run(name, path))
        else:
            rows.append(_of_study(name, study, out / name if train else None))
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False))
    else:
        _show(rows)


def _studies(items: list[Path], epsilon: str | None) -> list[tuple[str, Study | None, Path]]:
    """Name, study and path of everything that is compared; a run has no study."""
    from consenso.study import Study

    if epsilon is not None:
        if len(items) != 1 or items[0].is_dir():
            raise InputError("--epsilon: budgets are compared for one study; name one file.")
        study = Study.load(items[0])
        return [(f"epsilon-{value:g}", study.with_epsilon(value), items[0]) for value in _numbers(epsilon)]
    found: list[tuple[str, Study | None, Path]] = [
        (path.name, None, path) if path.is_dir() else (path.stem, Study.load(path), path) for path in items
    ]
    names = [name for name, _, _ in found]
    return [(name if names.count(name) == 1 else str(path), study, path) for name, study, path in found]


def _numbers(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--epsilon {text}: numbers with commas between them are needed; write 0.5,1,3.") from None
    if any(not value > 0 for value in values) or len(set(values)) < len(values):
        raise InputError(f"--epsilon {text}: budgets are positive and different; write 0.5,1,3.")
    return values


def _of_study(name: str, study: Study, out: Path | None) -> dict[str, Any]:
    from consenso.study.plan_summary import outlook

    found = outlook(study)
    row = _row(name, found.card, found.observer)
    row["noise"] = {release: _finite(scale) for release, scale in found.noise.items()}
    row["predicted"] = None if found.prediction is None else found.prediction.excess_risk
    if out is not None:
        from consenso.study.training import train

        row["metrics"] = train(study, out).metrics
        row["folder"] = str(out)
    return row


def _of_run(name: str, path: Path) -> dict[str, Any]:
    from consenso.privacy.card import Card

    card = Card.load(path)
    row = _row(name, card, None)
    row["folder"] = str(path)
    metrics = path / "metrics.json"
    if metrics.exists():
        try:
            row["metrics"] = json.loads(metrics.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise InputError(f"{metrics}: not JSON; train the run again, or remove the file.") from None
    return row


def _row(name: str, card: Card, observer: str | None) -> dict[str, Any]:
    """What a card says, with epsilon by observer for the unit and adjacency that it was made for."""
    unit, adjacency = card.data["unit"], card.data["adjacency"]
    return {
        "name": name,
        "algorithm": card.algorithm,
        "rounds": card.parameters["rounds"],
        "delta": card.delta,
        "protects": f"{unit}, {adjacency}",
        "observer": observer,
        "simulation": card.simulation,
        "epsilon": {
            entry.observer.partition(":")[0]: _finite(entry.epsilon)
            for entry in card.entries
            if (entry.unit, entry.adjacency) == (unit, adjacency)
        },
        "metrics": None,
    }


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Side by side", title_justify="left")
    columns = ["algorithm", "rounds", "protects", "delta", "observer", "simulation", "noise", "predicted", "folder"]
    observers = sorted({who for row in rows for who in row["epsilon"]})
    figures = sorted({n for row in rows for n, v in (row["metrics"] or {}).items() if isinstance(v, int | float)})
    table.add_column("")
    for row in rows:
        table.add_column(row["name"], justify="right", overflow="fold")
    for column in columns:
        if any(row.get(column) is not None for row in rows):
            table.add_row(column, *(_text(row.get(column)) for row in rows))
    for who in observers:
        table.add_row(f"epsilon, {who}", *(_text(row["epsilon"].get(who)) for row in rows))
    for name in figures:
        table.add_row(name, *(_text((row["metrics"] or {}).get(name)) for row in rows))
    Console().print(table)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return "; ".join(f"{name} {_text(item)}" for name, item in value.items())
    if value == "inf":
        return "no guarantee"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
