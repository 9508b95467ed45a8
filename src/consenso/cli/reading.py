"""Reading a study for a command: with the budget that was asked for, and with what it deserves to be told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from consenso.study import Study

EpsilonOption = Annotated[
    float | None,
    typer.Option("--epsilon", help="Another budget than that of the study, at its delta.", show_default=False),
]


def read_study(path: Path, epsilon: float | None = None) -> Study:
    """The study of a file, and its doubts on standard error."""
    from consenso.errors import InputError
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
