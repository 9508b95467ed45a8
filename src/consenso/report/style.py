"""The look of every page: readable on a phone, in print and in the dark, without anything from the network."""

from __future__ import annotations

from html import escape

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; color: #1a1a1a; background: #fff;
  max-width: 54rem; margin: 0 auto; padding: 1.2rem 1rem 4rem; }
h1, h2, h3 { line-height: 1.2; } h1 { font-size: 1.8rem; margin: .6rem 0; }
h2 { margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 2px solid #0072b2; } h3 { margin: 1.2rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #ccc; vertical-align: top; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { overflow-x: auto; } .quiet { color: #555; font-size: .9rem; }
.notice { border-left: 5px solid #d55e00; background: #fdf3ec; padding: .5rem 1rem; margin: 1rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .8rem; margin: 1rem 0; }
.figure { border: 1px solid #ccc; border-radius: .4rem; padding: .6rem .8rem; }
.figure b { display: block; font-size: 1.6rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.observer { border-left: 5px solid #0072b2; padding: .1rem 1rem; margin: 1rem 0; break-inside: avoid; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; background: #f5f5f5; padding: .8rem; }
code { background: #f5f5f5; padding: .1rem .25rem; } details summary { cursor: pointer; font-weight: 600; }
svg { width: 100%; height: auto; max-width: 40rem; display: block; margin: .6rem auto; break-inside: avoid; }
svg text { font: 13px system-ui, sans-serif; fill: #1a1a1a; } svg text[fill='#ffffff'] { fill: #fff; }
svg .grid { stroke: #ddd; } svg .edge { stroke: #999; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } details > * { display: block; } }
"""


def page(title: str, body: str) -> str:
    """A whole HTML document."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def table(head: list[str], rows: list[list[str]], *, numbers: frozenset[int] = frozenset()) -> str:
    """A table; the columns in `numbers` are set to the right. Cells are escaped."""

    def line(cells: list[str], tag: str) -> str:
        return (
            "<tr>"
            + "".join(
                f"<{tag}{' class=number' if place in numbers else ''}>{escape(cell)}</{tag}>"
                for place, cell in enumerate(cells)
            )
            + "</tr>"
        )

    return f"<div class='wide'><table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table></div>"


def figures(found: list[tuple[str, str]]) -> str:
    """Large numbers with what they are."""
    cells = "".join(f"<div class='figure'><b>{escape(value)}</b>{escape(name)}</div>" for name, value in found)
    return f"<div class='figures'>{cells}</div>"
