"""The style sheet, and the pieces that all pages are made of."""

from __future__ import annotations

from html import escape
from importlib import resources

STYLE = resources.files("consenso.pages").joinpath("style.css").read_text(encoding="utf-8")


def page(title: str, body: str) -> str:
    """A whole HTML document."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def table(
    head: list[str], rows: list[list[str]], *, numbers: frozenset[int] = frozenset(), caption: str | None = None
) -> str:
    """A table whose first column names its rows; the columns in `numbers` are set to the right. Cells are escaped."""

    def line(cells: list[str], *, heads: bool) -> str:
        found = []
        for place, cell in enumerate(cells):
            side = " class='number'" if place in numbers else ""
            tag, scope = ("th", " scope='col'") if heads else ("th", " scope='row'") if place == 0 else ("td", "")
            found.append(f"<{tag}{scope}{side}>{escape(cell)}</{tag}>")
        return f"<tr>{''.join(found)}</tr>"

    told = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(line(row, heads=False) for row in rows)
    return f"<div class='wide'><table>{told}<thead>{line(head, heads=True)}</thead><tbody>{body}</tbody></table></div>"


def figures(found: list[tuple[str, str]]) -> str:
    """Large numbers with what they are."""
    cells = "".join(f"<div class='figure'><b>{escape(value)}</b>{escape(name)}</div>" for name, value in found)
    return f"<div class='figures'>{cells}</div>"


def verdict(answers: list[tuple[str, str]]) -> str:
    """The questions that a page answers at once, each with its answer."""
    lines = "".join(f"<dt>{escape(question)}</dt><dd>{escape(answer)}</dd>" for question, answer in answers)
    return f"<dl class='verdict'>{lines}</dl>"
