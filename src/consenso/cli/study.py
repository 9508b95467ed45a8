"""`consenso study`: write a study, and check one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from consenso.cli.completing import complete_data_sets
from consenso.cli.options import JsonOption, StudyArgument
from consenso.cli.reading import count_parties, count_units, read_study
from consenso.conventions import default_delta
from consenso.errors import InputError
from consenso.registry import nearest
from consenso.trust import modes

if TYPE_CHECKING:
    from consenso.study import Study

Number = TypeVar("Number", int, float)

SETTINGS = ("central", "federated", "decentralized")
UNITS = ("record", "person")
HEAD = "# A study: consenso study check FILE, consenso plan FILE, consenso train FILE. Keys: docs/study.md.\n"


def register(app: typer.Typer) -> None:
    """Add the group `study`."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Studies: one file that says what is learnt, from which table, for whom it is private, and how.",
    )
    group.command("new")(new)
    group.command("check")(check)
    app.add_typer(group, name="study", rich_help_panel="Studies")


def check(file: StudyArgument, as_json: JsonOption = False) -> None:
    """Check a study as a whole, that it can be planned, and that the files it names are there. No data are read.

    Every fault is told with its key and what to write instead.

    Exit codes: 0 fine, 1 a file is not on this machine, 2 the study must be corrected.

    Example: consenso study check income.toml
    """
    from consenso.study.advice import list_missing_files

    study = read_study(file)
    facts = _facts(study)
    missing = list_missing_files(study)
    if as_json:
        typer.echo(json.dumps({"file": str(file), **facts, "missing": missing}, indent=2))
    else:
        typer.echo(f"{file}: a sound study, {facts['digest'][:16]}")
        typer.echo(
            f"  {facts['setting']}, {count_parties(facts['parties'])}, {count_units(facts['records'], facts['unit'])}, "
            f"{facts['features']} features"
        )
        typer.echo(f"  {facts['algorithm']}, {facts['rounds']} rounds; see consenso plan {file}")
    for fault in missing:
        typer.secho(f"consenso: {fault}", fg=typer.colors.RED, err=True)
    if missing:
        raise typer.Exit(1)


def _facts(study: Study) -> dict[str, Any]:
    plan = study.plan()
    return {
        "digest": study.digest,
        "title": study.title,
        "setting": study.setting.kind,
        "parties": plan.problem.parties,
        "records": plan.problem.records,
        "unit": plan.problem.unit,
        "features": plan.problem.features,
        "algorithm": type(plan.algorithm).__name__,
        "reason": study.planned.reason,
        "rounds": plan.rounds,
        "simulation": study.simulation,
    }


def new(
    file: Annotated[Path, typer.Argument(help="Where to write the study; an existing file is not replaced.")] = Path(
        "study.toml"
    ),
    dataset: Annotated[
        str | None,
        typer.Option(help="A set of the catalogue; see consenso data list.", autocompletion=complete_data_sets),
    ] = None,
    table: Annotated[str | None, typer.Option(help="A private table (.csv, .parquet, .npz or .libsvm).")] = None,
    schema: Annotated[str | None, typer.Option(help="The public schema of the table.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="What is protected: a record, or a person with all records of theirs.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="The public number of records of the table, or of people if they are protected.", min=1),
    ] = None,
    target_bound: Annotated[
        float | None, typer.Option(help="Public bound on the targets of a catalogued regression.")
    ] = None,
    test: Annotated[str | None, typer.Option(help="A PUBLIC table to measure the model on.")] = None,
    loss: Annotated[str | None, typer.Option(help="What is minimized, such as logistic, softmax or huber.")] = None,
    strength: Annotated[
        float | None, typer.Option(help="Strength of a squared penalty, 0 for none; left out, it follows the rows.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The privacy budget of the run.")] = None,
    delta: Annotated[float | None, typer.Option(help="The delta of the budget.")] = None,
    setting: Annotated[str | None, typer.Option(help="central, federated or decentralized.")] = None,
    parties: Annotated[int | None, typer.Option(help="Simulated parties that the table is dealt to.")] = None,
    trust: Annotated[str | None, typer.Option(help="Of a federation: local, secure-sum or curator.")] = None,
    ledger: Annotated[str | None, typer.Option(help="A budget ledger to charge; see consenso ledger create.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Make it a simulation with seeded noise, which protects nobody.")
    ] = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing; take the defaults.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON; asks nothing.")] = False,
) -> None:
    """Write a study from a few answers, and check it.

    What is not given by an option is asked for; --defaults takes the default answers instead.

    Exit codes: 0 fine, 2 bad input (nothing is written).

    Example: consenso study new digits.toml --dataset digits --loss softmax --setting central --defaults
    """
    if file.exists():
        raise InputError(f"{file}: the file exists; choose another name or remove it.")
    ask = _Answers(quiet=defaults or as_json)
    if dataset is None and table is None:
        dataset = ask.text("A set of the catalogue (empty for a table of your own)", "")
    data, protected = _data(ask, dataset or None, table, schema, unit, rows, test)
    task = _task(data)
    if task == "regression" and dataset:
        if target_bound is None and ask.quiet:
            raise InputError("--target-bound: a regression needs a public bound on the size of its targets; give it.")
        asked = "Public bound on the size of targets"
        data["target_bound"] = ask.number(asked, 1.0) if target_bound is None else target_bound
    else:
        _refuse_unused("only a catalogued regression takes one, and a schema states its own", target_bound=target_bound)
    tables: dict[str, Any] = {"data": data, "model": _model(ask, task, loss, strength)}
    tables["privacy"] = {
        "epsilon": ask.number("Epsilon, the privacy budget", 1.0) if epsilon is None else epsilon,
        "delta": ask.number("Delta", default_delta(_records(data))) if delta is None else delta,
    }
    if protected != "record":
        tables["privacy"]["unit"] = protected
    if ledger is not None:
        tables["privacy"]["ledger"] = ledger
    if seed is not None:
        tables["privacy"]["seed"] = seed
    tables["setting"] = _setting(ask, setting, parties, trust)
    _finish(file, tables, as_json=as_json)


class _Answers:
    """Answers of the user, or the defaults."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def text(self, question: str, default: str, choices: tuple[str, ...] = ()) -> str:
        """One line of text, one of the choices if there are any."""
        if self.quiet:
            return default
        asked = f"{question} ({', '.join(choices)})" if choices else question
        while True:
            answer = str(typer.prompt(asked, default=default, show_default=bool(default))).strip()
            if not choices or answer in choices:
                return answer
            typer.echo(f"{answer!r}: {nearest(answer, choices)}")

    def number(self, question: str, default: float) -> float:
        return default if self.quiet else _ask_for(float, "a number", question, default)

    def count(self, question: str, default: int) -> int:
        return default if self.quiet else _ask_for(int, "a whole number", question, default)


def _ask_for(kind: Callable[[str], Number], needed: str, question: str, default: Number) -> Number:
    while True:
        answer = str(typer.prompt(question, default=str(default))).strip()
        try:
            return kind(answer)
        except ValueError:
            typer.echo(f"{answer!r}: {needed} is needed.")


def _data(
    ask: _Answers,
    dataset: str | None,
    table: str | None,
    schema: str | None,
    unit: str | None,
    rows: int | None,
    test: str | None,
) -> tuple[dict[str, Any], str]:
    """The section, and what is protected."""
    if unit not in (None, *UNITS):
        raise InputError(f"--unit {unit}: {nearest(unit, UNITS)}")
    if dataset is not None:
        from consenso.datasets import describe

        own = "a set of the catalogue has its own"
        _refuse_unused(own, table=table, schema=schema, rows=rows, test=test)
        known = describe(dataset)
        data: dict[str, Any] = {"dataset": known.name}
        if not known.test_rows:
            data["holdout"] = known.rows // 5
        return data, unit or "record"
    data = {"table": table or ask.text("Path of the private table", "table.csv")}
    data["schema"] = schema or ask.text("Path of its public schema (see consenso data draft-schema)", "schema.toml")
    if rows is None and ask.quiet:
        raise InputError("--rows: the public number of records, or of people if they are protected, must be stated.")
    unit = unit or _ask_unit(ask, data["schema"])
    whose = "people" if unit == "person" else "records"
    data["rows"] = rows if rows is not None else ask.count(f"Public number of {whose}", 1000)
    if test is not None:
        data["test"] = test
    return data, unit


def _refuse_unused(why: str, **options: object) -> None:
    """Refuse options that the study would not take up: whoever gave them would believe that it had."""
    for name, given in options.items():
        if given is not None:
            raise InputError(f"--{name.replace('_', '-')} {given}: {why}; leave it out.")


def _ask_unit(ask: _Answers, schema: str) -> str:
    """A person may have several rows where a column says whose they are: what is then protected has to be said."""
    from consenso.schema import Schema

    column = Schema.load(schema).require_public().user_column
    if column is None:
        return "record"
    if ask.quiet:
        raise InputError(
            f"--unit: the column {column.name!r} of {schema} says whose a row is, so that a person may have several; "
            "give --unit person with the number of people in --rows, or --unit record."
        )
    return ask.text(f"What is protected (the column {column.name!r} says whose a row is)", "person", UNITS)


def _records(data: dict[str, Any]) -> int:
    """The public number of records that a study trains on."""
    if "dataset" not in data:
        return int(data["rows"])
    from consenso.datasets import describe

    return describe(data["dataset"]).rows - int(data.get("holdout", 0))


def _task(data: dict[str, Any]) -> str:
    if "dataset" in data:
        from consenso.datasets import describe

        return describe(data["dataset"]).task
    from consenso.schema import Label, Schema

    column = Schema.load(data["schema"]).require_public().target_column
    if not isinstance(column, Label):
        return "regression"
    return "binary" if len(column.classes) == 2 else "multiclass"


def _model(ask: _Answers, task: str, loss: str | None, strength: float | None) -> dict[str, Any]:
    usual = {"binary": "logistic", "multiclass": "softmax", "regression": "huber"}[task]
    chosen = loss or ask.text("Loss", usual)
    model: dict[str, Any] = {"loss": chosen, "intercept": True}
    if strength is not None:
        model["regularizer"] = "none" if strength == 0 else {"kind": "l2", "strength": strength}
    return model


def _setting(ask: _Answers, setting: str | None, parties: int | None, trust: str | None) -> dict[str, Any]:
    kind = setting or ask.text("Who holds the data", "central", SETTINGS)
    if kind not in SETTINGS:
        raise InputError(f"--setting {kind}: {nearest(kind, SETTINGS)}")
    if trust is not None and kind != "federated":
        raise InputError(f"--trust {trust}: a federated setting has a trust, a {kind} one has none here; leave it out.")
    if kind == "central":
        _refuse_unused("a central setting has one curator", parties=parties)
        return {"kind": kind}
    many = parties if parties is not None else ask.count("Simulated parties", 20)
    found: dict[str, Any] = {"kind": kind}
    if kind == "federated":
        choices = tuple(name for name, mode in modes().items() if kind in mode.settings)
        found["trust"] = trust or ask.text("Who adds the noise", "secure-sum", choices)
    else:
        found["topology"] = "ring" if many < 5 else {"kind": "random-regular", "degree": 4, "seed": 0}
    found["split"] = {"kind": "equal", "parties": many, "seed": 0}
    return found


def _finish(file: Path, tables: dict[str, Any], *, as_json: bool) -> None:
    from consenso.study import Study

    # Checked and planned before it is written, so that what is written can be used.
    study = Study.from_tables(tables, folder=file.parent, source=str(file))
    facts = _facts(study)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(HEAD + study.to_toml())
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); choose another place.") from None
    if as_json:
        typer.echo(json.dumps({"file": str(file), **facts}, indent=2))
    else:
        typer.echo(f"{file}: written; {facts['algorithm']}, {facts['rounds']} rounds. Next: consenso plan {file}")
