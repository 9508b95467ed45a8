"""`python -m benchmarks.utility.found_bounds`: bounds that a fit finds, against the best public bound, set by set.

    python -m benchmarks.utility.found_bounds --sets offset,housing --seeds 12
    python -m benchmarks.utility.found_bounds --page docs/estimators.md          # all sets, and the table of that page

Excess loss over the best exact fit of five penalties on the test part, at epsilon 1 and delta 1e-5 under replace-one,
in the mean over seeds.
"Best public bound" is the best of four row bounds, quantiles of the lengths of the rows as they are, which was chosen
on the test part with other seeds, as nobody could who keeps a budget; a regression then knows its target bound, too.
Rows of the test part keep their lengths. Fits that are done are kept in --fits, so that an interrupted run goes on.
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

EPSILON, DELTA, SEEDS = 1.0, 1e-5, 12
QUANTILES = (0.5, 0.8, 0.95, 1.0)
LIMIT = 1.1
# Over the number of records: 1 is scikit-learn's default.
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
FOUND, EXACT = "found", "exact"
MARKERS = ("<!-- found bounds -->", "<!-- end of found bounds -->")
# Sets whose fits take minutes together, or whose rows are sparse and of one length: nothing is found there but that.
LEFT_OUT = ("words1000", "words2000", "words10000", "words40", "many100")


def measure(table: Development, **given: Any) -> float:
    """The loss of a fit on the test part."""
    if table.kind == "regression":
        return table.loss(consenso.PrivateRidge(**given).fit(table.X, table.y).predict(table.X_raw))
    model = consenso.PrivateLogisticRegression(classes=list(range(table.classes)), **given)
    return table.loss(model.fit(table.X, table.y).decision_function(table.X_raw))


def measure_all(table: Development, seeds: int) -> dict[str, list[float]]:
    """The shape of a set, its exact loss, and losses of the seeds with found bounds and with every public bound.

    The first half of the losses with public bounds is for the comparison, the second for the choice.
    """
    squares = table.X.multiply(table.X) if sparse.issparse(table.X) else table.X**2
    lengths = np.sqrt(np.asarray(squares.sum(axis=1))).ravel()
    exact = [measure(table, epsilon=math.inf, alpha=penalty / len(lengths)) for penalty in PENALTIES]
    private: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
    fits = {"shape": list(table.X.shape), EXACT: [min(exact)]}
    fits[FOUND] = [measure(table, random_state=seed, **private) for seed in range(seeds)]
    private |= {"bounds": "public"} | ({"target_bound": table.target_bound} if table.kind == "regression" else {})
    for quantile in QUANTILES:
        bound = float(np.quantile(lengths, quantile))
        fits[f"{quantile:g}"] = [
            measure(table, random_state=seed, row_bound=bound, **private) for seed in range(2 * seeds)
        ]
    return fits


def collect(names: list[str], seeds: int, path: Path) -> dict[str, dict[str, list[float]]]:
    """What was measured, by set; sets of earlier runs with as many seeds or more are taken from the file."""
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in done and len(done[name][FOUND]) >= seeds:
            continue
        done[name] = measure_all(SETS[name](), seeds)
        path.write_text(json.dumps(done, indent=0))
        print(describe(name, done[name])[0], flush=True)
    return done


def describe(name: str, fits: dict[str, list[float]]) -> tuple[str, float]:
    """A line of the table, and the ratio of the excesses."""
    seeds, exact = len(fits[FOUND]), fits[EXACT][0]
    best = min((f"{quantile:g}" for quantile in QUANTILES), key=lambda key: float(np.mean(fits[key][seeds:])))
    found, public = np.array(fits[FOUND]) - exact, np.array(fits[best][:seeds]) - exact
    ratio = float(found.mean() / public.mean()) if public.mean() > 0 else math.nan
    cells = [f"{part.mean():.3g} +- {part.std(ddof=1) / math.sqrt(seeds):.1g}" for part in (found, public)]
    spread = math.hypot(*(float(part.std(ddof=1) / math.sqrt(seeds) / part.mean()) for part in (found, public)))
    shown = "-" if math.isnan(ratio) else "below 0.01" if ratio < 0.01 else f"{ratio:.2f} +- {ratio * spread:.2f}"
    rows, columns = fits["shape"]
    return f"| {name}, {rows:.0f} x {columns:.0f} | {seeds} | {cells[0]} | {cells[1]} ({best}) | {shown} |", ratio


def tabulate(names: list[str], done: dict[str, dict[str, list[float]]]) -> list[str]:
    """The table, and a sentence that counts."""
    lines = [
        "| table | seeds | bounds that are found | best public bound (its quantile) | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    told = [describe(name, done[name]) for name in names]
    ratios = [ratio for _, ratio in told if not math.isnan(ratio)]
    above = sum(ratio > LIMIT for ratio in ratios)
    return [
        *lines,
        *(line for line, _ in told),
        "",
        f"Of {len(ratios)} tables {above} are more than {LIMIT - 1:.0%} above the best public bound; geometric mean of "
        f"the ratios {math.exp(float(np.mean(np.log(np.maximum(ratios, 0.01))))):.2f}.",
    ]


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = ",".join(name for name in SETS if name not in LEFT_OUT)
    parser.add_argument("--sets", default=usual, help="names with commas between them")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--fits", type=Path, default=Path("results/utility/found_bounds.json"))
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = asked.sets.split(",")
    lines = tabulate(names, collect(names, asked.seeds, asked.fits))
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
