"""The figures of paper 001."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.outcome import Curve, Figure, Level, Panel, Style
from experiments.paper001.reading import KINDS, ORDERS, SEEN, curves, fixed, ratios_of
from experiments.paper001.world import DELTA, STEP
from experiments.results import Results

STROKES: dict[str, Style] = {"custom": "line", "plain": "dashed"}  # by norm


def figures(results: Results) -> tuple[Figure, ...]:
    """The bounds first."""
    return (_divergence(results), _expansion(results), _objectives(results), _users(results), _equal(results))


def _divergence(results: Results) -> Figure:
    panels = []
    for kind in KINDS:
        later, costs, own = curves(results, kind)
        panels.append(
            Panel(
                title=f"{kind} losses",
                x="iterations after the user (2T)",
                y="cost of the user's data (zCDP)",
                curves=(
                    Curve(label="printed bound", x=later, y=costs["printed"], style="dashed", hue=1),
                    Curve(label="sharpened bound", x=later, y=costs["ours"], hue=0),
                    Curve(label="exact, worst quadratic", x=later, y=costs["exact"], style="dotted", hue=2),
                ),
                levels=(Level(label="every iterate seen", y=own),),
                log_x=True,
                log_y=True,
                limits=None if kind == "convex" else (max(1e-12, float(costs["exact"].min()) / 3), 10.0),
            )
        )
    return Figure(
        name="divergence",
        title="Privacy amplification by iteration: printed, sharpened, exact",
        caption="What the final iterate tells of the data of a user, by the number of iterations that follow the "
        "user's own. Both bounds are sound; where the printed one lies above the line, it is no use yet.",
        panels=tuple(panels),
    )


def _expansion(results: Results) -> Figure:
    runs = []
    for hue, (asked, values) in enumerate(results.rows("coupled")):
        label = f"strong convexity {asked['convexity']:g}"
        for name, style in STROKES.items():
            y = np.array(values[name]) / values[name][0]
            runs.append(Curve(label=f"{label}, {name} norm", x=np.arange(float(len(y))), y=y, style=style, hue=hue))
    shares = []
    for hue, name in enumerate(STROKES):
        ratios = ratios_of(results, results.distinct("convexity", "pairs")[0], name)
        at = np.linspace(0, len(ratios) - 1, 400).astype(int)
        share = (at + 1) / len(ratios)
        label = f"one iteration, {name} norm"
        shares.append(Curve(label=label, x=ratios[at], y=share, hue=3 + hue, style=STROKES[name]))
    return Figure(
        name="expansion",
        title="Lemma 5.3: an iteration does not expand, in the paper's norm",
        caption="Left: two runs that differ in their start only, and share users and noise; in the plain norm their "
        "distance first grows. Right: random pairs of states, one iteration, convex losses.",
        panels=(
            Panel(
                title="two coupled runs",
                x="iteration",
                y="distance over that at the start",
                curves=tuple(runs),
                log_y=True,
            ),
            Panel(
                title="random pairs of states",
                x="distance after over distance before",
                y="share of pairs at most this",
                curves=tuple(shares),
                log_x=True,
            ),
        ),
    )


def _objectives(results: Results) -> Figure:
    def curve(label: str, hue: int, **asked: float) -> Curve:
        rows = results.rows("path", **asked)
        excess = np.array([values["excess"] for _, values in rows])
        return Curve(
            label=label,
            x=rows[0][1]["at"],
            y=excess.mean(axis=0),
            low=excess.min(axis=0),
            high=excess.max(axis=0),
            hue=hue,
        )

    convexities, stds = results.distinct("convexity", "path"), results.distinct("std", "path")
    middle = next(std for std in stds if std > 0)
    contraction = [
        curve(f"gradient step contracts by {1 - STEP * convexity:.4g}", hue, convexity=convexity, std=middle)
        for hue, convexity in enumerate(sorted(convexities))
    ]
    convexity = convexities[0]  # the one that has every noise
    noise = [
        curve(f"noise {std:g} a coordinate", 4 + hue, convexity=convexity, std=std) for hue, std in enumerate(stds)
    ]
    common: dict[str, Any] = {
        "x": "iteration (one user each)",
        "y": "objective above its minimum, over the start",
        "log_x": True,
        "log_y": True,
    }
    return Figure(
        name="objective",
        title="Generalised lasso: objective against iterations",
        caption="One pass over the users, from a start that is far. Each strong convexity has its own minimum. Bands: "
        "all seeds.",
        panels=(
            Panel(title=f"contraction, noise {middle:g}", curves=tuple(contraction), **common),
            Panel(title=f"noise, contraction by {1 - STEP * convexity:.4g}", curves=tuple(noise), **common),
        ),
    )


def _users(results: Results) -> Figure:
    panels = []
    for measure, label in (("order 2", "Renyi divergence of order 2"), ("epsilon", f"epsilon at delta {DELTA:g}")):
        drawn = []
        for kind in KINDS:
            style: Style = "line" if kind == "convex" else "dashed"
            (_, values), *_ = results.rows(f"users {kind}")
            at = values["at"]
            for hue, order in enumerate(ORDERS):
                y = _everywhere(values[order][measure], at)
                drawn.append(Curve(label=f"{order}, {kind}", x=at, y=y, hue=hue, style=style))
        (_, values), *_ = results.rows("users convex")
        seen = values[SEEN][measure][0]
        least = min(min(curve.y) for curve in drawn)
        panels.append(
            Panel(
                title=label,
                x="position of the user",
                y=label,
                curves=tuple(drawn),
                levels=(Level(label=SEEN, y=seen),),
                log_y=True,
                limits=(max(seen * 1e-5, least / 2), 2 * seen),
            )
        )
    return Figure(
        name="users",
        title="What the final iterate tells of every user",
        caption="In a fixed order the last users have their own noise only. A random order or stopping time shares "
        "the cost: much in the divergence of order 2, little in epsilon, as delta is far below the chance to be late.",
        panels=tuple(panels),
    )


def _everywhere(values: list[float], at: list[int]) -> list[float]:
    return values if len(values) == len(at) else values * len(at)


def _equal(results: Results) -> Figure:
    found = fixed(results)
    epsilons = sorted({epsilon for _, epsilon in found})
    start = next(iter(found.values()))["start"]

    def curve(accounting: str, hue: int) -> Curve:
        excess = [np.array(found[accounting, epsilon]["excess"]) for epsilon in epsilons]
        return Curve(
            label=f"noise from the {accounting} bound",
            x=epsilons,
            y=[float(values.mean()) for values in excess],
            low=[float(values.min()) for values in excess],
            high=[float(values.max()) for values in excess],
            hue=hue,
            style="dashed" if accounting == "printed" else "line",
        )

    return Figure(
        name="equal",
        title="The same guarantee with each bound",
        caption="Generalised lasso, one pass in a fixed order. The noise is the least that gives the first half of the "
        "users this epsilon against whoever sees the final model.",
        panels=(
            Panel(
                title="objective at equal epsilon",
                x=f"epsilon of the first half of the users (delta {DELTA:g})",
                y="objective above its minimum, at the end",
                curves=(curve("printed", 1), curve("sharpened", 0)),
                levels=(Level(label="start", y=start),),
                log_x=True,
                log_y=True,
            ),
        ),
        across=1,
    )
