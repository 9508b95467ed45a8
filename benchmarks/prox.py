"""The logistic prox of a million margins, in units of one `scipy.special.expit` of them.

Machines differ and are busy; the ratio of two timings of one run, each the best of several, hardly does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit

from benchmarks.measure import Figure, best
from consenso.losses import Logistic, Softmax

MARGINS = 1_000_000
REPEATS = 5
# What the ratio may be at most: below it, the prox is no more than the pass over the data beside which it runs.
TARGET = 12.0


def run() -> Iterator[Figure]:
    """A figure per case; softmax, for which there is no target, per score."""
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
    for name, call in cases.items():
        own, reference = best(call, lambda: expit(margins), repeats=REPEATS)
        yield Figure(f"{name}, over expit", own / reference, limit=TARGET if name.startswith("logistic") else None)
