"""`consenso.compare`: run methods at several budgets and keep what they reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from consenso.comparison.methods import Data, method_of
from consenso.conventions import default_delta
from consenso.errors import InputError
from consenso.problem import Problem
from consenso.report.curves import Curves, PlottedCurve


def compare(
    problem: Problem,
    methods: Sequence[Any] | Mapping[str, Any],
    data: Data,
    *,
    epsilons: Sequence[float] = (0.3, 1.0, 3.0),
    delta: float | None = None,
    runs: int = 3,
    seed: int = 0,
) -> Curves:
    """Accuracy, or root mean squared error, of several methods against epsilon, at the same delta.

    methods: names of solvers ("auto", "exact", ...), algorithms or pairs of one with its rounds, objects with `fit` and
    `predict` (their `epsilon`, `delta` and `random_state` are set), functions of epsilon, delta and seed that make
    one; or a mapping that names them. What has no epsilon is drawn as a line. Noise is seeded: a simulation. What an
    estimator of others claims at an epsilon is not checked.
    """
    if not epsilons or any(not value > 0 for value in epsilons) or runs < 1:
        raise InputError("compare(epsilons=..., runs=...): budgets are positive and runs are at least one; give some.")
    asked = default_delta(problem.records) if delta is None else float(delta)
    named = methods.items() if isinstance(methods, Mapping) else [(None, method) for method in methods]
    curves: list[PlottedCurve] = []
    references: dict[str, float] = {}
    for own, given in named:
        found, predict, depends = method_of(given, problem, data)
        name = _distinct(own or found, [*references, *(curve.name for curve in curves)])
        if not depends:
            references[name] = _quality(problem, predict(float("inf"), asked, seed), data)
            continue
        reached = [
            [_quality(problem, predict(float(epsilon), asked, seed + place), data) for place in range(runs)]
            for epsilon in sorted(epsilons)
        ]
        curves.append(
            PlottedCurve(
                name=name,
                epsilons=sorted(map(float, epsilons)),
                means=[float(np.mean(values)) for values in reached],
                lows=[float(np.min(values)) for values in reached],
                highs=[float(np.max(values)) for values in reached],
            )
        )
    return Curves(
        title=f"{problem.loss.name}, {problem.records:,} records, {problem.features} features",
        measure="rmse" if problem.loss.targets == "real" else "accuracy",
        delta=asked,
        curves=tuple(curves),
        references=references,
        note=f"Means of {runs} simulated runs on {len(data.y_test):,} test records, with the least and the most.",
    )


def _quality(problem: Problem, predicted: Any, data: Data) -> float:
    said, truth = np.asarray(predicted), np.asarray(data.y_test)
    if problem.loss.targets == "real":
        return float(np.sqrt(np.mean((said - truth) ** 2)))
    return float(np.mean(said == truth))


def _distinct(name: str, taken: Sequence[str]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    return found
