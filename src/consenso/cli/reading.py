"""Reading a study for a command: with the budget of the command line, and warnings that its reader should see."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from consenso.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress

    from consenso.study import Study

Found = TypeVar("Found")


def check_folder(folder: Path) -> None:
    """Where something will be written must be a folder, or be free: told before long work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: it exists and is not a folder; choose another place.")


def check_new_file(path: Path) -> None:
    """Nothing is written over."""
    if path.exists():
        raise InputError(f"--out {path}: the file exists; choose another name or remove it.")


def write_privately(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, since what is in it is private."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InputError(f"--out {path}: cannot be written ({error.strerror}); choose another place.") from None
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def read_study(path: Path, epsilon: float | None = None) -> Study:
    """The study of a file, and its doubts on standard error."""
    from consenso.study import Study
    from consenso.study.advice import list_doubts

    study = Study.load(path)
    if epsilon is not None:
        try:
            study = study.with_epsilon(epsilon)
        except InputError as error:
            raise InputError(f"--epsilon {epsilon:g}: {str(error).removeprefix('study: ')}") from None
    for doubt in list_doubts(study):
        typer.secho(f"consenso: warning: {doubt}", fg=typer.colors.YELLOW, err=True)
    return study


def count_parties(number: int) -> str:
    """How many, in words."""
    return "1 party" if number == 1 else f"{number} parties"


def count_units(number: int, unit: str) -> str:
    """How many records there are, or people, where these are what is counted."""
    return f"{number} {'people' if unit == 'person' else 'records'}"


def read_numbers(text: str) -> list[float]:
    """Budgets as they are written after --epsilon: 0.5,1,3."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--epsilon {text}: numbers with commas between them are needed; write 0.5,1,3.") from None
    if any(not 0 < value < float("inf") for value in values) or len(set(values)) < len(values):
        raise InputError(f"--epsilon {text}: budgets are positive and different; write 0.5,1,3.")
    return sorted(values)


def simulate_with_bar(make: Callable[[Callable[[int, int], None]], Found], *, quiet: bool) -> Found:
    """What is made, with a bar that appears with the first run and is gone in the end."""
    if quiet:
        return make(lambda done, planned: None)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TextColumn("runs,"), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)

    def tell(done: int, planned: int) -> None:
        bar.start()
        bar.update(task, completed=done, total=planned)

    try:
        return make(tell)
    finally:
        stop_bar(bar)


def stop_bar(bar: Progress) -> None:
    """End a bar; one that was not started leaves no empty line before the error that kept it from starting."""
    if bar.live.is_started:
        bar.stop()
