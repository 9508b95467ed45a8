"""Figures 1 to 3 of the paper: risk against epsilon, against the inner steps, and against the other methods."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from consenso.arrays import Array
from experiments import totals
from experiments.outcome import Curve, Figure, Level, Outcome, Panel, Spent, Table
from experiments.paper002.corrected import INNER, SERVER
from experiments.paper002.published import DELTA, ROUNDS
from experiments.paper002.verdicts import risks, verdicts
from experiments.results import Results
from experiments.writing import shown

FRAME = (0.3, 0.7)  # of risks by iteration: the model zero has log 2
FORMS = {"own": "as published", "free": "with free options"}


def gather(grid: Any, results: Results) -> Outcome:
    """Everything that the page shows."""
    return Outcome(
        results=_table(grid, results),
        figures=(
            _by_iteration(grid, results),
            _compared(grid, results),
            _by_epsilon(grid, results),
            _by_inner(grid, results),
        ),
        verdicts=verdicts(grid, results),
        spent=_spent(grid, results),
        changes=_changes(grid, results),
        cards={
            f"{asked['method']} {asked['form']} {asked['epsilon']:g}": values["card"]
            for asked, values in results.rows("baseline")
            if "card" in values
        },
    )


def _exact(results: Results) -> float:
    return float(results.values("risk", "reference")[0])


def _band(found: Array) -> tuple[float, float]:
    low, high = np.quantile(found, [0.2, 0.8])
    return float(low), float(high)


def _forms(results: Results) -> list[tuple[str, str]]:
    return list(dict.fromkeys((asked["method"], asked["form"]) for asked, _ in results.rows("baseline")))


def _table(grid: Any, results: Results) -> Table:
    rows: list[tuple[Any, ...]] = [("without privacy", "minimiser", math.inf, None, None, _exact(results), None)]
    for group, name in (("published", "published noise"), ("corrected", "exact composition")):
        for asked, _ in results.rows(group, seed=0):
            epsilon, inner = asked["epsilon"], asked["inner"]
            found = results.values("risk", group, epsilon=epsilon, inner=inner)
            rows.append((name, f"IPADMM, l = {inner}", epsilon, ROUNDS, None, float(found.mean()), _spread(found)))
    for method, form in _forms(results):
        for epsilon in grid.compared:
            asked = {"method": method, "form": form, "epsilon": epsilon}
            found, accuracy = (
                risks(results, **asked),
                100 * float(results.values("accuracy", "baseline", **asked).mean()),
            )
            made = int(results.values("rounds", "baseline", **asked)[0])
            rows.append((FORMS[form], method, epsilon, made, accuracy, float(found.mean()), _spread(found)))
    return Table(
        name="results",
        title="Empirical risk on Adult, 100 nodes",
        columns=("version", "method", "epsilon", "rounds", "accuracy, %", "risk", "spread over seeds"),
        rows=tuple(rows),
        note=f"Mean of the nodes' models; delta {DELTA:g}. The epsilon of runs with published noise is nominal. The "
        f"minimiser "
        f"is certified to within {float(results.values('gap', 'reference')[0]):.1g} of the least objective.",
    )


def _spread(found: Array) -> float | None:
    return float(found.std(ddof=1)) if len(found) > 1 else None


def _curve(results: Results, group: str, label: str, along: str, at: tuple[Any, ...], hue: int, **fixed: Any) -> Curve:
    found = [results.values("risk", group, **{along: value}, **fixed) for value in at]
    bands = [_band(each) for each in found]
    return Curve(
        label=label,
        x=[float(value) for value in at],
        y=[float(each.mean()) for each in found],
        low=[low for low, _ in bands],
        high=[high for _, high in bands],
        hue=hue,
    )


def _by_iteration(grid: Any, results: Results) -> Figure:
    """Figure 3 as the paper draws it."""
    panels = []
    for epsilon in grid.compared:
        curves = []
        for hue, method in enumerate(grid.methods):
            rows = results.rows("baseline", method=method, form="own", epsilon=epsilon)
            found = np.array([values["risks"] for _, values in rows])
            low, high = np.quantile(found, [0.2, 0.8], axis=0)
            x = np.arange(1, found.shape[1] + 1)
            curves.append(Curve(label=method, x=x, y=found.mean(axis=0), low=low, high=high, hue=hue))
        panels.append(
            Panel(
                title=f"total epsilon {epsilon:g}",
                x="iteration",
                y="empirical risk (mean logistic loss)",
                curves=tuple(curves),
                levels=(Level(label="without privacy", y=_exact(results)),),
                limits=FRAME,
            )
        )
    return Figure(
        name="iterations",
        title="Figure 3: risk by iteration, each method as published",
        caption=f"Every method in its own form at equal totals (delta {DELTA:g}), exact composition; IPADMM with l = "
        f"{INNER}. "
        "PVP, DVP and R-ADMM make fewer rounds, set by looking at Adult. Bands: 20th to 80th percentile over seeds."
        f"{name_beyond(panels)}",
        panels=tuple(panels),
    )


def name_beyond(panels: list[Panel]) -> str:
    """The methods that a reader would look for in vain."""
    told = [
        f"{curve.label} ({panel.title}: {shown(float(curve.y[-1]))})"
        for panel in panels
        for curve in panel.curves
        if curve.y[-1] > FRAME[1]
    ]
    return f" Above the frame at their end: {', '.join(told)}." if told else ""


def _compared(grid: Any, results: Results) -> Figure:
    panels = []
    for form, name in FORMS.items():
        curves = tuple(
            _curve(results, "baseline", method, "epsilon", grid.compared, hue, method=method, form=form)
            for hue, method in enumerate((*grid.methods, *([SERVER] if form == "free" else [])))
        )
        panels.append(
            Panel(
                title=f"each {name}",
                x=f"total epsilon (delta {DELTA:g})",
                y="empirical risk (mean logistic loss)",
                curves=curves,
                levels=(Level(label="without privacy", y=_exact(results)),),
                log_x=True,
                log_y=True,
            )
        )
    return Figure(
        name="compared",
        title="Figure 3 on equal terms: released models at equal total epsilon",
        caption="One record replaced, every message seen. Left: nothing of ours. Right: every option that costs no "
        "privacy and that the method can take; the constants behind it were set by looking at Adult. Bands: 20th to "
        "80th percentile over seeds.",
        panels=tuple(replace(panel, limits=_frame(panels)) for panel in panels),
    )


def _frame(panels: list[Panel]) -> tuple[float, float]:
    """One axis for panels that are read side by side."""
    ends = [end for panel in panels for curve in panel.curves for end in (curve.low, curve.high) if end is not None]
    seen = [*np.concatenate(ends).tolist(), *(level.y for panel in panels for level in panel.levels)]
    return 0.97 * min(seen), 1.03 * max(seen)


def _by_epsilon(grid: Any, results: Results) -> Figure:
    curves = (
        _curve(results, "published", "noise of Theorem 6", "epsilon", grid.epsilons, 1, inner=INNER),
        _curve(results, "corrected", "exact composition", "epsilon", grid.epsilons, 0, inner=INNER),
    )
    return Figure(
        name="epsilon",
        title=f"Figure 1: risk against epsilon, {INNER} inner steps",
        caption="Bands: 20th to 80th percentile over seeds. The noise of Theorem 6 is worth less than the epsilon of "
        "the axis.",
        panels=(
            Panel(
                title="IPADMM on Adult",
                x=f"total epsilon (delta {DELTA:g})",
                y="empirical risk (mean logistic loss)",
                curves=curves,
                levels=(Level(label="without privacy", y=_exact(results)),),
                log_x=True,
            ),
        ),
        across=1,
    )


def _by_inner(grid: Any, results: Results) -> Figure:
    curves = (
        _curve(results, "published", "noise of Theorem 6", "inner", grid.inners, 1, epsilon=grid.middle),
        _curve(results, "corrected", "exact composition", "inner", grid.inners, 0, epsilon=grid.middle),
    )
    return Figure(
        name="inner",
        title=f"Figure 2: risk against the number of inner steps, epsilon {grid.middle:g}",
        caption="More inner steps are more releases, each with more noise. Bands: 20th to 80th percentile over seeds.",
        panels=(
            Panel(
                title="IPADMM on Adult",
                x="inner steps a round, l",
                y="empirical risk (mean logistic loss)",
                curves=curves,
                levels=(Level(label="without privacy", y=_exact(results)),),
            ),
        ),
        across=1,
    )


def _spent(grid: Any, results: Results) -> tuple[Spent, ...]:
    found = [
        Spent(
            run=f"IPADMM, l = {INNER}",
            version="as published",
            nominal=epsilon,
            observer=observer,
            unit="record",
            adjacency="replace-one",
            epsilon=float(results.values("true", "published", epsilon=epsilon, inner=INNER)[0]),
            delta=DELTA,
            theorem="AdaptiveComposition",
        )
        for epsilon in grid.epsilons
        for observer in ("eavesdropper", "peer:0", "public")
    ]
    for asked, values in results.rows("baseline"):
        if "card" in values:
            run = f"{asked['method']}, {FORMS[asked['form']]}"
            found += totals.of_card(run, values["card"]["card"], nominal=asked["epsilon"])
    return tuple(found)


def _changes(grid: Any, results: Results) -> tuple[str, ...]:
    epsilon = grid.middle
    true = float(results.values("true", "published", epsilon=epsilon, inner=INNER)[0])
    wrong, right = (
        float(results.values("risk", group, epsilon=epsilon, inner=INNER).mean())
        for group in ("published", "corrected")
    )
    free, server = (
        float(risks(results, method=method, form="free", epsilon=epsilon).mean()) for method in ("IPADMM", SERVER)
    )
    node = float(results.values("node", "published", epsilon=epsilon, inner=INNER).mean())
    return (
        f"A run with a nominal epsilon of {epsilon:g} has a true total of {true:.4g}: the paper's runs keep what "
        f"they state.",
        f"With the noise that {epsilon:g} really asks for, the risk is {right:.4g} instead of {wrong:.4g}.",
        "Gradients at the average of what was heard, shortened, and an average of late iterates, all free, bring it to "
        f"{free:.4g}; gradient descent with a server that is not trusted either has {server:.4g}.",
        f"A single node's last iterate, as published, has a risk of {node:.4g}: release the average of the nodes.",
    )
