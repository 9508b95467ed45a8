"""The logistic prox of a million margins, in units of one `scipy.special.expit` of them.

Machines differ and are busy; the ratio of two timings of one run, each the best of several, hardly does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.special import expit

from consenso.losses import Logistic, Softmax

MARGINS = 1_000_000
REPEATS = 5
# What the ratio may be at most: below it, the prox is no more than the pass over the data beside which it runs.
TARGET = 12.0


def best_seconds(call: Callable[[], object]) -> float:
    """The shortest of several runs, after one that may compile."""
    call()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def run() -> list[dict[str, float | str]]:
    """A row per case: its seconds, the seconds of expit, their ratio and the target."""
    rng = np.random.default_rng(0)
    margins = 3.0 * rng.normal(size=MARGINS)
    signs = rng.choice([-1.0, 1.0], MARGINS)
    spread = 10.0 ** rng.uniform(-8, 8, MARGINS)
    logistic = Logistic()
    cases: dict[str, Callable[[], object]] = {
        f"logistic, step {step:g}": (lambda step=step: logistic.prox_slope(margins, step, signs))
        for step in (1e-2, 1.0, 1e2, 1e6)
    }
    cases["logistic, steps 1e-8..1e8"] = lambda: logistic.prox_slope(margins, spread, signs)
    for classes in (2, 10):
        softmax = Softmax(classes=classes)
        scores = margins[: MARGINS // classes * classes].reshape(-1, classes)
        targets = rng.integers(0, classes, len(scores))
        cases[f"softmax, {classes} classes, step 1, per score"] = (
            lambda softmax=softmax, scores=scores, targets=targets: softmax.prox_slope(scores, 1.0, targets)
        )
    rows: list[dict[str, float | str]] = []
    for name, call in cases.items():
        reference = best_seconds(lambda: expit(margins))
        seconds = best_seconds(call)
        rows.append({"case": name, "seconds": seconds, "expit seconds": reference, "ratio": seconds / reference})
        if name.startswith("logistic"):
            rows[-1]["target"] = TARGET
    return rows


if __name__ == "__main__":
    print(f"{'case':40s} {'seconds':>9s} {'expit':>9s} {'ratio':>7s} {'target':>7s}")
    for row in run():
        print(
            f"{row['case']:40s} {row['seconds']:9.4f} {row['expit seconds']:9.4f} {row['ratio']:7.2f} "
            f"{row.get('target', ''):>7}"
        )
