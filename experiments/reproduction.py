"""Finding the papers, and reproducing one: cells, gathering, report, index."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import consenso
from consenso.errors import InputError
from experiments import index, report
from experiments.definition import Cell, Paper
from experiments.outcome import Objection, Outcome
from experiments.running import WORKERS, kept, run_cells, seconds_of_work
from experiments.shipping import stale

NUMBERS = ("000", "001", "002", "003", "004")


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a reproduction will take."""

    cells: int
    missing: int
    seconds: float  # on so many workers
    stale: int  # results of the repository that other code made, which are not used


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What a reproduction left."""

    paper: Paper
    outcome: Outcome
    page: Path
    seconds: float


def papers() -> dict[str, Paper]:
    """The papers whose package has a `definition` with a PAPER in it."""
    found = {}
    for number in NUMBERS:
        name = f"experiments.paper{number}.definition"
        if importlib.util.find_spec(name) is not None:
            paper: Paper = importlib.import_module(name).PAPER
            found[number] = paper
    return found


def forecast(paper: Paper, grid: str, out: Path, *, workers: int = WORKERS) -> Forecast:
    """How many cells there are, how many are not kept yet, and how long these will take."""
    cells = paper.cells_of(grid)
    missing = [cell for cell in cells if kept(cell, _cells(paper, out)) is None]
    return Forecast(
        cells=len(cells),
        missing=len(missing),
        seconds=sum(c.seconds for c in missing) / max(1, workers),
        stale=len(stale(paper)),
    )


def reproduce(
    paper: Paper,
    grid: str,
    out: Path,
    *,
    workers: int = WORKERS,
    step: Callable[[Cell, bool], None] = lambda cell, kept: None,
    listed: Sequence[Paper] = (),
) -> Reproduction:
    """Run what is missing, write the paper's folder out/<number> and bring the index up to date."""
    began = time.perf_counter()
    cells = paper.cells_of(grid)
    results = run_cells(cells, _cells(paper, out), workers=workers, step=step)
    outcome = replace(
        paper.gather(paper.grids[grid], results), objections=tuple(case.object_to(results) for case in paper.cases)
    )
    made: dict[str, Any] = {
        "grid": grid,
        "cells": len(cells),
        "seconds of work": seconds_of_work(cells, _cells(paper, out)),
        "consenso": consenso.__version__,
        "python": platform.python_version(),
    }
    index.keep_duration(out / paper.number, grid, float(made["seconds of work"]))
    page = report.write(paper, outcome, out / paper.number, made=made)
    everybody = {each.number: each for each in (listed or papers().values())}
    index.write({paper.number: paper, **everybody}, out)
    return Reproduction(paper=paper, outcome=outcome, page=page, seconds=time.perf_counter() - began)


def object_to(paper: Paper, name: str, out: Path, *, workers: int = WORKERS) -> Objection:
    """One objection, from the cells of the quick grid that it needs and no others."""
    case = next((case for case in paper.cases if case.name == name), None)
    if case is None:
        known = ", ".join(case.name for case in paper.cases) or "none"
        raise InputError(f"reproduce {paper.number} --objection {name}: the objections to this paper are {known}.")
    cells = [cell for cell in paper.cells_of("quick") if cell.group in case.groups]
    return case.object_to(run_cells(cells, _cells(paper, out), workers=workers))


def all_objections(known: Mapping[str, Paper], out: Path, *, workers: int = WORKERS) -> str:
    """Every objection to every paper, computed anew, as the Markdown of docs/papers.md."""
    return index.objections(
        {
            number: (
                paper.title,
                [(case.name, object_to(paper, case.name, out, workers=workers)) for case in paper.cases],
            )
            for number, paper in known.items()
        }
    )


def _cells(paper: Paper, out: Path) -> Path:
    return out / "cells" / paper.number
