"""The demo's page: all studies beside each other, with links to the page of each run."""

from __future__ import annotations

from html import escape
from pathlib import Path

from consenso.demo.studies import DELTA
from consenso.demo.table import HEAD, SETTINGS, compare_settings, rows
from consenso.demo.training import Outcome
from consenso.pages import page, table
from consenso.report import write_report
from consenso.report.charts import bar_chart

MARKERS = ("<!-- demo: begin -->", "<!-- demo: end -->")


def write(outcome: Outcome) -> Path:
    """Write the page of every run and the page over them; the path of the latter."""
    links = []
    for trained in outcome.trained:
        made = write_report(trained.folder)
        links.append(
            f"<li><a href='{escape(trained.name)}/{made.name}'>{escape(trained.title)}</a> "
            f"(<a href='{escape(trained.name)}.toml'>study</a>), "
            f"{trained.rounds_run} of {trained.rounds_planned} rounds</li>"
        )
    body = (
        "<h1>Private models in every setting</h1>"
        "<p class='notice'><strong>Simulation, not private.</strong> The noise is seeded so that the demo repeats.</p>"
        f"<p><strong>{escape(compare_settings(outcome))}</strong></p>"
        f"<p>Each model was trained with epsilon {outcome.epsilon:g} at delta {DELTA:g} for the observer that it is "
        "meant to withstand.</p>"
        + table(list(HEAD), [list(row) for row in rows(outcome)], numbers=frozenset({2, 3, 4}))
        + _bars(outcome)
        + "<h2>The runs</h2><p>All rounds are paid for; a run ends earlier where released values show that its steps "
        f"are taken.</p><ul>{''.join(links)}</ul>"
        + "<h2>How to verify</h2><p>Compute every number of a card again:</p><pre>"
        + "".join(f"consenso verify {escape(str(trained.folder))}\n" for trained in outcome.trained)
        + "</pre>"
    )
    target = outcome.folder / "report.html"
    target.write_text(page("Consenso demo", body), encoding="utf-8")
    return target


def _bars(outcome: Outcome) -> str:
    """Accuracy of the three settings beside the exact fit and the commonest class, which they share."""
    shown = [trained for trained in outcome.trained if trained.name in SETTINGS]
    bars = [(trained.name, trained.private, f"{trained.private:.1%}") for trained in shown]
    bars.append(("without privacy", shown[0].exact, f"{shown[0].exact:.1%}"))
    bars.append(("commonest class", shown[0].simplest, f"{shown[0].simplest:.1%}"))
    return bar_chart(
        bars,
        label="accuracy on public test records: is a digit even?",
        title="Accuracy in each setting",
        largest=1.0,
        quiet=("without privacy", "commonest class"),
    )
