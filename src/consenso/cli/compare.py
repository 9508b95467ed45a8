"""`consenso compare`: several runs, studies or budgets side by side."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consenso.cli.completing import complete_studies_and_runs
from consenso.cli.options import JsonOption
from consenso.cli.reading import read_numbers
from consenso.errors import InputError

if TYPE_CHECKING:
    from consenso.privacy.card import Card
    from consenso.report.curves import Curves
    from consenso.study import Study

MOST_BESIDE = 3  # columns that fit on a line of eighty letters


def register(app: typer.Typer) -> None:
    app.command(name="compare", rich_help_panel="Studies")(show)


def show(
    items: Annotated[
        list[Path],
        typer.Argument(
            help="Studies, or folders of runs.", autocompletion=complete_studies_and_runs, show_default=False
        ),
    ],
    epsilon: Annotated[str | None, typer.Option(help="Budgets to compare for every study, such as 0.5,1,3.")] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Train each study, too. Every run spends its own budget.")
    ] = False,
    runs: Annotated[
        int, typer.Option(help="Runs of every study with --train, each with the next seed: simulations only.", min=1)
    ] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the runs of --train.")] = Path("runs/compare"),
    as_json: JsonOption = False,
) -> None:
    """Put runs or plans side by side: algorithm, rounds, noise, epsilon by observer, error on public test records.

    Studies are planned, which touches no data, unless --train is given. What was trained and measured on public test
    records is drawn against epsilon, into the folder of the runs: compare.html, .svg, .csv and, with Matplotlib, .png.
    One run is a matter of luck: with --runs the mean is drawn, and a band from the least to the most.
    The fit without privacy is drawn where all studies are simulations, and nowhere else: it would tell of the records.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso compare income.toml secure.toml --epsilon 0.5,1,3 --train
    """
    studies = _studies(items, epsilon)
    if train and any(study is None for _, study, _ in studies):
        raise InputError("--train: a folder of a run is trained already; compare studies, or leave --train out.")
    if runs > 1:
        _check_repeats([study for _, study, _ in studies if study is not None], train=train)
    rows = []
    for name, study, path in studies:
        if study is None:
            rows.append(_of_run(name, path))
        elif train:
            rows += train_repeatedly(name, study, out, runs)
        else:
            rows.append(plan_or_train(name, study, None))
    drawn = draw(rows, [study for _, study, _ in studies if study is not None])
    written = [] if drawn is None else drawn.write(out, "compare")
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False))
    else:
        (_show if len(rows) <= MOST_BESIDE else _show_below)(rows)
        for path in written[:1]:
            typer.echo(f"Page: {path}")


def _studies(items: list[Path], epsilon: str | None) -> list[tuple[str, Study | None, Path]]:
    """Name, study and path of everything that is compared; a run has no study."""
    from consenso.study import Study

    if epsilon is not None:
        if any(path.is_dir() for path in items):
            raise InputError("--epsilon: budgets are compared for studies; name files, not the folders of runs.")
        alone = len(items) == 1
        return [
            (f"{'' if alone else f'{path.stem}-'}epsilon-{value:g}", Study.load(path).with_epsilon(value), path)
            for path in items
            for value in read_numbers(epsilon)
        ]
    found: list[tuple[str, Study | None, Path]] = [
        (path.name, None, path) if path.is_dir() else (path.stem, Study.load(path), path) for path in items
    ]
    names = [name for name, _, _ in found]
    return [(name if names.count(name) == 1 else str(path), study, path) for name, study, path in found]


def draw(rows: list[dict[str, Any]], studies: list[Study]) -> Curves | None:
    """Quality against epsilon, a line for every algorithm and trust; None where nothing was measured."""
    from consenso.report.curves import Curves, PlottedCurve

    measured = [row for row in rows if row["metrics"] and isinstance(row["promised"], float)]
    measure = "accuracy" if any("accuracy" in row["metrics"] for row in measured) else "rmse"
    measured = [row for row in measured if isinstance(row["metrics"].get(measure), float)]
    if not measured:
        return None
    lines: dict[str, dict[float, list[float]]] = {}
    for row, name in zip(measured, _line_names(measured), strict=True):
        lines.setdefault(name, {}).setdefault(row["promised"], []).append(row["metrics"][measure])
    most = max(len(values) for points in lines.values() for values in points.values())
    curves = [
        PlottedCurve(
            name=name,
            epsilons=sorted(points),
            means=[sum(points[each]) / len(points[each]) for each in sorted(points)],
            lows=[min(points[each]) for each in sorted(points)],
            highs=[max(points[each]) for each in sorted(points)],
        )
        for name, points in lines.items()
    ]
    return Curves(
        title="Runs beside each other",
        measure=measure,
        delta=measured[0]["delta"],
        curves=tuple(curves),
        references=_references(studies, measured, measure),
        note=("One run each" if most == 1 else f"Means of {most} runs each, with the least and the most")
        + ", measured on public test records; epsilon is for whom the run was planned.",
    )


def _line_names(rows: list[dict[str, Any]]) -> list[str]:
    """What tells the lines apart: setting, algorithm and trust, as far as they differ."""
    parts = {"setting": "{}", "algorithm": "{}", "trust": "{} trust"}
    differ = [part for part in parts if len({row[part] for row in rows}) > 1] or ["algorithm", "trust"]
    return [", ".join(parts[part].format(row[part]) for part in differ if row[part]) for row in rows]


def _references(studies: list[Study], measured: list[dict[str, Any]], measure: str) -> dict[str, float]:
    simplest = measured[0]["metrics"].get("majority" if measure == "accuracy" else "rmse of the mean")
    found = {} if simplest is None else {"simplest guess": float(simplest)}
    if not studies or not all(study.simulation for study in studies):
        return found
    from consenso.solvers.exact import fit_exact
    from consenso.study.metrics import compute_metrics
    from consenso.study.training import model_with

    public = studies[0].evaluation_records()
    if public is None:
        return found
    problem = studies[0].problem()
    exact = fit_exact(problem, studies[0].shards()).reshape(-1, problem.outputs)
    value = compute_metrics(model_with(studies[0], exact, None), public)[measure]
    return {"without privacy": float(value), **found}


def _check_repeats(studies: list[Study], *, train: bool) -> None:
    if not train or not studies:
        raise InputError("--runs: only what is trained is repeated; add --train.")
    if not all(study.simulation for study in studies):
        raise InputError(
            "--runs: every run with secret noise spends its budget anew, so only simulations are repeated; state a "
            "privacy.seed in the study, or leave --runs out."
        )


def train_repeatedly(name: str, study: Study, out: Path, runs: int) -> list[dict[str, Any]]:
    """What is compared of every run of a study, the first with its own seed and the others with the next ones."""
    if runs == 1:
        return [plan_or_train(name, study, out / name)]
    first = study.privacy.seed or 0
    seeds = range(first, first + runs)
    return [
        plan_or_train(f"{name}-seed-{seed}", study.change({"privacy.seed": seed}), out / f"{name}-seed-{seed}")
        for seed in seeds
    ]


def plan_or_train(name: str, study: Study, out: Path | None) -> dict[str, Any]:
    """What is compared of a study: its plan, and with a folder for its run what it reached."""
    from consenso.study.folder import finite
    from consenso.study.plan_summary import summarize_plan

    found = summarize_plan(study)
    row = {**_row(name, found.card, found.observer), "setting": study.setting.kind}
    row["noise"] = {release: finite(scale) for release, scale in found.noise.items()}
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
    from consenso.study.folder import finite

    unit, adjacency = card.data["unit"], card.data["adjacency"]
    return {
        "name": name,
        "algorithm": card.algorithm,
        "rounds": card.parameters["rounds"],
        "delta": card.delta,
        "protects": f"{unit}, {adjacency}",
        "observer": observer,
        "trust": card.trust,
        "setting": None,
        "promised": _find_epsilon(card, observer),
        "simulation": card.simulation,
        "epsilon": {
            entry.observer.partition(":")[0]: finite(entry.epsilon)
            for entry in card.entries
            if (entry.unit, entry.adjacency) == (unit, adjacency)
        },
        "metrics": None,
    }


def _find_epsilon(card: Card, observer: str | None) -> float | None:
    """Epsilon for whom the run was planned, or, where that is not known, for readers of the model."""
    from consenso.study.plan_summary import epsilon_for

    found = epsilon_for(card, observer or "public")
    return found if math.isfinite(found) else None


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Side by side", title_justify="left")
    columns = [
        "algorithm",
        "rounds",
        "protects",
        "delta",
        "observer",
        "trust",
        "simulation",
        "noise",
        "predicted",
        "folder",
    ]
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


def _show_below(rows: list[dict[str, Any]]) -> None:
    """A line for each, with what fits on one; --json has all."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    measure = next((m for m in ("accuracy", "rmse") if any(m in (row["metrics"] or {}) for row in rows)), None)
    heads = ["", "algorithm", "trust", "rounds", "epsilon", *([measure] if measure else [])]
    for head in heads:
        table.add_column(head, justify="right" if head in ("rounds", "epsilon", measure) else "left", overflow="fold")
    for row in rows:
        promised = "no guarantee" if row["promised"] is None else _text(row["promised"])
        reached = [_text((row["metrics"] or {}).get(measure))] if measure else []
        table.add_row(row["name"], row["algorithm"], row["trust"], str(row["rounds"]), promised, *reached)
    Console().print(table)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return "; ".join(f"{name} {_text(item)}" for name, item in value.items())
    if value == "inf":
        return "no guarantee"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
