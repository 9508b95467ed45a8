"""A paper's report: one self-contained HTML page, and the tables, figures and cards beside it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from consenso.errors import InputError
from experiments.definition import Paper
from experiments.drawing import draw, inline
from experiments.outcome import Figure, Objection, Outcome, Table, Verdict
from experiments.writing import as_csv, as_html, as_markdown, shown

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.2rem; } figure { margin: 1rem 0; } figcaption { color: #444; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .92rem; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ccc; vertical-align: top; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.note { color: #444; font-size: .92rem; }
.verdict { border-left: 5px solid; padding: .2rem 0 .2rem .9rem; margin: .8rem 0; }
.reproduced { border-color: #009e73; } .flaw { border-color: #e69f00; } .not { border-color: #d55e00; }
.open { border-color: #999999; }
.state { font-weight: 600; } svg { max-width: 100%; } @media print { body { margin: 0; } }
"""
LONG = 40  # a table with more rows can be folded
MARKS = {"reproduced": "reproduced", "only with the flaw": "flaw", "not reproduced": "not", "undecided": "open"}


def write(paper: Paper, outcome: Outcome, folder: Path, *, made: dict[str, Any]) -> Path:
    """Write everything into `folder`; the path of the page. `made` says how: version, grid, cells, seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    cards = _save_cards(outcome, folder)
    for figure in outcome.figures:
        draw(figure, folder)
    as_csv(outcome.results, folder / "results.csv")
    for table in (*outcome.tables, spent_table(outcome)):
        as_csv(table, folder / f"{table.name}.csv")
    tables = [verdict_table(paper, outcome), outcome.results, *outcome.tables, spent_table(outcome)]
    heading = f"# {paper.number}: {paper.title}\n\n{paper.authors}. {paper.reference}\n\n"
    (folder / "results.md").write_text(heading + "\n".join(as_markdown(table) for table in tables), encoding="utf-8")
    summary = {
        "number": paper.number,
        "title": paper.title,
        "authors": paper.authors,
        "made": made,
        "verdicts": [asdict(verdict) for verdict in outcome.verdicts],
        "objections": [
            {"name": case.name, **asdict(each)} for case, each in zip(paper.cases, outcome.objections, strict=True)
        ],
        "spent": [asdict(spent) for spent in outcome.spent],
        "figures": [figure.name for figure in outcome.figures],
        "results": asdict(outcome.results),
        "cards": cards,
    }
    (folder / "grids").mkdir(exist_ok=True)
    for path in (folder / "summary.json", folder / "grids" / f"{made['grid']}.json"):
        path.write_text(json.dumps(summary, indent=2), encoding="utf-8")
    page = folder / "report.html"
    page.write_text(_page(paper, outcome, folder, made, cards), encoding="utf-8")
    return page


def verdict_table(paper: Paper, outcome: Outcome) -> Table:
    """One row per headline claim."""
    return Table(
        name="verdicts",
        title="Headline claims",
        columns=("paper", "claim", "source", "verdict", "reported", "ours", "why"),
        rows=tuple((paper.number, v.claim, v.source, v.state, v.reported, v.ours, v.because) for v in outcome.verdicts),
    )


def spent_table(outcome: Outcome) -> Table:
    """The true totals."""
    return Table(
        name="spent",
        title="True total epsilon of the runs, for each observer",
        columns=(
            *("run", "version", "nominal", "observer", "unit", "adjacency"),
            *("epsilon, at most", "at least", "delta", "theorem"),
        ),
        rows=tuple(
            (s.run, s.version, s.nominal, s.observer, s.unit, s.adjacency, s.epsilon, s.at_least, s.delta, s.theorem)
            for s in outcome.spent
        ),
        note="At most: proved for every pair of neighbouring data sets. At least: exact for one pair, where it was "
        "worked out.",
    )


def by_observer(outcome: Outcome) -> Table:
    """The true totals with a column for each observer, for people."""
    observers = tuple(dict.fromkeys(s.observer for s in outcome.spent))
    runs: dict[tuple[Any, ...], dict[str, str]] = {}
    for s in outcome.spent:
        told = shown(s.epsilon) + ("" if s.at_least is None else f" (at least {shown(s.at_least)})")
        run = (s.run, s.version, s.nominal, f"{s.unit}, {s.adjacency}", s.delta)
        runs.setdefault(run, {})[s.observer] = told
    return Table(
        name="by-observer",
        title="True total epsilon of the runs, for each observer",
        columns=("run", "version", "stated epsilon", "unit", "delta", *observers),
        rows=tuple((*run, *(told.get(observer, "") for observer in observers)) for run, told in runs.items()),
        note="What is proved for every pair of neighbouring data sets, and in brackets what is exact for one pair, "
        "where it was worked out. With the theorem that proves it: spent.csv.",
    )


def _save_cards(outcome: Outcome, folder: Path) -> dict[str, int]:
    """Cards were checked in the cells that made them; one that was changed since is refused by its digest.

    File names are such that a shell needs no quotes.
    """
    from consenso.privacy.card import Card

    named = {re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-"): found for name, found in outcome.cards.items()}
    if len(named) < len(outcome.cards):
        raise InputError(f"Outcome.cards: two of {', '.join(outcome.cards)} would have one file name; rename one.")
    for name, found in named.items():
        path = folder / "cards" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        Card.from_json(found["card"]).save(path)
    return {name: int(found["checked"]) for name, found in named.items()}


def page(title: str, body: str) -> str:
    """A self-contained page in the style of all of them."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )


def _page(paper: Paper, outcome: Outcome, folder: Path, made: dict[str, Any], cards: dict[str, int]) -> str:
    parts = [
        f"<h1>{escape(paper.number)}: {escape(paper.title)}</h1>",
        f"<p>{escape(paper.authors)}. {escape(paper.reference)}</p><p>{escape(paper.about)}</p>",
        "<h2>Verdicts</h2>",
        *(_verdict(v) for v in outcome.verdicts),
        *(["<h2>Objections, in the order of their importance</h2>"] if outcome.objections else []),
        *(_objection(paper, case.name, o) for case, o in zip(paper.cases, outcome.objections, strict=True)),
        "<h2>Figures</h2>",
        *(_figure(figure, folder) for figure in outcome.figures),
        "<h2>What changes when it is done right</h2><ul>",
        *(f"<li>{escape(sentence)}</li>" for sentence in outcome.changes),
        "</ul>",
        _section(by_observer(outcome), opened=True),
        _section(outcome.results),
        *(_section(table) for table in outcome.tables),
        *(_section(table) for table in _metadata(paper) if table.rows),
        "" if paper.reported else "<h2>What the paper reports</h2><p>No numbers.</p>",
        _cards(cards),
        _how(made),
    ]
    return page(f"{paper.number}: {paper.title}", "".join(parts))


def _figure(figure: Figure, folder: Path) -> str:
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>"
    return f"<figure><h3>{escape(figure.title)}</h3>{inline(figure, folder)}{caption}</figure>"


def _verdict(v: Verdict) -> str:
    return (
        f"<div class='verdict {MARKS[v.state]}'><span class='state'>{escape(v.state)}</span>: {escape(v.claim)} "
        f"<span class='note'>({escape(v.source)})</span><br>Paper: {escape(v.reported)}. Ours: {escape(v.ours)}. "
        f"{escape(v.because)}</div>"
    )


def objection_lines(number: str, name: str, o: Objection) -> list[tuple[str, str]]:
    """The parts of an objection with their headings, for a page, a terminal and the documentation."""
    return [
        ("Claim", f"{o.claim} ({o.place})"),
        ("Argument", " ".join(o.argument)),
        ("Shown", f"{o.shown}. The claim as printed {'does not hold' if o.stands else 'is not contradicted'} here."),
        ("Charitable reading", f"{o.reading} The objection {'stands under it, too' if o.survives else 'falls'}."),
        ("Instead", o.correction),
        ("Program", f"consenso reproduce {number} --objection {name}"),
    ]


def _objection(paper: Paper, name: str, o: Objection) -> str:
    parts = "".join(
        f"<br><b>{head}.</b> {escape(text)}" for head, text in objection_lines(paper.number, name, o)
    ).removeprefix("<br>")
    return f"<div class='verdict {'not' if o.stands and o.survives else 'flaw' if o.stands else 'open'}'>{parts}</div>"


def _section(table: Table, *, opened: bool = False) -> str:
    body = as_html(table)
    if len(table.rows) > LONG:
        body = f"<details{' open' if opened else ''}><summary>{len(table.rows)} rows</summary>{body}</details>"
    return f"<h2>{escape(table.title)}</h2>{body}"


def _metadata(paper: Paper) -> list[Table]:
    """What the paper states, leaves open, gets wrong and reports."""
    return [
        Table(
            name="parameters",
            title="Parameters",
            columns=("parameter", "value", "source"),
            rows=tuple((p.name, shown(p.value), p.source) for p in paper.parameters),
        ),
        Table(
            name="choices",
            title="Unstated, and chosen",
            columns=("what", "chosen", "why"),
            rows=tuple((c.what, c.chosen, c.why) for c in paper.choices),
        ),
        Table(
            name="flaws",
            title="Flaws",
            columns=("what", "consequence"),
            rows=tuple((f.what, f.consequence) for f in paper.flaws),
        ),
        Table(
            name="reported",
            title="What the paper reports",
            columns=("what", "at", "values", "source"),
            rows=tuple(
                (r.name, f"{r.axis} {shown(r.at)}" if r.at else "", shown(r.values), r.source) for r in paper.reported
            ),
        ),
    ]


def _cards(cards: dict[str, int]) -> str:
    if not cards:
        return ""
    items = "".join(
        f"<li><a href='cards/{escape(name)}.json'>{escape(name)}</a>: {count} fields checked, all follow from the "
        f"plan made anew; <code>consenso verify cards/{escape(name)}.json</code></li>"
        for name, count in cards.items()
    )
    return f"<h2>Privacy cards of the corrected runs</h2><ul>{items}</ul>"


def _how(made: dict[str, Any]) -> str:
    rows = tuple((name, shown(value)) for name, value in made.items())
    table = Table(name="made", title="How this page was made", columns=("what", "value"), rows=rows)
    return _section(table) + (
        "<p class='note'>All noise is seeded, so that the page can be made again: a simulation, not private. Tables: "
        "<a href='results.csv'>results.csv</a>, <a href='results.md'>results.md</a>.</p>"
    )
