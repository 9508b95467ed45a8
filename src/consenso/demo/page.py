"""The demo's report: one self-contained HTML page beside the cards."""

from __future__ import annotations

from html import escape
from pathlib import Path

from consenso.demo.table import epsilons, shown
from consenso.demo.training import DELTA, Outcome
from consenso.privacy.observers import parse

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #ccc; vertical-align: top; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.notice { border-left: 4px solid #b8860b; padding: .3rem 1rem; }
pre { white-space: pre-wrap; font-size: .85rem; background: #f6f6f6; padding: 1rem; }
svg text { font: 13px system-ui, sans-serif; }
@media print { body { margin: 0; } }
"""
BLUE, GREY, ORANGE = "#0072b2", "#999999", "#d55e00"  # told apart by the colour-blind, too


def write(outcome: Outcome, folder: Path) -> Path:
    """Write the page and one card per setting; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    cards = {trained.name: trained.plan.card(DELTA) for trained in outcome.trained}
    for name, card in cards.items():
        card.save(folder / f"{name}.json")
    sections = "".join(
        f"<h2>Privacy card: {escape(name)}</h2><p>File: {escape(name)}.json; check it with "
        f"<code>consenso verify {escape(name)}.json</code></p><pre>{escape(card.text())}</pre>"
        for name, card in cards.items()
    )
    page = folder / "report.html"
    page.write_text(
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'><title>Consenso demo</title>"
        f"<style>{STYLE}</style></head><body><h1>One private model, three settings</h1>"
        "<p>Is a handwritten digit even? The same logistic regression, learnt by one curator, by clients with a server "
        f"that sees sums only, and by peers on a graph, each with epsilon {outcome.epsilon:g} at delta {DELTA:g} for "
        "the observer it is meant to withstand.</p>"
        "<p class='notice'>The noise is seeded so that the demo repeats: a simulation, not private.</p>"
        f"{_bars(outcome)}<h2>What each observer learns of one record</h2>{_observers(outcome)}{sections}"
        "</body></html>",
        encoding="utf-8",
    )
    return page


def _bars(outcome: Outcome) -> str:
    """Accuracy as horizontal bars, with the majority class and the fit without privacy as marks."""
    bars = [("majority class", outcome.majority, GREY)]
    bars += [(trained.name, trained.accuracy, BLUE) for trained in outcome.trained]
    bars.append(("without privacy", outcome.exact, ORANGE))
    left, width, height = 140, 480, 34
    parts = []
    for place, (name, value, colour) in enumerate(bars):
        y = 10 + place * height
        parts.append(
            f"<text x='{left - 8}' y='{y + 17}' text-anchor='end'>{escape(name)}</text>"
            f"<rect x='{left}' y='{y}' width='{value * width:.1f}' height='24' fill='{colour}'/>"
            f"<text x='{left + value * width + 6:.1f}' y='{y + 17}'>{value:.1%}</text>"
        )
    bottom = 10 + len(bars) * height
    ticks = "".join(
        f"<line x1='{left + share * width}' x2='{left + share * width}' y1='8' y2='{bottom}' stroke='#ddd'/>"
        f"<text x='{left + share * width}' y='{bottom + 16}' text-anchor='middle'>{share:.0%}</text>"
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    return (
        f"<svg role='img' aria-label='Accuracy of each setting' viewBox='0 0 700 {bottom + 44}' width='100%'>{ticks}"
        f"{''.join(parts)}<text x='{left + width / 2}' y='{bottom + 38}' text-anchor='middle'>"
        "accuracy on public test digits</text></svg>"
    )


def _observers(outcome: Outcome) -> str:
    rows = "".join(
        f"<tr><td>{escape(setting)}</td><td>{escape(parse(observer).sentence)}</td>"
        f"<td class='number'>{shown(found['add-remove'])}</td>"
        f"<td class='number'>{shown(found['replace-one'])}</td></tr>"
        for setting, observer, found in epsilons(outcome)
    )
    head = (
        "<tr><th>setting</th><th>observer</th><th class='number'>epsilon, add-remove</th>"
        "<th class='number'>epsilon, replace-one</th></tr>"
    )
    return f"<table>{head}{rows}</table>"
