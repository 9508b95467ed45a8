"""Figures 1 to 6 of the paper, and the one that it lacks: error against the total epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.outcome import Curve, Figure, Level, Panel, Style
from experiments.paper003 import published, reported
from experiments.paper003.published import DELTA
from experiments.paper003.reading import band, corrected_errors, curve, exact, iterations, last, methods, runs
from experiments.results import Results

HUES = {name: place for place, name in enumerate(published.METHODS)}
LABELS = {"Trust": "Trust (radius of the code)", "Trust, shrinking": "Trust (radius of the text)"}
STYLES: tuple[Style, ...] = ("line", "dashed", "dotted")
NOISY = "epsilon of one iteration"


def figures(grid: Any, results: Results) -> tuple[Figure, ...]:
    """The errors first."""
    made = [
        _errors(grid, results),
        _by_total(grid, results),
        _by_iteration(grid, results, "noise", "average scale of the noise", "noise"),
        _by_iteration(grid, results, "errors", "test error, %", "learning"),
        _by_iteration(grid, results, "violation", "norm of w - z over all agents", "violation"),
    ]
    if grid.scalings:
        made.append(_scaling(grid, results))
    return tuple(made)


def _errors(grid: Any, results: Results) -> Figure:
    panels = []
    for data in grid.sets:
        curves = [
            curve(
                LABELS.get(method, method),
                grid.epsilons,
                [last(results, data, method, epsilon) for epsilon in grid.epsilons],
                hue=HUES[method],
            )
            for method in methods(results, data)
        ]
        for label, told in (("Trust, as reported", reported.TRUST), ("OutP, as reported", reported.OUTPUT)):
            at = sorted(told[data])
            hue = HUES[label.partition(",")[0]]
            curves.append(Curve(label=label, x=at, y=[told[data][e] for e in at], style="reported", hue=hue))
        panels.append(
            Panel(
                title=f"{data}, {iterations(results, data, methods(results, data)[0]):,} iterations",
                x=f"{NOISY} (the paper's measure)",
                y="test error, %",
                curves=tuple(curves),
                levels=(
                    Level(label="without privacy", y=exact(results, data, grid.images)),
                    Level(label="without privacy, as reported", y=reported.NON_PRIVATE[data]),
                ),
                log_x=True,
            )
        )
    return Figure(
        name="published",
        title="As published: test error against the epsilon of one iteration",
        caption=f"Diamonds: reported, after {published.ITERATIONS:,} iterations on all images. Bands: 20th to 80th "
        "percentile of the seeds.",
        panels=tuple(panels),
    )


def _by_total(grid: Any, results: Results) -> Figure:
    panels = []
    for data in results.distinct("data", "corrected"):
        epsilons = results.distinct("epsilon", "corrected", data=data)
        curves = tuple(
            curve(
                method,
                epsilons,
                [corrected_errors(results, data, method, epsilon) for epsilon in epsilons],
                style="dashed" if method.startswith("Trust") else "line",  # often the same as Prox
            )
            for method in results.distinct("method", "corrected", data=data)
        )
        panels.append(
            Panel(
                title=f"MNIST, {grid.total_images:,} images" if data == "MNIST" else data,
                x=f"total epsilon of the whole run (delta {DELTA:g})",
                y="test error, %",
                curves=curves,
                levels=(Level(label="without privacy", y=exact(results, data, grid.total_images)),),
                log_x=True,
            )
        )
    return Figure(
        name="corrected",
        title="Corrected: test error against the total epsilon",
        caption="Global sensitivity, all iterations composed, their number from public facts. 'Secure sum' is "
        "the solver that the estimators choose by themselves, on sums that nobody sees in parts. Bands: 20th to 80th "
        "percentile of the seeds.",
        panels=tuple(panels),
    )


def _by_iteration(grid: Any, results: Results, what: str, label: str, name: str) -> Figure:
    panels = []
    for data in grid.sets:
        for epsilon in (grid.epsilons[0], grid.epsilons[-1]):
            curves = []
            for method in methods(results, data):
                found = runs(results, data, method, epsilon)
                values = np.array([run[what] for run in found])
                low, high = band(values, axis=0)
                text = LABELS.get(method, method)
                curves.append(
                    Curve(label=text, x=found[0]["at"], y=values.mean(axis=0), low=low, high=high, hue=HUES[method])
                )
            panels.append(
                Panel(
                    title=f"{data}, epsilon {epsilon:g} an iteration",
                    x="iteration",
                    y=label,
                    curves=tuple(curves),
                    log_x=True,
                    log_y=what != "errors",
                )
            )
    return Figure(
        name=name,
        title=f"As published, by iteration: {label}",
        caption="Mean over the seeds; bands: 20th to 80th percentile.",
        panels=tuple(panels),
    )


def _scaling(grid: Any, results: Results) -> Figure:
    curves = []
    for place, scaling in enumerate(grid.scalings):
        ((asked, values),) = results.rows("scaling", scaling=scaling)
        (run,) = values["runs"]
        style = STYLES[place % len(STYLES)]  # the larger ones hardly differ
        curves.append(Curve(label=f"proximity times {scaling:g}", x=run["at"], y=run["errors"], style=style))
    ((epsilon, _),) = asked["runs"]
    return Figure(
        name="scaling",
        title="Scaling the proximity of Prox",
        caption=f"MNIST, epsilon {epsilon:g} an iteration, one seed.",
        panels=(Panel(title="MNIST", x="iteration", y="test error, %", curves=tuple(curves), log_x=True),),
        across=1,
    )
