"""`python -m benchmarks.utility.development`: the default, with nothing set, beside the best tuned rival, set by set.

    python -m benchmarks.utility.development --sets breast,digits --epsilon 0.5 --epsilon 3
    python -m benchmarks.utility.development --page docs/solvers.md   # all cells, and the table of that page
    python -m benchmarks.utility.development --sets breast --page docs/solvers.md   # one line of it

Rivals are those of `rivals.csv` beside this file: of each set and budget the loss of the best of noisy descent (plain,
momentum, Adam), objective perturbation, double-noise Newton, output perturbation, AdaSSP, Frank-Wolfe and a constant,
each at the best of its grid on the test part, which costs it nothing here. A cell is won or lost by two standard errors
of the difference of the means over seeds. Fits that are done are kept in --fits, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import consenso
from benchmarks.utility.development_sets import SETS, Development
from consenso.audit.table import write_into

EPSILONS, DELTA, SEEDS, ERRORS = (0.1, 0.5, 1.0, 3.0, 8.0), 1e-5, 5, 2.0
RIVALS = Path(__file__).with_name("rivals.csv")
MARKERS = ("<!-- development sets -->", "<!-- end of development sets -->")
VERDICTS = ("won", "even", "lost")


@dataclass(frozen=True, kw_only=True)
class Rival:
    """What the best tuned rival reached: a mean, its standard error, and over how many seeds."""

    name: str
    mean: float
    error: float
    seeds: int


def read_rivals(path: Path) -> dict[tuple[str, float], Rival]:
    """By set and epsilon."""
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    return {
        (row["set"], float(row["epsilon"])): Rival(
            name=row["rival"], mean=float(row["mean"]), error=float(row["error"]), seeds=int(row["seeds"])
        )
        for row in rows
    }


def measure(table: Development, epsilon: float, seed: int) -> float:
    """The loss of the default on the test part."""
    settings: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": DELTA,
        "row_bound": table.row_bound,
        "adjacency": "add-remove",
        "records": len(table.y),
        "random_state": seed,
    }
    if table.kind == "regression":
        model = consenso.PrivateRidge(target_bound=table.target_bound, **settings).fit(table.X, table.y)
        return table.loss(model.predict(table.X_test))
    model = consenso.PrivateLogisticRegression(classes=list(range(table.classes)), **settings)
    return table.loss(model.fit(table.X, table.y).decision_function(table.X_test))


def collect(
    names: list[str],
    epsilons: list[float],
    seeds: int,
    path: Path,
    sets: Mapping[str, Callable[[], Development]] = SETS,
) -> dict[str, list[float]]:
    """Losses of the seeds by "set epsilon"; those of earlier runs are taken from the file."""
    done: dict[str, list[float]] = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        table = None
        for epsilon in epsilons:
            key = f"{name} {epsilon:g}"
            if len(done.get(key, [])) < seeds:
                table = table or sets[name]()
                done[key] = [measure(table, epsilon, seed) for seed in range(seeds)]
                path.write_text(json.dumps(done, indent=0))
                print(key, f"{np.mean(done[key]):.4g}", flush=True)
    return done


def judge(losses: list[float], rival: Rival, errors: float = ERRORS) -> str:
    """Won, even or lost, by so many standard errors."""
    error = math.hypot(float(np.std(losses, ddof=1)) / math.sqrt(len(losses)), rival.error)
    apart = float(np.mean(losses)) - rival.mean
    return "won" if apart < -errors * error else "lost" if apart > errors * error else "even"


def count_by_one_error(done: dict[str, list[float]]) -> str:
    """Verdicts by one standard error, over all cells that have rivals."""
    counts = dict.fromkeys(VERDICTS, 0)
    for (name, epsilon), rival in read_rivals(RIVALS).items():
        if name in SETS and epsilon in EPSILONS:
            counts[judge(done[f"{name} {epsilon:g}"], rival, 1.0)] += 1
    return "By one standard error: " + ", ".join(f"{verdict} {count}" for verdict, count in counts.items()) + "."


def judge_cells(names: list[str], epsilons: list[float], done: dict[str, list[float]]) -> dict[str, list[str]]:
    """By set, a cell for each budget: loss over that of the best rival, with its verdict."""
    rivals, found = read_rivals(RIVALS), {}
    for name in names:
        cells = []
        for epsilon in epsilons:
            losses, rival = done.get(f"{name} {epsilon:g}"), rivals.get((name, epsilon))
            if losses is None or rival is None:
                cells.append("-")
                continue
            text = f"{float(np.mean(losses)) / rival.mean:.3f}"
            cells.append({"won": text, "even": f"{text} =", "lost": f"**{text}**"}[judge(losses, rival)])
        found[name] = cells
    return found


def read_cells(page: Path) -> dict[str, list[str]]:
    """The cells that a page has."""
    table = page.read_text().split(MARKERS[0])[1].split(MARKERS[1])[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return {name: cells for name, *cells in rows[2:]}


def tabulate(cells: dict[str, list[str]], epsilons: list[float]) -> list[str]:
    """A line for each set, and a count of verdicts."""
    lines = ["| set | " + " | ".join(f"eps {epsilon:g}" for epsilon in epsilons) + " |"]
    lines.append("| --- |" + " --- |" * len(epsilons))
    lines += [f"| {name} | " + " | ".join(row) + " |" for name, row in cells.items()]
    texts = [text for row in cells.values() for text in row if text != "-"]
    if not texts:
        return lines
    counts = dict.fromkeys(VERDICTS, 0)
    for text in texts:
        counts["lost" if text[0] == "*" else "even" if text[-1] == "=" else "won"] += 1
    mean = math.exp(float(np.mean([math.log(float(text.strip("*= "))) for text in texts])))
    total = ", ".join(f"{verdict} {count}" for verdict, count in counts.items())
    return [*lines, "", f"Of {len(texts)} cells: {total}. Geometric mean of the ratios: {mean:.3f}."]


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="names with commas between them; all if none is named")
    parser.add_argument("--epsilon", type=float, action="append", help=f"budgets; {EPSILONS} if none is named")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--fits", type=Path, default=Path("results/utility/development.json"))
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    names, epsilons = asked.sets.split(","), asked.epsilon or list(EPSILONS)
    cells = judge_cells(names, epsilons, collect(names, epsilons, asked.seeds, asked.fits))
    print("\n".join(tabulate(cells, epsilons)))
    if asked.page is not None:
        if epsilons != list(EPSILONS):
            raise SystemExit(f"--page: its lines have cells for {EPSILONS}; leave --epsilon out.")
        lines = tabulate({**read_cells(asked.page), **cells}, epsilons)
        if set(names) == set(SETS):
            lines.append(count_by_one_error(collect(names, epsilons, asked.seeds, asked.fits)))
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
