"""Figures 1 to 3 of the paper, as published and corrected, and what becomes of its order of methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array
from experiments import totals
from experiments.outcome import Curve, Figure, Outcome, Panel, Spent, Table
from experiments.paper004 import corrected, published
from experiments.paper004.first_round import AFTER, BEFORE
from experiments.paper004.published import CURVE
from experiments.paper004.verdicts import errors, factors, verdicts
from experiments.paper004.worlds import DELTA, ITERATIONS, TASKS
from experiments.results import Results

HUES = {name: place for place, name in enumerate(dict.fromkeys((*published.METHODS, *corrected.METHODS)))}


def gather(grid: Any, results: Results) -> Outcome:
    """Everything that the page shows."""
    middle = grid.epsilons[len(grid.epsilons) // 2]
    return Outcome(
        results=_table(grid, results),
        figures=(
            _by_epsilon("published", "As published: error against the nominal total epsilon", grid, results),
            _by_epsilon("corrected", "Corrected: error against the true total epsilon", grid, results),
            _curves(middle, results),
        ),
        verdicts=verdicts(grid, results),
        spent=_spent(grid, results),
        changes=_changes(grid, results),
        cards={
            f"{asked['task']}, {asked['method']}": values["card"]
            for asked, values in results.rows("corrected")
            if "card" in values
        },
    )


def _methods(results: Results, group: str, task: str) -> list[str]:
    return results.distinct("method", group, task=task)


def _table(grid: Any, results: Results) -> Table:
    rows = []
    for version in ("published", "corrected"):
        for task in TASKS:
            for method in _methods(results, version, task):
                for epsilon in grid.epsilons:
                    found = errors(results, version, task, method, epsilon)
                    rows.append((version, task, method, epsilon, float(np.median(found)), *_band(found)))
    return Table(
        name="results",
        title="Error of all nodes against the central solution",
        columns=("version", "objective", "method", "total epsilon", "median", "20 %", "80 %"),
        rows=tuple(rows),
        note=f"sum over nodes of |w_k - w_c|^2 / |w_c|^2 after {ITERATIONS} iterations; delta = {DELTA:g}; the epsilon "
        "of published runs is nominal.",
    )


def _band(found: Array) -> tuple[float, float]:
    low, high = np.quantile(found, [0.2, 0.8])
    return float(low), float(high)


def _by_epsilon(version: str, title: str, grid: Any, results: Results) -> Figure:
    panels = []
    for task in TASKS:
        curves = []
        for method in _methods(results, version, task):
            found = [errors(results, version, task, method, epsilon) for epsilon in grid.epsilons]
            bands = [_band(each) for each in found]
            curves.append(
                Curve(
                    label=method,
                    x=grid.epsilons,
                    y=[float(np.median(each)) for each in found],
                    low=[low for low, _ in bands],
                    high=[high for _, high in bands],
                    hue=HUES[method],
                )
            )
        panels.append(
            Panel(
                title=task,
                x=f"total epsilon ({'nominal' if version == 'published' else 'true'}, delta {DELTA:g})",
                y="sum over nodes of |w - w_c|^2 / |w_c|^2",
                curves=tuple(curves),
                log_x=True,
                log_y=True,
            )
        )
    return Figure(
        name=version,
        title=title,
        caption="Median over draws of data, graph and noise; bands from the 20th to the 80th percentile.",
        panels=tuple(panels),
        across=3,
    )


def _curves(epsilon: float, results: Results) -> Figure:
    panels = []
    for version in ("published", "corrected"):
        for task in TASKS:
            curves = []
            for method in _methods(results, version, task):
                rows = [v["errors"] for _, v in results.rows(version, task=task, method=method, epsilon=epsilon)]
                low, middle, high = np.quantile(np.array(rows), [0.2, 0.5, 0.8], axis=0)
                x = [CURVE * (place + 1.0) for place in range(len(middle))]
                curves.append(Curve(label=method, x=x, y=middle, low=low, high=high, hue=HUES[method]))
            panels.append(
                Panel(
                    title=f"{task}, {'as published' if version == 'published' else 'corrected'}",
                    x="iteration",
                    y="sum over nodes of |w - w_c|^2 / |w_c|^2",
                    curves=tuple(curves),
                    log_y=True,
                )
            )
    return Figure(
        name="learning",
        title=f"Learning curves at total epsilon {epsilon:g}",
        caption="Median over draws; bands from the 20th to the 80th percentile. Noise that falls over "
        "the iterations lets the error fall until the end.",
        panels=tuple(panels),
        across=3,
    )


def _spent(grid: Any, results: Results) -> tuple[Spent, ...]:
    found = []
    for task in TASKS:
        bounded = task == "least absolute deviations"
        for epsilon in grid.epsilons:
            least = float(np.median(results.values("at least", "first round", task=task, epsilon=epsilon)))
            # Neighbours see the first message as an eavesdropper does; what the last one tells was not worked out.
            found += [
                Spent(
                    run=f"zCDP-NFL, {task}",
                    version="as published",
                    nominal=epsilon,
                    observer=observer,
                    unit="record",
                    adjacency="replace-one",
                    epsilon=float("inf"),
                    delta=DELTA,
                    theorem="none: the bound of a row is read from the data"
                    if bounded
                    else "none: gradients are unbounded",
                    at_least=at_least,
                )
                for observer, at_least in (("eavesdropper", least), ("peer:0", least), ("public", None))
            ]
    for asked, values in results.rows("corrected"):
        if "card" in values:
            run = f"{asked['method']}, {asked['task']}"
            found += totals.of_card(run, values["card"]["card"], nominal=asked["epsilon"])
    return tuple(found)


def _changes(grid: Any, results: Results) -> tuple[str, ...]:
    epsilon = grid.epsilons[0]
    rho = results.rows("first round", task="elastic net", epsilon=epsilon)[0][1]
    pairs = [
        (
            float(np.median(errors(results, "published", task, "zCDP-NFL", e))),
            float(np.median(errors(results, "corrected", task, "zCDP-NFL", e))),
            float(np.median(errors(results, "corrected", task, "zCDP-NFL, free options", e))),
        )
        for task in TASKS
        for e in grid.epsilons
    ]
    dearer = [right / wrong for wrong, right, _ in pairs]
    better = [right / free for _, right, free in pairs]
    return (
        f"The squared loss has unbounded gradients. Replacing a record (x, {BEFORE:g}) by (x, {AFTER:g}), |x| = 1, "
        f"costs {rho['true rho']:.3g} in the first round, where {rho['nominal rho']:.3g} is accounted for (zCDP, "
        f"nominal total epsilon {epsilon:g}).",
        f"With every record's gradient shortened to a public length and exact composition, the error of zCDP-NFL is "
        f"{min(dearer):.2g} to {max(dearer):.2g} times that of the published runs at the same number.",
        "Taking gradients at the average of what was heard, the prox of the regularizer and the average of late "
        f"iterates is free of cost; it divides the error by {min(better):.2g} to {max(better):.2g}.",
        *(
            f"{task}: as published, constant steps have "
            f"{factors(grid, results, 'published', task, 'zCDP-NFL', 'zCDP-NFL, constant step')} the error of steps "
            "that fall."
            for task in TASKS
        ),
        "zCDP against (epsilon, delta) is no comparison of methods: it is one mechanism under two accountants, and the "
        "exact one gives both the same noise.",
    )
