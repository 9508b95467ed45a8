"""`python -m benchmarks.utility.found_bounds`: bounds that a fit finds, against the best public bound, set by set.

    python -m benchmarks.utility.found_bounds --sets offset,housing --seeds 12
    python -m benchmarks.utility.found_bounds --page docs/estimators.md          # all sets, and the table of that page

Excess loss over the best exact fit of five penalties on the test part, at epsilon 1 and delta 1e-5 under replace-one,
in the mean over seeds.
"Best public bound" is the best of four row bounds, quantiles of the lengths of the rows as they are, which was chosen
on the test part with other seeds, as nobody could who keeps a budget; a regression then knows its target bound, too.
Rows of the test part keep their lengths. Seeds are added until the ratio is clear. Fits that are
done are kept in --fits, a file for each set: an interrupted run goes on, several runs share the sets among them, and
a last one, with --most 0, makes the page of what there is.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import consenso
from benchmarks.utility.development_sets import SETS, Development
from consenso.audit.table import write_into

EPSILON, DELTA = 1.0, 1e-5
# So many seeds at a time, at least and at most, and the standard error of a ratio that is enough to tell it from LIMIT.
AT_ONCE, SEEDS, MOST_SEEDS, TELLING = 4, 12, 240, 0.035
# Seeds with which the best public bound is chosen.
CHOOSING, FIRST_CHOICE = 12, 1_000_000
QUANTILES = (0.5, 0.8, 0.95, 1.0)
LIMIT = 1.1
# Over the number of records: 1 is scikit-learn's default.
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
FOUND, BEST, EXACT, BOUND = "found", "best public", "exact", "bound at {:g}"
MARKERS = ("<!-- found bounds -->", "<!-- end of found bounds -->")
# Sets whose fits take minutes together, or whose rows are sparse and of one length: nothing is found there but that.
LEFT_OUT = ("words1000", "words2000", "words10000", "words40", "many100")


def measure(table: Development, **given: Any) -> float:
    """The loss of a fit on the test part."""
    if table.kind == "regression":
        return table.loss(consenso.PrivateRidge(**given).fit(table.X, table.y).predict(table.X_raw))
    model = consenso.PrivateLogisticRegression(classes=list(range(table.classes)), **given)
    return table.loss(model.fit(table.X, table.y).decision_function(table.X_raw))


def measure_exact(table: Development) -> dict[str, list[float]]:
    """The shape of a set, quantiles of the lengths of its rows, and the loss of its best exact fit."""
    squares = table.X.multiply(table.X) if sparse.issparse(table.X) else table.X**2
    lengths = np.sqrt(np.asarray(squares.sum(axis=1))).ravel()
    exact = [measure(table, epsilon=math.inf, alpha=penalty / len(lengths)) for penalty in PENALTIES]
    bounds = {BOUND.format(quantile): [float(np.quantile(lengths, quantile))] for quantile in QUANTILES}
    return {"shape": list(table.X.shape), EXACT: [min(exact)], **bounds}


def measure_more(table: Development, fits: dict[str, list[float]], seeds: int) -> None:
    """Append losses of the next seeds: with found bounds, and with the best public bound of CHOOSING other seeds."""
    private: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
    public = (
        private | {"bounds": "public"} | ({"target_bound": table.target_bound} if table.kind == "regression" else {})
    )
    for quantile in QUANTILES:
        (bound,) = fits[BOUND.format(quantile)]
        chosen = fits.setdefault(f"{quantile:g}", [])
        chosen += [
            measure(table, random_state=FIRST_CHOICE + seed, row_bound=bound, **public)
            for seed in range(len(chosen), CHOOSING)
        ]
    (bound,) = fits[BOUND.format(float(choose(fits)))]
    found, best = fits.setdefault(FOUND, []), fits.setdefault(BEST, [])
    goal = min(len(found), len(best)) + seeds
    found += [measure(table, random_state=seed, **private) for seed in range(len(found), goal)]
    best += [measure(table, random_state=seed, row_bound=bound, **public) for seed in range(len(best), goal)]


def choose(fits: dict[str, list[float]]) -> str:
    """The quantile of the best public bound."""
    return min((f"{quantile:g}" for quantile in QUANTILES), key=lambda key: float(np.mean(fits[key])))


def collect(names: list[str], seeds: int, most: int, folder: Path) -> dict[str, dict[str, list[float]]]:
    """What was measured, by set: at least these seeds, and more until the ratio is clear.

    Fits of earlier runs are taken from the files, which are written after every few seeds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = {}
    for name in names:
        path = folder / f"{name}.json"
        fits: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        table = None
        while len(fits.get(FOUND, [])) < min(seeds, most) or (
            len(fits.get(FOUND, [])) < most and not is_clear(*compare(fits))
        ):
            if table is None:
                table = SETS[name]()
            if not fits:
                fits |= measure_exact(table)
            measure_more(table, fits, AT_ONCE)
            path.write_text(json.dumps(fits, indent=0))
        if fits:
            done[name] = fits
            print(describe(name, fits), flush=True)
    return done


def is_clear(ratio: float, error: float) -> bool:
    """Whether a ratio is known well enough, or is two errors away from the limit."""
    return math.isnan(ratio) or error <= TELLING or 2 * error < abs(ratio - LIMIT)


def compare(fits: dict[str, list[float]]) -> tuple[float, float]:
    """The ratio of the excesses and its standard error; none where there is no excess to divide by."""
    parts = [np.array(fits[key]) - fits[EXACT][0] for key in (FOUND, BEST)]
    (found, found_error), (best, best_error) = ((p.mean(), p.std(ddof=1) / math.sqrt(len(p))) for p in parts)
    if best <= 2 * best_error and len(parts[1]) >= CHOOSING:
        return math.nan, math.nan
    ratio = float(found / best)
    return ratio, abs(ratio) * math.hypot(found_error / found, best_error / best)


def describe(name: str, fits: dict[str, list[float]]) -> str:
    """A line of the table."""
    parts = [np.array(fits[key]) - fits[EXACT][0] for key in (FOUND, BEST)]
    cells = [f"{part.mean():.3g} +- {part.std(ddof=1) / math.sqrt(len(part)):.1g}" for part in parts]
    ratio, error = compare(fits)
    shown = "-" if math.isnan(ratio) else "below 0.01" if ratio < 0.01 else f"{ratio:.2f} +- {error:.2f}"
    rows, columns = fits["shape"]
    seeds = len(fits[FOUND])
    return f"| {name}, {rows:.0f} x {columns:.0f} | {seeds} | {cells[0]} | {cells[1]} ({choose(fits)}) | {shown} |"


def tabulate(names: list[str], done: dict[str, dict[str, list[float]]]) -> list[str]:
    """The table, and a sentence that counts."""
    lines = [
        "| table | seeds | bounds that are found | best public bound (its quantile) | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    ratios = [ratio for ratio, _ in (compare(done[name]) for name in names) if not math.isnan(ratio)]
    above = sum(ratio > LIMIT for ratio in ratios)
    return [
        *lines,
        *(describe(name, done[name]) for name in names),
        "",
        f"Of {len(ratios)} tables {above} are more than {LIMIT - 1:.0%} above the best public bound; geometric mean of "
        f"the ratios {math.exp(float(np.mean(np.log(np.maximum(ratios, 0.01))))):.2f}.",
    ]


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = ",".join(name for name in SETS if name not in LEFT_OUT)
    parser.add_argument("--sets", default=usual, help="names with commas between them")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="at least")
    parser.add_argument("--most", type=int, default=MOST_SEEDS, help="seeds, where the ratio is not clear with fewer")
    parser.add_argument("--fits", type=Path, default=Path("results/utility/found_bounds"))
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = asked.sets.split(",")
    done = collect(names, asked.seeds, asked.most, asked.fits)
    lines = tabulate(list(done), done)
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
