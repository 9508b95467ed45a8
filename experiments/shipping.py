"""Results that travel with the repository, so that a grid of hours can be completed over several machines and days.

`experiments/shipped/NNN/KEY.json` is a kept result of a long cell, under the key that `running` files it by: what was
asked, and a hash of the code that answered. A run takes it as if it had been computed here. One whose key no cell of
the paper has any more was made by other code: it is not used, and `consenso reproduce` says so.

`experiments/shipped/reports/NNN` has what the grids of a paper came to, without figures. The page over all papers is
written from there, paper by paper, and no number of it by hand.

    python -m experiments.shipping 003 OUT     ships the long results and the reports that a run left in OUT
    consenso reproduce summary --out experiments/shipped/reports --page docs/reproductions.md     writes the page
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from experiments import index
from experiments.running import SHIPPED, key, seconds_of_work

if TYPE_CHECKING:
    from experiments.definition import Cell, Paper

REPORTS = SHIPPED / "reports"
LONG = 60.0  # seconds on one core: what is quicker is computed again


def cells_of(paper: Paper) -> dict[str, Cell]:
    """The cells of all grids of a paper, by key."""
    return {key(cell): cell for grid in paper.grids for cell in paper.cells_of(grid)}


def stale(paper: Paper, shipped: Path = SHIPPED) -> list[Path]:
    """Results in the repository that other code made."""
    known = cells_of(paper)
    return [path for path in _files(paper, shipped) if path.stem not in known]


def ship(paper: Paper, kept: Path, shipped: Path = SHIPPED) -> list[Path]:
    """Copy the results of the paper's long cells from the folder where a run keeps them; remove stale ones."""
    for path in stale(paper, shipped):
        path.unlink()
    made = []
    for name, cell in cells_of(paper).items():
        own = kept / f"{name}.json"
        if own.is_file() and seconds_of_work([cell], kept) >= LONG:
            made.append(shipped / paper.number / own.name)
            made[-1].parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(own, made[-1])
    return made


def ship_reports(paper: Paper, out: Path, reports: Path = REPORTS) -> list[Path]:
    """Copy what the grids of a paper came to, and what they took, from the folder of a run."""
    own = out / paper.number
    found = sorted((own / "grids").glob("*.json"))
    made = [reports / path.relative_to(out) for path in found]
    for path, place in zip(found, made, strict=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    for grid, seconds in index.measured(own).items():  # beside those of grids that were run elsewhere
        index.keep_duration(reports / paper.number, grid, seconds)
    return made


def _files(paper: Paper, shipped: Path) -> Iterable[Path]:
    return sorted((shipped / paper.number).glob("*.json"))


if __name__ == "__main__":
    from experiments.reproduction import papers

    number, out = sys.argv[1:]
    paper = papers()[number]
    for path in (*ship(paper, Path(out) / "cells" / number), *ship_reports(paper, Path(out))):
        print(path)
