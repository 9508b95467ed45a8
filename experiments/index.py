"""The page over all papers, the summary of their headline claims and what runs took, from a folder of reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from consenso.errors import InputError
from experiments import running
from experiments.definition import Paper
from experiments.outcome import Objection, Table
from experiments.report import MARKS, objection_lines, page
from experiments.running import WORKERS, kept
from experiments.writing import as_csv, as_html, as_markdown, shown

MARK = "<!-- {}: {} -->"  # around a generated part of a page
PARTS = ("summary", "objections")
MOST_ROWS = 60  # of a table on the page over all papers


def write(papers: Mapping[str, Paper], out: Path) -> Path:
    """Write index.html, summary.csv, summary.md and summary.html; the path of the index."""
    papers = dict(sorted(papers.items()))
    found = {number: _summary(out / number) for number in papers}
    table, apart, *results = reported(papers, out)
    took, left = durations(papers, out), unfinished(papers, out)
    as_csv(table, out / "summary.csv")
    as_csv(took, out / "durations.csv")
    told = (table, apart, *results, took, *([left] if left.rows else []))
    (out / "summary.md").write_text("\n".join(as_markdown(each) for each in told), encoding="utf-8")
    (out / "objections.md").write_text(_told_objections(_reports(papers, out)), encoding="utf-8")
    (out / "summary.html").write_text(page(table.title, f"<h1>{table.title}</h1>{as_html(table)}"), encoding="utf-8")
    index = out / "index.html"
    index.write_text(page("Reproductions", _body(papers, found, (table, apart, took, left))), encoding="utf-8")
    return index


def reported(papers: Mapping[str, Paper], out: Path) -> tuple[Table, ...]:
    """What follows from the reports of a folder alone: the claims, the verdicts of the grids, the main tables."""
    grids = _reports(papers, out)
    return (summary(grids), compared(grids), *main_tables(grids))


def _reports(papers: Mapping[str, Paper], out: Path) -> dict[str, list[dict[str, Any]]]:
    return {number: _grids(out / number) for number in sorted(papers)}


def summary(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """Every headline claim of every paper that was run, with its verdict from the largest grid that has it."""
    rows = {
        (number, v["claim"]): (
            number,
            v["claim"],
            v["source"],
            v["state"],
            v["reported"],
            v["ours"],
            v["because"],
            told["made"]["grid"],
        )
        for number, grids in found.items()
        for told in sorted(grids, key=lambda each: each["made"]["seconds of work"])
        for v in told["verdicts"]
    }
    return Table(
        name="summary",
        title="Headline claims of the papers",
        columns=("paper", "claim", "source", "verdict", "reported", "ours", "why", "grid"),
        rows=tuple(rows.values()),
    )


def compared(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """The verdict of every claim on the quick grid and on the largest other grid that was run, and why they differ."""
    rows: list[tuple[Any, ...]] = []
    for number, grids in found.items():
        by_grid = {told["made"]["grid"]: {v["claim"]: v for v in told["verdicts"]} for told in grids}
        quick = by_grid.pop("quick", None)
        larger = _largest({number: [told for told in grids if told["made"]["grid"] in by_grid]})
        if quick is None or not larger:
            continue
        name = larger[number]["made"]["grid"]
        for claim in dict.fromkeys([*quick, *by_grid[name]]):
            one, other = quick.get(claim), by_grid[name].get(claim)
            rows.append((number, claim, one and one["state"], name, other and other["state"], _why(one, other)))
    return Table(
        name="compared",
        title="Verdicts of the quick and of the larger grids",
        columns=("paper", "claim", "quick", "larger grid", "its verdict", "why they differ"),
        rows=tuple(rows),
        note="No reason: they agree. A paper that was run on one grid has nothing to compare.",
    )


def _why(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> str:
    """Why two grids come to two verdicts; nothing where they agree."""
    if one is None or other is None:
        return f"the {'quick' if one is None else 'larger'} grid has no runs of it"
    if one["state"] == other["state"]:
        return ""
    if "undecided" not in (one["state"], other["state"]):
        return f"quick: {one['ours']}; then: {other['ours']}"
    open_, decided = (one, other) if one["state"] == "undecided" else (other, one)
    where = "quick" if open_ is one else "the larger grid"
    return f"{where} leaves it open ({open_['ours']}); the other has {decided['ours']}"


def main_tables(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Table]:
    """The main table of every paper that was run, from its largest grid; a long one by rows that are evenly apart."""
    made = []
    for number, told in _largest(found).items():
        if "results" not in told:  # a folder of an earlier version
            continue
        kept, grid = told["results"], told["made"]
        every = -(-len(kept["rows"]) // MOST_ROWS)
        thinned = f" One row in {every} of {len(kept['rows'])}; all are in results.csv." if every > 1 else ""
        made.append(
            Table(
                name=f"results {number}",
                title=f"{number}: {kept['title']}",
                columns=tuple(kept["columns"]),
                rows=tuple(map(tuple, kept["rows"][::every])),
                note=f"{kept['note']} Grid {grid['grid']}, {grid['cells']} cells.{thinned}".strip(),
            )
        )
    return made


def _largest(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """The grid of each paper that took the most work."""
    return {
        number: max(told, key=lambda each: each["made"]["seconds of work"]) for number, told in found.items() if told
    }


def objections(found: Mapping[str, tuple[str, Sequence[tuple[str, Objection]]]]) -> str:
    """The title of every paper and the named objections to it, by number, as Markdown."""
    lines: list[str] = []
    for number, (title, named) in found.items():
        lines += [f"### {number}: {title}", ""]
        if not named:
            lines += ["No objection: what the paper proves, holds.", ""]
        for name, each in named:
            lines += [f"#### {number}, {name}", ""]
            for head, text in objection_lines(number, name, each):
                lines += [f"**{head}.** " + (f"`{text}`" if head == "Program" else text), ""]
    return "\n".join(lines)


def _told_objections(grids: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Those of the papers that were run, from their largest grids."""
    return objections(
        {
            number: (
                told["title"],
                [
                    (
                        each["name"],
                        Objection(
                            **{k: v for k, v in each.items() if k not in ("name", "argument")},
                            argument=tuple(each["argument"]),
                        ),
                    )
                    for each in told.get("objections", [])
                ],
            )
            for number, told in _largest(grids).items()
        }
    )


def durations(papers: Mapping[str, Paper], out: Path) -> Table:
    """What each grid of each paper is expected to take, and what it took where it was run into this folder."""
    rows = []
    for number, paper in papers.items():
        took = measured(out / number)
        for grid in paper.grids:
            cells = paper.cells_of(grid)
            expected = sum(cell.seconds for cell in cells) / WORKERS / 60
            seconds = took.get(grid)
            rows.append((number, grid, len(cells), expected, None if seconds is None else seconds / WORKERS / 60))
    return Table(
        name="durations",
        title="What the grids take, in minutes on two cores",
        columns=("paper", "grid", "cells", "expected", "measured"),
        rows=tuple(rows),
        note="Expected: an estimate, from what cells of each kind were seen to take. Measured: half of the processor "
        "time of all cells of a run to its end, which a busy machine hardly lengthens.",
    )


def unfinished(papers: Mapping[str, Paper], out: Path) -> Table:
    """Of the grids without a report that have results with the repository: which cells there are, and which not."""
    rows: list[tuple[Any, ...]] = []
    for number, paper in papers.items():
        for grid in [grid for grid in paper.grids if grid not in measured(out / number)]:
            cells = paper.cells_of(grid)
            there = [kept(cell, running.SHIPPED / number) is not None for cell in cells]
            counts: dict[str, list[int]] = {}
            for cell, is_there in zip(cells, there, strict=True):
                count = counts.setdefault(paper.label(cell), [0, 0])
                count[0] += 1
                count[1] += is_there
            if any(there):
                rows += [(number, grid, name, *count) for name, count in counts.items()]
    return Table(
        name="unfinished",
        title="Grids that were begun: the cells that there are",
        columns=("paper", "grid", "cells of", "asked", "there"),
        rows=tuple(rows),
        note="They lie in experiments/shipped, and the same command goes on from them.",
    )


def measured(folder: Path) -> dict[str, float]:
    """Seconds of work on one core of the grids that were run to their end, by name."""
    path = folder / "durations.json"
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def keep_duration(folder: Path, grid: str, seconds: float) -> None:
    """Remember what a grid took."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**measured(folder), grid: seconds}, indent=2)
    (folder / "durations.json").write_text(text, encoding="utf-8")


def into_page(out: Path, page: Path) -> None:
    """Put the summary and the objections of a folder between their marks on a Markdown page."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    parts = [name for name in PARTS if MARK.format(name, "begin") in text]
    for name in parts or PARTS[:1]:
        put(page, name, (out / f"{name}.md").read_text(encoding="utf-8"))


def put(page: Path, part: str, content: str) -> None:
    """Put a text between the marks of a part of a page, in place of what was there."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    begin, end = MARK.format(part, "begin"), MARK.format(part, "end")
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise InputError(f"reproduce(page={str(page)!r}): the page needs the lines {begin} and {end}; add them.")
    page.write_text(f"{before}{begin}\n\n{content.strip()}\n\n{end}{after}", encoding="utf-8")


def _summary(folder: Path) -> dict[str, Any] | None:
    path = folder / "summary.json"
    if not path.is_file():
        return None
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return told


def _grids(folder: Path) -> list[dict[str, Any]]:
    """What the grids came to that were run into a folder."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "grids").glob("*.json"))]


def _body(papers: Mapping[str, Paper], found: Mapping[str, Mapping[str, Any] | None], tables: tuple[Table, ...]) -> str:
    items = "".join(_item(paper, found[number]) for number, paper in papers.items())
    return (
        "<h1>Five papers on private ADMM: as published, and as they should have been run</h1>"
        "<p>Each experiment is run twice: with the paper's algorithm and its nominal budget, flaws included, and with "
        "sound accounting at the same total epsilon and delta. The noise is seeded: these are simulations.</p>"
        + items
        + "".join(f"<h2>{escape(table.title)}</h2>{as_html(table)}" for table in tables)
        + "<p class='note'>Also as <a href='summary.csv'>CSV</a>, <a href='summary.md'>Markdown</a> and a "
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
