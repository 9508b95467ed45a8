"""A forecast, drawn: expected quality against epsilon, beside what every budget promises."""

from __future__ import annotations

from consenso.pages import page, table
from consenso.report.charts import number_text
from consenso.report.curves import Curve, Curves
from consenso.study.forecast import Forecast


def curves_of(found: Forecast) -> Curves:
    """The picture of a forecast."""
    points = found.points
    return Curves(
        title="What can be expected before a run",
        measure=found.measure,
        delta=found.delta,
        curves=(
            Curve(
                name=f"{found.algorithm}, {found.trust} trust",
                epsilons=[point.epsilon for point in points],
                means=[point.mean for point in points],
                lows=[point.low for point in points],
                highs=[point.high for point in points],
            ),
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
    return (
        f"{found.records:,} records, {found.features} features. Means of {found.runs} simulated runs on "
        f"{found.source}, with the least and the most of them. No private row was read.{made_up}"
    )


def rows_of(found: Forecast) -> list[list[str]]:
    """Epsilon, expected quality, its band, what is lost, and an attacker's odds."""
    curves = curves_of(found)
    sign = 1 if found.measure == "accuracy" else -1
    rows = []
    for point in found.points:
        lost = sign * (found.exact - point.mean)
        told = f"{100 * lost:.1f} points" if found.measure == "accuracy" else number_text(lost)
        band = f"{curves.show(point.low)} to {curves.show(point.high)}"
        rows.append([number_text(point.epsilon), curves.show(point.mean), band, told, str(point.odds)])
    return rows


HEAD = ["epsilon", "expected", "over the runs", "lost to privacy", "attackers right of 100"]


def forecast_html(found: Forecast) -> str:
    """The page of a forecast."""
    curves = curves_of(found)
    body = (
        f"<h1>{curves.title}</h1><p>{curves.note}</p>{curves.svg()}"
        + table(HEAD, rows_of(found), numbers=frozenset(range(5)), caption=f"{found.measure}, delta {found.delta:g}")
        + f"<p>Without privacy: {curves.show(found.exact)}; {_simplest(found)}: {curves.show(found.simplest)}. An "
        "attacker who tosses a coin is right 50 times of 100.</p>"
    )
    return page(curves.title, body)


def _simplest(found: Forecast) -> str:
    return "commonest class" if found.measure == "accuracy" else "always the mean"
