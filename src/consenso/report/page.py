"""The page of one run: a verdict, what was learnt, who learns what, how it went, how to check it."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from consenso.pages import page, table, verdict
from consenso.privacy.card.depths import Overview, observer_name
from consenso.privacy.card.text import facts_text
from consenso.report.attacked import attacked_html
from consenso.report.charts import Axis, Series, graph_chart, line_chart
from consenso.report.learnt import learnt_html, quality_text
from consenso.report.pairs import pairs_section
from consenso.report.promised import (
    against_text,
    ledger_html,
    ledger_text,
    promised_html,
    tradeoff_html,
    who_text,
)
from consenso.report.reading import RunFiles, read_run
from consenso.study.rounds import rounds_text
from consenso.trust import mode_of

FILE = "report.html"


def write_report(folder: str | Path, path: str | Path | None = None) -> Path:
    """Write the page of the run in a folder; by default as report.html beside its card."""
    run = read_run(folder)
    target = Path(path) if path is not None else run.folder / FILE
    target.write_text(report_html(run), encoding="utf-8")
    return target


def report_html(run: RunFiles) -> str:
    """The page as HTML."""
    title = run.title or f"{run.card.algorithm} on {run.folder.name}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _lead(run),
        "<h2>What was learnt</h2>",
        learnt_html(run),
        "<h2>Who learns what about you</h2>",
        promised_html(run),
        "<h2>How well an attacker can do</h2>",
        tradeoff_html(run),
        attacked_html(run),
        ledger_html(run),
        "<h2>The noise, and what one person can change</h2>",
        _noise(run),
        _graph(run),
        pairs_section(run),
        "<h2>Parameters</h2>",
        _parameters(run),
        "<h2>How to verify this page</h2>",
        _verify(run),
    ]
    return page(title, "".join(parts))


def _lead(run: RunFiles) -> str:
    card = run.card
    notice = (
        "<p class='notice'><strong>Simulation, not private.</strong> The noise was drawn from a seed, so whoever "
        "knows the seed can take it away. The guarantees below are those of the same run with secret noise.</p>"
        if card.simulation
        else ""
    )
    shown = verdict(
        [
            ("What was learnt?", quality_text(run)),
            ("Who is protected?", who_text(run)),
            ("Against whom?", against_text(run)),
            ("How surely?", Overview(card=card).promise),
            ("What is left of the budget?", ledger_text(run)),
        ]
    )
    return (
        f"{notice}{shown}<p>Trained by <strong>{escape(card.algorithm)}</strong> ({escape(_rounds(run))}); "
        f"{mode_of(card.trust).clause}.</p>"
    )


def _rounds(run: RunFiles) -> str:
    paid = {"rounds planned": int(run.card.parameters["rounds"]), "rounds run": None}
    return rounds_text(paid if run.trace is None else paid | dict(run.trace))


def _noise(run: RunFiles) -> str:
    curves = run.noise_curves()
    if not curves:
        return "<p>No noise was added in rounds of this run: what protects is stated above, observer by observer.</p>"
    unit = "party" if run.card.data["unit"] == "party" else "record"
    series = []
    for curve in curves:
        series.append(Series(name=f"noise on {curve.name}", x=curve.rounds, y=curve.scales))
        series.append(Series(name=f"most that one {unit} can change {curve.name}", x=curve.rounds, y=curve.bounds))
    chart = line_chart(
        series,
        x=Axis(label="round", whole=True),
        y=Axis(label="size, in the unit of the release", log=True),
        title="Noise against the largest change by one unit, over the rounds",
    )
    return (
        "<p>In every round the noise (its scale, in each coordinate) hides what one "
        f"{unit} can change. Both follow from the plan, not from the data.</p>{chart}{_movement(run)}"
    )


def _movement(run: RunFiles) -> str:
    columns: Any = {} if run.trace is None else run.trace.get("columns", {})
    moved = columns.get("model movement")
    if not moved:
        return (
            "<p class='quiet'>The movement of the model from round to round is not shown: it was not traced, or the "
            "promise does not cover whoever sees every round.</p>"
        )
    first = int(run.trace["first round"]) if run.trace is not None else 0
    chart = line_chart(
        [
            Series(
                name="distance between one round's model and the next",
                x=range(first + 1, first + 1 + len(moved)),
                y=moved,
            )
        ],
        x=Axis(label="round", whole=True),
        y=Axis(label="how far the model moved", log=True),
        title="Movement of the model over the rounds",
    )
    return f"<p>How far the released model moved: signal and noise together, as the hub saw it.</p>{chart}"


def _graph(run: RunFiles) -> str:
    edges = run.card.parameters.get("edges")
    if not edges:
        return ""
    looking = next((entry for entry in run.entries() if entry.observer.startswith("peer")), run.entries()[0])
    chart = graph_chart(
        [(int(a), int(b)) for a, b in edges],
        run.node_epsilons(looking),
        title="The graph, each node shaded by its epsilon",
        unit="epsilon",
    )
    return (
        "<h2>The graph</h2><p>Each node's number, shaded by the epsilon of its data against "
        f"{escape(observer_name(looking.observer))}.</p>{chart}"
    )


def _parameters(run: RunFiles) -> str:
    card = run.card
    rows = [
        ["data and model", facts_text(card.data)],
        ["method", facts_text(card.parameters)],
        ["noise is drawn by", card.sampler],
        ["trust", card.trust],
        ["versions", facts_text(card.versions)],
    ]
    study = f"<details><summary>The study</summary><pre>{escape(run.study)}</pre></details>" if run.study else ""
    every = table(["what", "value"], rows)
    return f"<details><summary>Everything that the guarantees follow from</summary>{every}</details>{study}"


def _verify(run: RunFiles) -> str:
    digest = run.card.to_json()["digest"]
    return (
        "<p>Every figure on this page follows from the privacy card beside it. This computes all of them again, from "
        "the parameters up, and fails at the first that does not follow:</p><pre>consenso verify "
        f"{escape(run.folder.name)}</pre><p>and this attacks the guarantees with real runs:</p><pre>consenso audit "
        f"{escape(run.folder.name)}/study.toml --out {escape(run.folder.name)}/audit</pre><p class='quiet'>Digest of "
        f"the card: {escape(str(digest))}</p>"
    )
