"""Results that travel with the repository, so that a grid of hours can be completed over several machines and days.

`experiments/shipped/NNN/KEY.json` is a kept result of a long cell, under the key that `running` files it by: what was
asked, and a hash of the code that answered. A run takes it as if it had been computed here. One whose key no cell of
the paper has any more was made by other code: it is not used, and `consenso reproduce` says so.

    python -m experiments.shipping 003 OUT     ships the long results that a run left in OUT, and removes stale ones
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.running import SHIPPED, key, seconds_of_work

if TYPE_CHECKING:
    from experiments.definition import Cell, Paper

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


def _files(paper: Paper, shipped: Path) -> Iterable[Path]:
    return sorted((shipped / paper.number).glob("*.json"))


if __name__ == "__main__":
    from experiments.reproduction import papers

    number, out = sys.argv[1:]
    for path in ship(papers()[number], Path(out) / "cells" / number):
        print(path)
