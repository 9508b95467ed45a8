"""The page over all papers and the summary of their headline claims, from what has been run into a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from experiments.definition import Paper
from experiments.outcome import Table
from experiments.report import MARKS, page
from experiments.writing import as_csv, as_html, as_markdown, shown


def write(papers: Mapping[str, Paper], out: Path) -> Path:
    """Write index.html, summary.csv, summary.md and summary.html; the path of the index."""
    found = {number: _summary(out / number) for number in papers}
    table = summary(found)
    as_csv(table, out / "summary.csv")
    (out / "summary.md").write_text(as_markdown(table), encoding="utf-8")
    (out / "summary.html").write_text(page(table.title, f"<h1>{table.title}</h1>{as_html(table)}"), encoding="utf-8")
    index = out / "index.html"
    index.write_text(page("Reproductions", _body(papers, found, table)), encoding="utf-8")
    return index


def summary(found: Mapping[str, Mapping[str, Any] | None]) -> Table:
    """Every headline claim of every paper that was run, with its verdict."""
    return Table(
        name="summary",
        title="Headline claims of the papers",
        columns=("paper", "claim", "source", "verdict", "reported", "ours", "grid"),
        rows=tuple(
            (number, v["claim"], v["source"], v["state"], v["reported"], v["ours"], told["made"]["grid"])
            for number, told in found.items()
            if told is not None
            for v in told["verdicts"]
        ),
    )


def _summary(folder: Path) -> dict[str, Any] | None:
    path = folder / "summary.json"
    if not path.is_file():
        return None
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return told


def _body(papers: Mapping[str, Paper], found: Mapping[str, Mapping[str, Any] | None], table: Table) -> str:
    items = "".join(_item(paper, found[number]) for number, paper in papers.items())
    return (
        "<h1>Five papers on private ADMM: as published, and as they should have been run</h1>"
        "<p>Each experiment is run twice: with the paper's algorithm and its nominal budget, flaws included, and with "
        "sound accounting at the same total epsilon and delta. The noise is seeded: these are simulations.</p>"
        f"{items}<h2>{escape(table.title)}</h2>{as_html(table)}"
        "<p class='note'>Also as <a href='summary.csv'>CSV</a>, <a href='summary.md'>Markdown</a> and a "
        "<a href='summary.html'>page of its own</a>.</p>"
    )


def _item(paper: Paper, told: Mapping[str, Any] | None) -> str:
    title = f"{escape(paper.number)}: {escape(paper.title)}"
    if told is None:
        return f"<h2>{title}</h2><p class='note'>Not run yet: consenso reproduce {escape(paper.number)}</p>"
    states = [verdict["state"] for verdict in told["verdicts"]]
    counts = ", ".join(f"{states.count(state)} {state}" for state in MARKS if state in states)
    address = f"{escape(paper.number)}/report.html"
    pictures = "".join(  # the first figure is the one that a person wants to see
        f"<a href='{address}'><img src='{escape(paper.number)}/{escape(name)}.svg' alt='{title}' width='100%'></a>"
        for name in told["figures"][:1]
    )
    made = told["made"]
    return (
        f"<h2><a href='{address}'>{title}</a></h2><p>{escape(paper.authors)}. {counts}. "
        f"<span class='note'>Grid {escape(made['grid'])}, {made['cells']} cells, {shown(made['seconds of work'])} s of "
        f"work.</span></p>{pictures}"
    )
