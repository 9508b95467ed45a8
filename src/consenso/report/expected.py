"""A forecast, drawn: expected quality against epsilon, beside what every budget promises."""

from __future__ import annotations

from consenso.pages import page, table
from consenso.report.charts import number_text
from consenso.report.curves import Curves, PlottedCurve
from consenso.study.forecast import Forecast

RULES = "by the solvers' own rules"


def curves_of(found: Forecast) -> Curves:
    """The picture of a forecast."""
    points = found.points
    ruled = [(point.epsilon, point.by_rules) for point in points if point.by_rules is not None]
    modelled = [PlottedCurve.exact(RULES, *zip(*ruled, strict=True))] if ruled else []
    return Curves(
        title="What can be expected before a run",
        measure=found.measure,
        delta=found.delta,
        curves=(
            PlottedCurve(
                name=f"{found.algorithm}, {found.trust} trust",
                epsilons=[point.epsilon for point in points],
                means=[point.mean for point in points],
                lows=[point.low for point in points],
                highs=[point.high for point in points],
            ),
            *modelled,
        ),
        references={"without privacy": found.exact, _simplest(found): found.simplest},
        note=note_of(found),
    )


def note_of(found: Forecast) -> str:
    """What was simulated, and what it cannot know."""
    made_up = (
        ""
        if "public" in found.source
        else (
            " How strong the signal of the real records is nobody knows yet; a public file of the schema says more "
            "(--public)."
        )
    )
    modelled = any(point.by_rules is not None for point in found.points)
    ruled = "; beside them what the solvers' rules expect from public facts alone" if modelled else ""
    return (
        f"{found.records:,} records, {found.features} features. Means of {found.runs} simulated runs on "
        f"{found.source}, with the least and the most of them{ruled}. No private row was read.{made_up}"
    )


HEAD = ["epsilon", "expected, over the runs", "by the rules", "lost to privacy", "right of 100"]


def rows_of(found: Forecast) -> list[list[str]]:
    """Epsilon, expected quality with its band, what the rules expect, what is lost, and an attacker's odds."""
    curves = curves_of(found)
    sign = 1 if found.measure == "accuracy" else -1
    rows = []
    for point in found.points:
        lost = sign * (found.exact - point.mean)
        told = f"{100 * lost:.1f} points" if found.measure == "accuracy" else number_text(lost)
        expected = f"{curves.show(point.mean)} ({curves.show(point.low)} to {curves.show(point.high)})"
        ruled = "-" if point.by_rules is None else curves.show(point.by_rules)
        rows.append([number_text(point.epsilon), expected, ruled, told, str(point.odds)])
    return rows


def forecast_html(found: Forecast) -> str:
    """The page of a forecast."""
    curves, caption = curves_of(found), f"{found.measure}, delta {found.delta:g}"
    body = (
        f"<h1>{curves.title}</h1><p>{curves.note}</p>{curves.svg()}"
        + table(HEAD, rows_of(found), numbers=frozenset(range(len(HEAD))), caption=caption)
        + f"<p>Without privacy: {curves.show(found.exact)}; {_simplest(found)}: {curves.show(found.simplest)}. Of 100 "
        "attackers so many are right at most; tossing a coin makes 50 right.</p>"
    )
    return page(curves.title, body)


def _simplest(found: Forecast) -> str:
    return "commonest class" if found.measure == "accuracy" else "always the mean"
