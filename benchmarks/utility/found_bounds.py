"""`python -m benchmarks.utility.found_bounds`: bounds that a fit finds, against the best public bound, set by set.

    python -m benchmarks.utility.found_bounds --sets offset,housing --seeds 12
    python -m benchmarks.utility.found_bounds --most 0 --page docs/found-bounds.md     # the table of that page, as kept

Excess loss over the exact fit on the same rows, at epsilon 1 and delta 1e-5 under replace-one. Every seed has a split
of its own, and on it a fit with found bounds, one with the best public bound and an exact one: what is compared is the
difference of the first two, in the mean over seeds. "Best public bound" is the best of four row bounds, quantiles of
the lengths of the rows as they are, which was chosen on the test part of the usual split with other seeds, as nobody
could who keeps a budget; a regression then knows its target bound, too. The penalty of the exact fit is the best of
seven there. Rows of the test part keep their lengths. Seeds are added until the difference is clear. Fits that are done
are kept in --fits, a file for each set: an interrupted run goes on, and several runs share the sets among them.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import consenso
from benchmarks.utility.development_sets import SETS, Development
from consenso.audit.table import write_into

EPSILON, DELTA = 1.0, 1e-5
# So many seeds at a time, at least and at most, and the error of a ratio that is enough.
AT_ONCE, SEEDS, MOST_SEEDS, TELLING = 4, 12, 120, 0.035
# Seeds with which the best public bound is chosen.
CHOOSING, FIRST_CHOICE = 6, 1_000_000
QUANTILES = (0.5, 0.8, 0.95, 1.0)
# Found bounds may add so much of the excess with the best public bound; and of a thousandth of what the exact fit
# gains over the constant model, where that is more: there no ratio says anything.
LIMIT, LITTLE = 0.1, 0.001
# Over the number of records: 1 is scikit-learn's default.
PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
FOUND, BEST, EXACT, CONSTANT = "found", "best public", "exact", "constant"
MARKERS = ("<!-- found bounds -->", "<!-- end of found bounds -->")
KEPT = Path(__file__).parent / "found_bounds"


def measure(table: Development, **given: Any) -> float:
    """The loss of a fit on the test part."""
    if table.kind == "regression":
        targets = table.y
        if math.isinf(given["epsilon"]):
            targets = np.clip(targets, -table.target_bound, table.target_bound)  # as they are scored
        return table.loss(consenso.PrivateRidge(**given).fit(table.X, targets).predict(table.X_raw))
    model = consenso.PrivateLogisticRegression(classes=list(range(table.classes)), **given)
    return table.loss(model.fit(table.X, table.y).decision_function(table.X_raw))


def measure_constant(table: Development) -> float:
    """The loss of the best model without columns."""
    many = len(table.y_test)
    if table.kind == "regression":
        return table.loss(np.full(many, np.clip(table.y, -table.target_bound, table.target_bound).mean()))
    shares = (np.bincount(table.y, minlength=table.classes) + 0.5) / (len(table.y) + 0.5 * table.classes)
    logs = np.log(shares)
    return table.loss(np.full(many, logs[1] - logs[0]) if table.kind == "binary" else np.tile(logs, (many, 1)))


def start(table: Development) -> dict[str, Any]:
    """The shape of a set, the best penalty of an exact fit, and the best public bound with its quantile."""
    squares = table.X.multiply(table.X) if sparse.issparse(table.X) else table.X**2
    lengths = np.sqrt(np.asarray(squares.sum(axis=1))).ravel()
    penalties = PENALTIES if table.classes <= 10 else PENALTIES[2:4]  # of many classes one fit takes half a minute
    penalty = penalties[np.argmin([measure_exact(table, each) for each in penalties])]
    # The shortest of bounds that are the same.
    bounds = {round(float(np.quantile(lengths, each)), 9): each for each in reversed(QUANTILES)}
    losses = {}
    for bound in bounds if len(bounds) > 1 else ():
        seeds = range(FIRST_CHOICE, FIRST_CHOICE + CHOOSING)
        losses[bound] = float(np.mean([measure_public(table, bound, seed) for seed in seeds]))
    best = min(losses, key=lambda each: losses[each]) if losses else next(iter(bounds))
    facts = {"shape": list(table.X.shape), "penalty": penalty, "bound": best, "quantile": bounds[best]}
    return facts | {key: [] for key in (FOUND, BEST, EXACT, CONSTANT)}


def measure_exact(table: Development, penalty: float) -> float:
    return measure(table, epsilon=math.inf, alpha=penalty / len(table.y))


def measure_public(table: Development, bound: float, seed: int) -> float:
    known = {"target_bound": table.target_bound} if table.kind == "regression" else {}
    given = {"epsilon": EPSILON, "delta": DELTA, "bounds": "public", "row_bound": bound, "random_state": seed}
    return measure(table, **given, **known)


def measure_more(table: Development, fits: dict[str, Any], seeds: int) -> None:
    """Append the losses of the next seeds, each on its own split."""
    for seed in range(len(fits[FOUND]), len(fits[FOUND]) + seeds):
        each = table.split_again(seed)
        fits[FOUND].append(measure(each, epsilon=EPSILON, delta=DELTA, random_state=seed))
        fits[BEST].append(measure_public(each, fits["bound"], seed))
        fits[EXACT].append(measure_exact(each, fits["penalty"]))
        fits[CONSTANT].append(measure_constant(each))


@dataclass(frozen=True)
class Comparison:
    """Mean excesses over what the exact fit gains on the constant model, and what found bounds add to the best one's.

    ratio: with its standard error, of the same splits and seeds; none where the best public bound has no clear excess.
    spare: what they may add less what they add, in standard errors.
    """

    found: float
    best: float
    ratio: float
    error: float
    spare: float

    @classmethod
    def of(cls, fits: dict[str, Any]) -> Comparison:
        losses = {key: np.array(fits[key]) for key in (FOUND, BEST, EXACT, CONSTANT)}
        found, best = losses[FOUND] - losses[EXACT], losses[BEST] - losses[EXACT]
        gain = float(np.mean(losses[CONSTANT] - losses[EXACT]))
        whole, root = float(best.mean()), math.sqrt(len(best))
        ratio, error = float(found.mean()) / whole, float(np.std(found - found.mean() / whole * best, ddof=1)) / root
        allowed = best * (1 + LIMIT) if whole > LITTLE * gain else best + LIMIT * LITTLE * gain
        left = allowed - found
        spare = float(left.mean()) / max(float(left.std(ddof=1)) / root, np.finfo(float).tiny)
        if whole <= 2 * float(best.std(ddof=1)) / root or whole <= LITTLE * gain:
            ratio, error = math.nan, math.nan
        return cls(float(found.mean()) / gain, whole / gain, ratio, error / abs(whole), spare)

    @property
    def is_clear(self) -> bool:
        """Whether the difference is known well enough, or is two errors away from the limit."""
        return abs(self.spare) >= 2 or self.error <= TELLING

    def say(self) -> str:
        """Whether found bounds are within the limit."""
        said = "yes" if self.spare >= 0 else "no"
        return said if abs(self.spare) >= 2 else f"{said}, by {abs(self.spare):.1f} errors"


def collect(names: list[str], seeds: int, most: int, folder: Path) -> dict[str, dict[str, Any]]:
    """What was measured, by set: at least these seeds, and more until the difference is clear.

    Fits of earlier runs are taken from the files, which are written after every few seeds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = {}
    for name in names:
        path = folder / f"{name}.json"
        fits: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        table = None
        while (there := len(fits.get(FOUND, []))) < most and (there < seeds or not Comparison.of(fits).is_clear):
            if table is None:
                table = SETS[name]()
            fits = fits or start(table)
            measure_more(table, fits, min(AT_ONCE, most - there))
            path.write_text(json.dumps(fits) + "\n")
        if fits:
            done[name] = fits
            print(describe(name, fits), flush=True)
    return done


def describe(name: str, fits: dict[str, Any]) -> str:
    """A line of the table."""
    told = Comparison.of(fits)
    shown = "-" if math.isnan(told.ratio) else f"{told.ratio:.2f} +- {told.error:.2f}"
    if told.ratio < 0.01:
        shown = "below 0.01"
    rows, columns = fits["shape"]
    cells = [
        f"{name}, {rows} x {columns}",
        f"{len(fits[FOUND])}",
        f"{told.found:.3%}",
        f"{told.best:.3%} ({fits['quantile']:g})",
        shown,
        told.say(),
    ]
    return f"| {' | '.join(cells)} |"


def tabulate(done: dict[str, dict[str, Any]]) -> list[str]:
    """The table, and a sentence that counts."""
    told = {name: Comparison.of(fits) for name, fits in done.items()}
    ratios = [max(each.ratio, 0.01) for each in told.values() if not math.isnan(each.ratio)]
    above = [name for name, each in told.items() if each.spare < 0]
    sure = [name for name in above if told[name].spare <= -2]
    within = sum(each.spare >= 2 for each in told.values())
    mean = math.exp(float(np.mean(np.log(ratios)))) if ratios else math.nan
    return [
        "| table | seeds | found bounds | best public bound (its quantile) | ratio | within 10 % |",
        "| --- | --- | --- | --- | --- | --- |",
        *(describe(name, fits) for name, fits in done.items()),
        "",
        f"Of {len(told)} tables {len(told) - len(above)} are within 10 %, {within} of them by two standard errors; "
        f"above it are {', '.join(above) or 'none'} (by two errors: {', '.join(sure) or 'none'}). Geometric mean of "
        f"the {len(ratios)} ratios: {mean:.2f}.",
    ]


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="names with commas between them")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="at least")
    parser.add_argument("--most", type=int, default=MOST_SEEDS, help="seeds, where fewer do not tell")
    parser.add_argument("--fits", type=Path, default=KEPT)
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = tabulate(collect(asked.sets.split(","), asked.seeds, asked.most, asked.fits))
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
