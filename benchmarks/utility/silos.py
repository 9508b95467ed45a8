"""Silos that add their own noise, beside tuned descent.

    python -m benchmarks.utility.silos --page docs/solvers-measured.md

Records of a table are spread over silos of equal size; everybody sees every message, one record is replaced. The rules
of "auto" with nothing set against distributed noisy descent, the best of a grid of steps, rates, clips and Adam's steps
on the test part, which costs it nothing here. Losses are those of the development sets, on the test part.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.special import expit

from benchmarks.utility.descent import CLIPS_OF_LABELS, RATES_OF_LABELS, Descent, grid
from benchmarks.utility.development import DELTA, ERRORS
from benchmarks.utility.development_sets import SETS, Development
from consenso.arrays import Array
from consenso.audit.table import write_into
from consenso.engine.run import run
from consenso.losses import Logistic, Loss, Squared
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import Unpenalized
from consenso.shards import Shards
from consenso.shards.constant import constant_for, whole_bound, with_constant
from consenso.solvers import prepare
from consenso.solvers.penalties import usual_penalty

TABLES, SILOS, EPSILONS, SEEDS = ("adult", "housing", "phishing"), (100,), (1.0, 3.0), 5
MARKERS = ("<!-- silos -->", "<!-- end of silos -->")


def measure(table: Development, silos: int, epsilon: float, seed: int) -> float:
    """The loss of the rules' choice."""
    real = table.kind == "regression"
    loss: Loss = Squared() if real else Logistic()
    bound, constant = table.row_bound, constant_for(table.row_bound)
    most = table.target_bound if real else None
    targets = np.clip(table.y, -table.target_bound, table.target_bound) if real else 2.0 * table.y - 1
    ends = np.linspace(0, len(targets), silos + 1).astype(int)
    usual = usual_penalty(loss, row_bound=bound, features=table.X.shape[1], records=len(targets), target_bound=most)
    problem = Problem(
        loss=loss,
        regularizer=Unpenalized(inner=usual, last=1),
        features=table.X.shape[1] + 1,
        sizes=np.diff(ends),
        row_bound=whole_bound(bound, constant),
        target_bound=most,
        adjacency="replace-one",
    )
    planned = prepare(
        problem,
        EpsilonDelta(epsilon=epsilon, delta=DELTA),
        sampler=Seeded(seed),
        observer=Eavesdropper(),
        trust="local",
        constant=constant,
        penalty_follows=True,
    )
    shards = Shards.build(problem, with_constant(np.asarray(table.X), bound, constant, "silos"), targets, ends)
    model = run(planned, shards).model
    return table.loss(table.X_test @ model[:-1] + constant * model[-1])


def descend(table: Development, silos: int, epsilon: float, seeds: int) -> list[float]:
    """The losses of tuned descent, whose noise is that of all silos."""
    if table.kind == "regression":
        most = table.target_bound

        def residuals(scores: Array, y: Array, clips: Array) -> Array:
            return np.clip(scores - y, -clips, clips)

        rival = Descent(table, residuals, np.clip(table.y, -most, most) / most)
        settings = grid()
    else:
        most = 1.0

        def slopes(scores: Array, y: Array, clips: Array) -> Array:
            chances: Array = expit(scores)
            return np.clip(chances - y, -clips, clips)

        rival = Descent(table, slopes, table.y.astype(np.float64))
        settings = grid(rates=RATES_OF_LABELS, clips=CLIPS_OF_LABELS)
    # One record is replaced: twice the noise.
    louder = 2.0 * np.sqrt(silos)
    return rival.measure_best(settings, lambda scores: table.loss(most * scores), epsilon, DELTA, seeds, louder)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES), help="names of development sets")
    parser.add_argument("--silos", type=int, action="append", help=f"numbers of silos; {SILOS} if none is named")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    lines = ["| table | silos | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |"]
    lines.append("| --- | --- |" + " --- |" * len(EPSILONS))
    for name in asked.tables.split(","):
        table = SETS[name]()
        for silos in asked.silos or SILOS:
            cells = []
            for epsilon in EPSILONS:
                ours = [measure(table, silos, epsilon, seed) for seed in range(asked.seeds)]
                theirs = descend(table, silos, epsilon, asked.seeds)
                cells.append(show(ours, theirs))
                print(name, silos, epsilon, cells[-1], flush=True)
            lines.append(f"| {name} | {silos} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


def show(ours: list[float], theirs: list[float]) -> str:
    """Both means; bold is the smaller one, where it is so by two standard errors."""
    means = [float(np.mean(each)) for each in (ours, theirs)]
    error = float(np.hypot(*(np.std(each, ddof=1) / np.sqrt(len(each)) for each in (ours, theirs))))
    texts = [f"{mean:.4g}" for mean in means]
    if abs(means[0] - means[1]) > ERRORS * error:
        better = int(np.argmin(means))
        texts[better] = f"**{texts[better]}**"
    return f"{texts[0]} ({texts[1]})"


if __name__ == "__main__":
    main()
