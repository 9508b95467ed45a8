"""Figures 1 to 6 of the paper, and the one that it lacks: error against the total epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.outcome import Curve, Figure, Level, Panel, Style
from experiments.paper003 import published, reported
from experiments.paper003.published import DELTA
from experiments.paper003.reading import (
    all_runs,
    band,
    corrected_errors,
    curve,
    exact,
    iterations,
    last,
    methods,
    runs,
)
from experiments.results import Results

HUES = {name: place for place, name in enumerate(published.METHODS)}
LABELS = {
    "Trust": "Trust (radius of the code)",
    "Trust, shrinking": "Trust (radius of the text)",
    "OutP": "OutP (noise of its theorem)",
    "OutP, its code": "OutP (its public code)",
}
STYLES: tuple[Style, ...] = ("line", "dashed", "dotted")
NOISY = "epsilon of one iteration"
PER_CENT = (0.0, 100.0)  # one axis for all panels that are read side by side


def figures(grid: Any, results: Results) -> tuple[Figure, ...]:
    """The errors first."""
    made = [
        _errors(grid, results),
        _by_total(grid, results),
        _by_iteration(grid, results, "noise", "mean absolute noise", "noise", "Figure 1"),
        _by_iteration(grid, results, "errors", "test error, %", "learning", "Figures 2 and 4"),
        _by_iteration(grid, results, "violation", "|w - z|_1, mean of the agents", "violation", "Figure 5"),
    ]
    if grid.scalings and grid.scaled in grid.sets:
        made.append(_scaling(grid, results))
    return tuple(made)


def _errors(grid: Any, results: Results) -> Figure:
    panels = []
    for data in grid.sets:
        curves = []
        for method in methods(results, data):
            at = [epsilon for epsilon in grid.epsilons if runs(results, data, method, epsilon)]
            found = [last(results, data, method, epsilon) for epsilon in at]
            curves.append(curve(LABELS.get(method, method), at, found, hue=HUES[method]))
        for label, told in (("Trust, as reported", reported.TRUST), ("OutP, as reported", reported.OUTPUT)):
            at = sorted(told[data])
            hue = HUES["Trust" if label.startswith("Trust") else "OutP, its code"]
            curves.append(Curve(label=label, x=at, y=[told[data][e] for e in at], style="reported", hue=hue))
        panels.append(
            Panel(
                title=f"{_set(data)}, {iterations(results, data, methods(results, data)[0]):,} iterations",
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
        f"percentile of the seeds.{_stopped(grid, results)}",
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


def _by_iteration(grid: Any, results: Results, what: str, label: str, name: str, which: str) -> Figure:
    panels = []
    for data in grid.sets:
        shown = [epsilon for epsilon in grid.epsilons if runs(results, data, "Trust", epsilon)]
        for epsilon in shown[:3]:  # the paper's three
            curves = []
            for method in methods(results, data):
                found = runs(results, data, method, epsilon)
                if not found:
                    continue
                values = np.array([run[what] for run in found])
                low, high = band(values, axis=0)
                text = LABELS.get(method, method)
                curves.append(
                    Curve(label=text, x=found[0]["at"], y=values.mean(axis=0), low=low, high=high, hue=HUES[method])
                )
            panels.append(
                Panel(
                    title=f"{_set(data)}, epsilon {epsilon:g} an iteration",
                    x="iteration",
                    y=label,
                    curves=(
                        *curves,
                        *(_reported_at(data, epsilon) if what == "errors" else _logged(grid, data, epsilon, what)),
                    ),
                    log_x=True,
                    log_y=what != "errors",
                    limits=PER_CENT if what == "errors" else None,
                )
            )
    told = f" Diamonds: reported, after {published.ITERATIONS:,} iterations on all images." if what == "errors" else ""
    if any(_logged(grid, data, epsilon, what) for data in grid.sets for epsilon in grid.epsilons):
        told = " Diamonds: the log of a run that lies in the public repository."
    return Figure(
        name=name,
        title=f"{which}, as published: {label} by iteration",
        caption=f"{_made(grid, results)} Mean over the seeds; bands: 20th to 80th percentile. OutP adds its noise to "
        f"the model, the others to the gradient.{told}",
        panels=tuple(panels),
        across=3,
    )


def _reported_at(data: str, epsilon: float) -> tuple[Curve, ...]:
    """The errors that the paper states for an epsilon, where its runs end."""
    return tuple(
        Curve(
            label=f"{name}, as reported", x=[published.ITERATIONS], y=[told[data][epsilon]], style="reported", hue=hue
        )
        for name, told, hue in (
            ("Trust", reported.TRUST, HUES["Trust"]),
            ("OutP", reported.OUTPUT, HUES["OutP, its code"]),
        )
        if epsilon in told[data]
    )


def _logged(grid: Any, data: str, epsilon: float, what: str) -> tuple[Curve, ...]:
    """What the authors' own log has of a run, where ours is the same one."""
    if what not in reported.LOGGED or data != "MNIST" or grid.images != reported.LOGGED_IMAGES:
        return ()
    if epsilon != reported.LOGGED_EPSILON:
        return ()
    at, values = reported.LOGGED_AT, reported.LOGGED[what]
    return (Curve(label="Trust, log of the public code", x=at, y=values, style="reported", hue=HUES["Trust"]),)


def _set(data: str) -> str:
    return data if data == "MNIST" else f"{data} (our copy)"


def _stopped(grid: Any, results: Results) -> str:
    """Where the runs with the text's radius end before the others."""
    made = {
        iterations(results, data, "Trust, shrinking")
        for data in grid.sets
        if "Trust, shrinking" in methods(results, data)
    }
    return "".join(f" With the radius of the text: {count:,} iterations." for count in sorted(made))


def _made(grid: Any, results: Results) -> str:
    """What was run: a reader must see where it is less than the paper's."""
    return " ".join(
        f"{_set(data)}: {iterations(results, data, methods(results, data)[0]):,} iterations on "
        + (f"{grid.images:,} images." if data == "MNIST" else "all its images.")
        for data in grid.sets
    )


def _scaling(grid: Any, results: Results) -> Figure:
    """Figure 6: a panel for each method."""
    found = all_runs(results, grid.scaled, "scaling")
    panels = []
    for method in dict.fromkeys(run.method for run, _, _ in found):
        curves = tuple(
            Curve(
                label=f"a = {run.scaling:g}",
                x=seen["at"],
                y=seen["errors"],
                style=STYLES[place % len(STYLES)],
                hue=place,
            )
            for place, (run, seen) in enumerate((r, s) for r, s, _ in found if r.method == method)
        )
        text = LABELS.get(method, method)
        panels.append(Panel(title=text, x="iteration", y="test error, %", curves=curves, log_x=True, limits=PER_CENT))
    epsilon = found[0][0].epsilon
    return Figure(
        name="scaling",
        title=f"Figure 6: scaling eta and the radius by a, {grid.scaled}",
        caption=f"{grid.scaled}{', as far as our copy goes' if grid.scaled == 'FEMNIST' else ', a first part'}, "
        f"epsilon "
        f"{epsilon:g} an iteration, one seed.",
        panels=tuple(panels),
        across=3,
    )
