"""`consenso predict`: what a trained model says of the records of a table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consenso.cli.completing import complete_runs
from consenso.cli.options import JsonOption
from consenso.cli.reading import check_new_file, write_privately
from consenso.errors import InputError

if TYPE_CHECKING:
    from consenso.models import Model, Scored


def register(app: typer.Typer) -> None:
    app.command(name="predict", rich_help_panel="Models")(show)


def show(
    model: Annotated[
        Path,
        typer.Argument(help="A model file, or the folder of a run.", autocompletion=complete_runs, show_default=False),
    ],
    file: Annotated[
        Path, typer.Argument(help="A table with the columns of the model's schema; the target may be absent.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write a CSV file, readable by you only; an existing one is kept.")
    ] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Add the probability of each class.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Predict for each record of a table; lines are numbered as records of the file, from 0.

    What is printed is as private as the file. A record with a missing value that the schema drops has no line.

    Exit codes: 0 fine, 1 the model file was changed after it was written, 2 bad input.

    Example: consenso predict runs/income new-clients.csv --out predictions.csv
    """
    from consenso.errors import TamperError
    from consenso.models import load_model

    try:
        loaded = load_model(model)
    except TamperError as error:
        typer.secho(f"consenso: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from error
    if out is not None:
        check_new_file(out)
    if probabilities and not loaded.has_probabilities:
        raise InputError(f"--probabilities: the {loaded.loss.name} loss is no likelihood of classes; leave it out.")
    found = loaded.predict_table(file)
    if as_json:
        typer.echo(json.dumps(_document(loaded, found, probabilities=probabilities), allow_nan=False))
        if out is None:
            return
    text = _table(loaded, found, probabilities=probabilities)
    if out is None:
        typer.echo(text, nl=False)
        return
    write_privately(out, text)
    if not as_json:
        typer.echo(f"{out}: {len(found.rows)} predictions")


def _document(model: Model, found: Scored, *, probabilities: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "classes": None if model.classes is None else list(model.classes),
        "rows": found.rows.tolist(),
        "predictions": found.predictions.tolist(),
    }
    if probabilities and found.probabilities is not None:
        document["probabilities"] = found.probabilities.tolist()
    return document


def _table(model: Model, found: Scored, *, probabilities: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    with_chances = probabilities and found.probabilities is not None and model.classes is not None
    writer.writerow(["row", "prediction", *(model.classes if with_chances and model.classes else ())])
    for place, (row, prediction) in enumerate(zip(found.rows.tolist(), found.predictions.tolist(), strict=True)):
        chances = found.probabilities[place].tolist() if with_chances and found.probabilities is not None else ()
        writer.writerow([row, prediction, *chances])
    return text.getvalue()
