"""The page of one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from consenso.privacy.accountants import tradeoff
from consenso.privacy.card.entry import Entry
from consenso.privacy.card.text import UNIT_NAMES, facts_text, figures_text, overview, scopes, spread_text
from consenso.privacy.guarantee import is_useful
from consenso.report.charts import Axis, Series, bar_chart, graph_chart, line_chart
from consenso.report.pairs import pairs_section
from consenso.report.reading import RunFiles, events_of, read_run
from consenso.report.style import figures, page, table
from consenso.report.words import observer_name, plain_words, show_epsilon, unit_phrase
from consenso.study.rounds import rounds_text

FILE = "report.html"
COEFFICIENTS = 12  # that are shown; the model file has all
POINTS = 201  # of a trade-off curve
_READINGS = {
    "add-remove": "present or absent",
    "replace-one": "replaced by any other",
    "blanked": "one record blanked, n public; its row adds zero to every sum",
}


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
        _metrics(run),
        _coefficients(run),
        "<h2>Who learns what about you</h2>",
        _observers(run),
        "<h2>How well an attacker can do</h2>",
        _tradeoff(run),
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


def _records_label(data: Mapping[str, Any]) -> str:
    if data["adjacency"] == "replace-one":
        return "records"
    return "declared records" if data.get("capped", True) else "records, from a noisy count"


def _lead(run: RunFiles) -> str:
    card, data = run.card, run.card.data
    stated = run.entries()
    tightest = min(stated, key=lambda entry: entry.epsilon)
    sizes = data["sizes"]
    told = figures(
        [
            *_epsilons(stated),
            ("delta", f"{card.delta:g}"),
            (_records_label(data), f"{sum(sizes):,}"),
            ("parties", f"{len(sizes):,}"),
        ]
    )
    where = {
        "local": "every party adds noise to what it sends",
        "secure-sum": "only sums of what the parties send can be read, each party adds a share of the noise",
        "tree": "no server: sums go along a tree of peers, each of whom adds its own noise",
        "masked-sum": "no server: masked sums go along a tree of peers, each of whom adds a share of the noise",
        "curator": "whoever adds up the parties' values is trusted and adds the noise",
    }[card.trust]
    notice = (
        "<p class='notice'><strong>Simulation, not private.</strong> The noise was drawn from a seed, so whoever "
        "knows the "
        "seed can take it away. The guarantees below are those of the same run with secret noise.</p>"
        if card.simulation
        else ""
    )
    return (
        f"{notice}<p>A model was trained by <strong>{escape(card.algorithm)}</strong> ({escape(_rounds(run))}); "
        f"{where}. What is protected is {unit_phrase(tightest)}, and the promise compares the data with the "
        f"same "
        f"data in which it {'is replaced' if data['adjacency'] == 'replace-one' else 'is missing'}.</p>{told}"
    )


def _rounds(run: RunFiles) -> str:
    paid = {"rounds planned": int(run.card.parameters["rounds"]), "rounds run": None}
    return rounds_text(paid if run.trace is None else paid | dict(run.trace))


def _epsilons(stated: list[Entry]) -> list[tuple[str, str]]:
    """Epsilon of the observers who learn least and most; one figure where all learn the same."""
    least, most = (choose(stated, key=lambda entry: entry.epsilon) for choose in (min, max))
    if least.epsilon == most.epsilon:
        return [("epsilon, whoever looks", show_epsilon(least.epsilon))]
    return [
        (f"epsilon for {least.observer}", show_epsilon(least.epsilon)),
        (f"epsilon for {most.observer}", show_epsilon(most.epsilon)),
    ]


def _metrics(run: RunFiles) -> str:
    found = run.metrics
    if found is None:
        return (
            "<p>No public test file was given, so no quality is shown: figures computed on private records would leak "
            "them.</p>"
        )
    names = {
        "accuracy": "accuracy",
        "majority": "accuracy of always saying the commonest class",
        "rmse": "root mean squared error",
        "rmse of the mean": "the same when always saying the mean",
        "r2": "share of variance explained",
        "loss": "loss",
        "loss of zero": "loss of the zero model",
    }
    shown = [
        (text, f"{found[name]:.1%}" if name in ("accuracy", "majority", "r2") else f"{float(found[name]):.4g}")
        for name, text in names.items()
        if isinstance(found.get(name), int | float)
    ]
    return f"<p>On {int(found['records']):,} public test records:</p>{figures(shown)}"


def _coefficients(run: RunFiles) -> str:
    if run.model is None:
        return ""
    values, names = np.asarray(run.model["coefficients"], dtype=float), run.model["features"]
    classes = run.model.get("classes") or []
    if values.shape[1] > 1:
        size = np.abs(values).max(axis=1)
        order = np.argsort(-size)[:COEFFICIENTS]
        rows = [
            [str(names[index]), str(classes[int(np.abs(values[index]).argmax())]), f"{size[index]:.3g}"]
            for index in order
        ]
        head, numbers = ["feature", "class it speaks for most", "largest weight"], frozenset({2})
    else:
        order = np.argsort(-np.abs(values[:, 0]))[:COEFFICIENTS]
        rows = [[str(names[index]), f"{values[index, 0]:+.3g}"] for index in order]
        towards = f", towards {classes[1]!r}" if len(classes) == 2 else ""
        head, numbers = ["feature", f"weight{towards}"], frozenset({1})
    zero = int((np.abs(values).max(axis=1) == 0).sum())
    told = f" {zero:,} of {len(names):,} features are not used at all." if zero else ""
    return (
        f"<h3>What the model looks at</h3><p>The {len(rows)} largest of {len(names):,} weights, noise "
        f"included.{told}</p>" + table(head, rows, numbers=numbers)
    )


def _observers(run: RunFiles) -> str:
    card, stated = run.card, run.entries()
    bars = [
        (entry.observer, entry.epsilon if is_useful(entry.epsilon) else math.inf, show_epsilon(entry.epsilon))
        for entry in stated
    ]
    finite = [value for _, value, _ in bars if is_useful(value)]
    chart = bar_chart(
        bars,
        label=f"epsilon at delta {card.delta:g} (smaller is more private; 'none': no useful guarantee)",
        title="Epsilon by observer",
        largest=max(finite, default=1.0),
    )
    blocks = "".join(_observer(entry, card.delta) for entry in stated)
    rows = [[who, *values] for who, values in overview(card)]
    every = table(
        ["observer", *(f"{UNIT_NAMES[unit]}, {relation}" for unit, relation in scopes(card))],
        rows,
        numbers=frozenset(range(1, 1 + len(scopes(card)))),
    )
    meanings = dict.fromkeys(f"{_READINGS[relation]} ({relation})" for _, relation in scopes(card))
    return (
        f"{chart}{blocks}<h3>Epsilon under every reading</h3><p>One record, or all data of one party: "
        f"{'; '.join(meanings)}.</p>{every}"
    )


def _observer(entry: Entry, delta: float) -> str:
    spread = spread_text(entry)
    over = f"<br>Over the parties: {escape(spread)}." if spread else ""
    assumes = "".join(f"<li>{escape(each['text'])}</li>" for each in entry.assumptions)
    refusals = "".join(f"<li>{escape(refusal)}</li>" for refusal in entry.refusals)
    more = f"<p>It assumes:</p><ul>{assumes}</ul>" if assumes else ""
    more += f"<p>Not claimed:</p><ul>{refusals}</ul>" if refusals else ""
    return (
        f"<div "
        f"class='observer'><h3>{escape(observer_name(entry.observer))}</h3><p>{escape(plain_words(entry, delta))}</p>"
        f"<p class='quiet'>{escape(figures_text(entry))}; by {escape(entry.citation)}.{over}</p>"
        f"<details><summary>What this rests "
        f"on</summary>{more or '<p>Nothing beyond the parameters.</p>'}</details></div>"
    )


def _tradeoff(run: RunFiles) -> str:
    alarms = np.concatenate([np.geomspace(1e-4, 0.01, 20), np.linspace(0.015, 1.0, POINTS - 20)])
    groups: dict[tuple[float, ...], list[str]] = {}
    for entry in run.entries():
        if math.isfinite(entry.epsilon):
            curve = tuple(float(value) for value in tradeoff(events_of(entry), alarms))
            groups.setdefault(curve, []).append(entry.observer)
    series = [Series(name=", ".join(names), x=alarms.tolist(), y=curve) for curve, names in groups.items()]
    series.append(Series(name="nobody can tell anything (perfect privacy)", x=[0.0, 1.0], y=[1.0, 0.0], quiet=True))
    chart = line_chart(
        series,
        x=Axis(label="share of false alarms", limits=(0.0, 1.0)),
        y=Axis(label="share of cases missed, at least", limits=(0.0, 1.0)),
        title="Trade-off between false alarms and missed cases",
    )
    return (
        "<p>An attacker who tests whether somebody's data were used makes two kinds of mistakes. No test, however "
        "clever, "
        f"can lie below these curves.</p>{chart}"
    )


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
        x=Axis(label="round"),
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
            "<p class='quiet'>The movement of the model from round to round is not shown: it was not traced, or "
            "the promise "
            "does not cover whoever sees every round.</p>"
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
        x=Axis(label="round"),
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
        f"<h2>The graph</h2><p>Each node's number, shaded by the epsilon of its data against "
        f"{escape(looking.observer)}: "
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
    return table(["what", "value"], rows) + study


def _verify(run: RunFiles) -> str:
    digest = run.card.to_json()["digest"]
    return (
        "<p>Every figure on this page follows from the privacy card beside it. This computes all of them again, "
        "from the "
        "parameters up, and fails at the first that does not follow:</p>"
        f"<pre>consenso verify {escape(run.folder.name)}</pre><p>and this attacks the guarantees with real runs:</p>"
        f"<pre>consenso audit {escape(run.folder.name)}/study.toml</pre>"
        f"<p class='quiet'>Digest of the card: {escape(str(digest))}</p>"
    )
