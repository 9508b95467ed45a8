"""Robust and sparse fits beside tuned descent.

    python -m benchmarks.utility.other_losses --page docs/solvers-measured.md

The estimators with nothing set against noisy proximal descent on the same loss: the best of a grid of steps, rates,
clips, 1-norms and Adam's steps on the test part, which costs it nothing here.
Robust fits are measured by the mean absolute error, sparse ones by the mean squared error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import consenso
from benchmarks.utility.descent import CLIPS, Descent, Slopes, grid
from benchmarks.utility.development import DELTA
from benchmarks.utility.development_sets import SETS, Development
from benchmarks.utility.silos import show
from consenso.arrays import Array
from consenso.audit.table import write_into

EPSILONS, SEEDS = (0.5, 1.0, 3.0), 3
MARKERS = ("<!-- other losses -->", "<!-- end of other losses -->")


def _clip_residuals(scores: Array, y: Array, clips: Array) -> Array:
    return np.clip(scores - y, -clips, clips)


def _signs(scores: Array, y: Array, clips: Array) -> Array:
    return clips * np.sign(scores - y)


@dataclass(frozen=True, kw_only=True)
class Model:
    """An estimator, its tables, and the rival's slopes: clipped residuals are those of Huber's loss, too."""

    estimator: Callable[..., Any]
    tables: tuple[str, ...]
    slopes: Slopes = _clip_residuals
    clips: tuple[float, ...] = CLIPS
    levels: tuple[float, ...] = (0.0,)
    power: int = 2


ROBUST, SPARSE = ("housing", "diabetes", "heavytarget"), ("housing", "diabetes", "sparse200")
LEVELS = (0.001, 0.01, 0.03)
MODELS = {
    "PrivateHuberRegressor": Model(estimator=consenso.PrivateHuberRegressor, tables=ROBUST, power=1),
    "PrivateLADRegressor": Model(
        estimator=consenso.PrivateLADRegressor, tables=ROBUST, slopes=_signs, clips=(1.0,), power=1
    ),
    "PrivateLasso": Model(estimator=consenso.PrivateLasso, tables=SPARSE, levels=LEVELS),
    "PrivateElasticNet": Model(estimator=consenso.PrivateElasticNet, tables=SPARSE, levels=LEVELS),
}


def measure(model: Model, table: Development, epsilon: float, seed: int) -> float:
    """The error of the estimator with nothing set."""
    made = model.estimator(
        epsilon=epsilon,
        delta=DELTA,
        row_bound=table.row_bound,
        target_bound=table.target_bound,
        adjacency="add-remove",
        records=len(table.y),
        random_state=seed,
    )
    return _error(table, made.fit(table.X, table.y).predict(table.X_test) / table.target_bound, model.power)


def descend(model: Model, table: Development, epsilon: float, seeds: int) -> list[float]:
    """The errors of the tuned rival."""
    most = table.target_bound
    rival = Descent(table, model.slopes, np.clip(table.y, -most, most) / most)
    settings = grid(levels=model.levels, clips=model.clips)
    return rival.measure_best(settings, lambda scores: _error(table, scores, model.power), epsilon, DELTA, seeds)


def _error(table: Development, scores: Array, power: int) -> float:
    """Of scores in units of the target bound."""
    y = np.clip(table.y_test / table.target_bound, -1.0, 1.0)
    return float(np.mean(np.abs(scores - y) ** power))


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="names of estimators")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    lines = ["| estimator | table | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |"]
    lines.append("| --- | --- |" + " --- |" * len(EPSILONS))
    for name in asked.models.split(","):
        model = MODELS[name]
        for which in model.tables:
            table, cells = SETS[which](), []
            for epsilon in EPSILONS:
                ours = [measure(model, table, epsilon, seed) for seed in range(asked.seeds)]
                cells.append(show(ours, descend(model, table, epsilon, asked.seeds)))
                print(name, which, epsilon, cells[-1], flush=True)
            lines.append(f"| `{name}` | {which} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
