"""Tables with more columns than a second moment can be taken of: the default, with nothing set, beside tuned rivals.

    python -m benchmarks.utility.wide --tables "2,000 words" --tables "dense, independent"
    python -m benchmarks.utility.wide --page docs/solvers-measured.md   # all tables, and the table of that page

The settings of a rival are the best of its grid on the test part, for free, and are then measured with fresh noise.
What is measured is kept in --fits, so that an interrupted run goes on; all of it takes about an hour on one core.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.utility.wide_rivals import DELTA, RIVALS
from benchmarks.utility.wide_tables import TABLES, Made
from consenso import PrivateLogisticRegression
from consenso.arrays import Array
from consenso.audit.table import write_into

EPSILONS, SEEDS, TUNING = (1.0, 5.0), 3, 2
DEFAULT = "default"
MARKERS = ("<!-- wide tables -->", "<!-- end of wide tables -->")
Cell = dict[str, Any]


def fit_default(table: Made, epsilon: float, seed: int) -> Array:
    """Scores of the test part, with nothing set."""
    X, signs = table.training
    settings = {"epsilon": epsilon, "delta": DELTA, "row_bound": 1.0, "classes": [-1, 1], "random_state": seed}
    model = PrivateLogisticRegression(**settings, adjacency="add-remove", records=table.records)
    return np.asarray(model.fit(X, signs.astype(int)).decision_function(table.rows[table.records :]))


def measure(table: Made, name: str, epsilon: float) -> Cell:
    """Losses and accuracies of the seeds, and the setting that was best."""
    if name == DEFAULT:
        scores, how = [fit_default(table, epsilon, seed) for seed in range(SEEDS)], ""
    else:
        fit, grid = RIVALS[name]
        tuned = np.mean([table.loss(fit(table, grid, epsilon, 100 + seed)) for seed in range(TUNING)], axis=0)
        best = grid[int(np.nanargmin(tuned))]
        scores, how = [fit(table, (best,), epsilon, seed)[:, 0] for seed in range(SEEDS)], str(best)
    return {
        "losses": [float(table.loss(each)) for each in scores],
        "accuracies": [float(table.accuracy(each)) for each in scores],
        "setting": how,
    }


def collect(names: list[str], path: Path) -> dict[str, Cell]:
    """Cells by "table | epsilon | method"; those of earlier runs are taken from the file."""
    done: dict[str, Cell] = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        table = None
        for epsilon in EPSILONS:
            for method in (DEFAULT, *RIVALS):
                key = f"{name} | {epsilon:g} | {method}"
                if key not in done:
                    table = table or TABLES[name]()
                    done[key] = measure(table, method, epsilon)
                    path.write_text(json.dumps(done, indent=0))
                    print(key, _show(done[key]), done[key]["setting"], flush=True)
        if f"{name} | constant" not in done:
            table = table or TABLES[name]()
            share = float(np.mean(table.training[1] > 0))
            constant = float(table.loss(np.full(len(table.signs) - table.records, math.log(share / (1 - share)))))
            done[f"{name} | constant"] = {"losses": [constant], "accuracies": [table.majority], "setting": ""}
            path.write_text(json.dumps(done, indent=0))
    return done


def tabulate(names: list[str], done: dict[str, Cell]) -> list[str]:
    """A line for each table and budget; the best of a line is bold, with what is within two standard errors of it."""
    columns = [DEFAULT, *RIVALS]
    lines = [f"| table | epsilon | {' | '.join(columns)} | a constant |", "| --- |" + " --- |" * (len(columns) + 2)]
    for name in names:
        for epsilon in EPSILONS:
            cells = [done[f"{name} | {epsilon:g} | {method}"] for method in columns]
            best = min(cells, key=lambda cell: float(np.mean(cell["losses"])))
            shown = [f"**{_show(each)}**" if _is_even(each, best) else _show(each) for each in cells]
            lines.append(f"| {name} | {epsilon:g} | {' | '.join(shown)} | {_show(done[f'{name} | constant'])} |")
    return lines


def _show(cell: Cell) -> str:
    return f"{np.mean(cell['losses']):.3f} ({100 * np.mean(cell['accuracies']):.1f})"


def _is_even(cell: Cell, best: Cell) -> bool:
    errors = [np.std(each["losses"], ddof=1) / math.sqrt(SEEDS) for each in (cell, best)]
    return bool(np.mean(cell["losses"]) - np.mean(best["losses"]) <= 2 * math.hypot(*errors))


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", action="append", choices=list(TABLES), help="all if none is named")
    parser.add_argument("--fits", type=Path, default=Path("results/utility/wide.json"))
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    names = asked.tables or list(TABLES)
    lines = tabulate(names, collect(names, asked.fits))
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
