"""The figures of paper 000."""

from __future__ import annotations

from typing import Any

from consenso.arrays import Array
from experiments.outcome import Curve, Figure, Level, Panel
from experiments.paper000.corrected import WAYS
from experiments.paper000.published import DELTA
from experiments.paper000.reading import METHODS, TOLD, Right, Scores, curve, server
from experiments.results import Results

HUES = {"admm": 0, "sgd": 1, **{name: hue for hue, name in enumerate(WAYS)}}


def figures(results: Results, scores: Scores, right: Right) -> tuple[Figure, ...]:
    """Figure 1 first."""
    return (
        _figure_1(results, scores, right),
        _settings(results, right),
        _stopping(results),
        _sphere(results, scores, right),
    )


def _figure_1(results: Results, scores: Scores, right: Right) -> Figure:
    levels = _levels(results, "code")
    published = tuple(
        curve
        for method, data in TOLD
        for curve in (
            _band(f"{METHODS[method]}, as published", scores["code", method], hue=HUES[method]),
            Curve(
                label="our run of the public code",
                x=data.at,
                y=data.values,
                style="reported",
            ),
        )
    )
    true = tuple(
        _band(
            f"{METHODS[method]}, as published",
            {server(results, method, epsilon): values for epsilon, values in scores["code", method].items()},
            hue=HUES[method],
        )
        for method in METHODS
    )
    corrected = tuple(
        _band(
            f"{WAYS[f'federated-{method}'].method}, corrected",
            curve(right, "code", f"federated-{method}"),
            hue=2 + place,
        )
        for place, method in enumerate(METHODS)
    )
    common: dict[str, Any] = {"y": "objective on the test set", "levels": levels, "log_x": True, "log_y": True}
    return Figure(
        name="figure1",
        title="Figure 1: federated lasso, private ADMM and proximal DP-SGD",
        caption="Left: what the public code does, against the epsilon that it states (the paper's drawing has an "
        "axis to 20). Right: the same runs where they belong, at the epsilon of whoever sees every update, beside runs "
        "that keep to the stated total. Bands: all seeds.",
        panels=(
            Panel(title="as published", x=f"epsilon as stated (delta {DELTA:g})", curves=published, **common),
            Panel(
                title="at the true total epsilon",
                x=f"true total epsilon (delta {DELTA:g})",
                curves=true + corrected,
                **common,
            ),
        ),
    )


def _settings(results: Results, right: Right) -> Figure:
    def panel(title: str, names: tuple[str, ...]) -> Panel:
        return Panel(
            title=title,
            x=f"total epsilon (delta {DELTA:g})",
            y="objective on the test set",
            curves=tuple(
                _band(f"{WAYS[name].setting}: {WAYS[name].method}", curve(right, "code", name), hue=HUES[name])
                for name in names
                if curve(right, "code", name)
            ),
            levels=_levels(results, "code"),
            log_x=True,
            log_y=True,
        )

    return Figure(
        name="settings",
        title="Corrected, in the three settings that the paper describes",
        caption="Every curve keeps its total epsilon for the observer it is meant for: whoever sees the final model "
        "(centralized; federated under a secure sum), another user (walk), or whoever sees every message.",
        panels=(
            panel("a trusted sum", ("central-admm", "central-sgd", "federated-admm", "federated-sgd")),
            panel("nobody is trusted", ("federated-local-admm", "walk", "walk-local-admm")),
        ),
    )


def _stopping(results: Results) -> Figure:
    panels = []
    for method, label in METHODS.items():
        group = f"published {method}"
        epsilons = results.distinct("epsilon", group, law="code")
        curves = tuple(
            _band(name, {e: results.values(key, group, law="code", epsilon=e) for e in epsilons}, hue=hue)
            for hue, (key, name) in enumerate(
                (
                    ("best", "best iterate on the test set"),
                    ("last", "last iterate"),
                    ("averaged", "average of the second half"),
                )
            )
        )
        panels.append(
            Panel(
                title=label,
                x=f"epsilon as stated (delta {DELTA:g})",
                y="objective on the test set",
                curves=curves,
                levels=_levels(results, "code"),
                log_x=True,
                log_y=True,
            )
        )
    return Figure(
        name="stopping",
        title="What choosing the best iterate on the test set hides",
        caption="As published, three ways to read one run. Only the last and the averaged iterate can be released.",
        panels=tuple(panels),
    )


def _sphere(results: Results, scores: Scores, right: Right) -> Figure:
    levels = _levels(results, "sphere")
    published = tuple(
        _band(f"{METHODS[method]}, as published", scores["sphere", method], hue=HUES[method]) for method in METHODS
    )
    ways = [way for way in WAYS if any(law == "sphere" and name == way for law, name, _ in right)]
    corrected = tuple(
        _band(f"{WAYS[way].method}, corrected ({WAYS[way].setting})", curve(right, "sphere", way), hue=2 + place)
        for place, way in enumerate(ways)
    )
    return Figure(
        name="sphere",
        title="The text's data: rows on the unit sphere",
        caption="The public code's algorithms and parameters on the data that the text describes, and corrected runs.",
        panels=(
            Panel(
                title="as published and corrected",
                x=f"epsilon as stated; for corrected runs also the true total (delta {DELTA:g})",
                y="objective on the test set",
                curves=published + corrected,
                levels=levels,
                log_x=True,
                log_y=True,
            ),
        ),
        across=1,
    )


def _band(label: str, found: dict[float, Array], *, hue: int) -> Curve:
    return Curve(
        label=label,
        style="dashed" if METHODS["sgd"] in label else "line",  # where both are level, both are seen
        x=tuple(found),
        y=tuple(float(values.mean()) for values in found.values()),
        low=tuple(float(values.min()) for values in found.values()),
        high=tuple(float(values.max()) for values in found.values()),
        hue=hue,
    )


def _levels(results: Results, law: str) -> tuple[Level, ...]:
    (_, found), *_ = results.rows("levels", law=law)
    return (Level(label="zero model", y=found["zero"]), Level(label="LassoCV, not private", y=found["exact"]))
