"""Numbers and tables as text: CSV, Markdown and HTML."""

from __future__ import annotations

import csv
import math
from html import escape
from pathlib import Path
from typing import Any

from experiments.outcome import Table


def shown(value: Any) -> str:
    """A value as a reader wants it: three digits that count, no long tails."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(shown(item) for item in value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "not defined"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def as_csv(table: Table, path: Path) -> None:
    """All digits, for programs."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(["" if cell is None else cell for cell in row] for row in table.rows)


def as_markdown(table: Table) -> str:
    """With its title above and its note below."""
    lines = [f"### {table.title}", "", "| " + " | ".join(table.columns) + " |", "| " + "--- | " * len(table.columns)]
    lines += ["| " + " | ".join(shown(cell).replace("|", "\\|") for cell in row) + " |" for row in table.rows]
    return "\n".join([*lines, "", *([table.note, ""] if table.note else [])])


def as_html(table: Table) -> str:
    """The table alone, numbers to the right, in a box that scrolls where it is too wide."""
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    body = "".join("<tr>" + "".join(_html_cell(cell) for cell in row) + "</tr>" for row in table.rows)
    note = f"<p class='note'>{escape(table.note)}</p>" if table.note else ""
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}"


def _html_cell(cell: Any) -> str:
    number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return f"<td{' class=number' if number else ''}>{escape(shown(cell))}</td>"
