"""`consenso data`: the data sets of the library, and a first schema for a file of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consenso.cli.completing import complete_data_sets
from consenso.cli.options import JsonOption
from consenso.cli.reading import check_new_file, write_privately

if TYPE_CHECKING:
    from consenso.datasets import Description


def register(app: typer.Typer) -> None:
    """Add the group `data`."""
    group = typer.Typer(no_args_is_help=True, help="Data sets, and draft schemas for tables.")
    group.command("list")(list_sets)
    group.command("describe")(describe_set)
    group.command("draft-schema")(draft)
    app.add_typer(group, name="data", rich_help_panel="Data")


def list_sets(as_json: JsonOption = False) -> None:
    """List the data sets that loaders know.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso data list --json
    """
    from consenso.datasets import catalogue

    known = catalogue()
    if as_json:
        typer.echo(json.dumps([_summary(description) for description in known.values()], indent=2))
        return
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(Column("name", no_wrap=True), "task", "rows", "test rows", "features", "title", box=None)
    for description in known.values():
        sizes = (f"{number:,}" for number in (description.rows, description.test_rows, description.features))
        table.add_row(description.name, description.task, *sizes, description.title)
    Console().print(table)


def describe_set(
    name: Annotated[str, typer.Argument(help="The name of a data set.", autocompletion=complete_data_sets)],
    as_json: JsonOption = False,
) -> None:
    """Tell the sizes, licence, checksums and origin of a data set, and which of its files are on this machine.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso data describe adult
    """
    from consenso.datasets import describe

    description = describe(name)
    facts = _summary(description) | {
        "origin": description.origin,
        "notes": description.notes,
        "files": _files(description),
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for key in ("name", "title", "task", "rows", "test_rows", "features", "licence", "origin", "notes"):
        value = facts[key]
        typer.echo(f"{key.replace('_', ' '):<10} {f'{value:,}' if isinstance(value, int) else value}")
    for entry in facts["files"]:
        typer.echo(f"{'file':<10} {entry['name']}")
        typer.echo(f"{'':<10} sha256 {entry['sha256']}")
        typer.echo(f"{'':<10} {'from ' + entry['url'] if entry['url'] else 'not served in this form'}")
        typer.echo(f"{'':<10} {'found at ' + entry['path'] if entry['path'] else 'not on this machine'}")


def draft(
    file: Annotated[Path, typer.Argument(help="A .csv, .tsv, .parquet, .npz or .libsvm file.")],
    out: Annotated[Path | None, typer.Option(help="Where to write the draft; standard output without it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Guess a schema from a file. It is as PRIVATE as the file until you have replaced its ranges and categories.

    Exit codes: 0 fine, 2 bad input.

    Example: consenso data draft-schema clients.csv --out schema.toml
    """
    from consenso.schema import Schema, draft_schema

    if out is not None:
        check_new_file(out)
    text = draft_schema(file)
    if out is not None:
        write_privately(out, text)
    if as_json:
        columns = {column.name: column.kind for column in Schema.parse(text).columns}
        facts = {"file": str(file), "out": None if out is None else str(out), "draft": True, "columns": columns}
        typer.echo(json.dumps(facts | ({"schema": text} if out is None else {}), indent=2))
    elif out is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"{out}: a draft; replace its ranges and categories by public ones, then remove draft = true.")


def _summary(description: Description) -> dict[str, Any]:
    keys = ("name", "title", "task", "rows", "test_rows", "features", "licence")
    return {key: getattr(description, key) for key in keys}


def _files(description: Description) -> list[dict[str, str | None]]:
    from consenso.datasets.files import find

    listed: list[dict[str, str | None]] = []
    for resource in description.resources:
        path = find(resource)
        for form in resource.forms:
            here = str(path) if path is not None and path.name == form.name else None
            listed.append({"name": form.name, "sha256": form.sha256, "url": form.url, "path": here})
    return listed
