"""Who is protected, against whom and how surely: the promises of a card, an attacker's odds, and the ledger."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from consenso.errors import ConsensoError, write_count
from consenso.pages import table
from consenso.privacy.accountants import tradeoff
from consenso.privacy.card import Card
from consenso.privacy.card.depths import Overview, observer_name
from consenso.privacy.card.entry import Entry
from consenso.privacy.card.odds import event_of
from consenso.privacy.card.text import figures_text, spread_text
from consenso.privacy.guarantee import UNITS_IN_WORDS, is_useful
from consenso.privacy.ledger import Balance, Ledger
from consenso.privacy.ledger.costs import add_up
from consenso.privacy.ledger.history import Run
from consenso.privacy.rounding import round_down
from consenso.report.charts import Axis, Series, line_chart, number_text
from consenso.report.reading import RunFiles
from consenso.report.words import observer_heading, plain_words

POINTS = 201  # of a trade-off curve


def group_entries(run: RunFiles) -> list[list[Entry]]:
    """The promises of the run's own unit, those that are equal together."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in run.entries():
        groups.setdefault((entry.epsilon, entry.citation, spread_text(entry)), []).append(entry)
    return list(groups.values())


def who_text(run: RunFiles) -> str:
    """Who is protected, in one sentence."""
    data, unit = run.card.data, UNITS_IN_WORDS[run.entries()[0].unit]
    sizes = data["sizes"]
    of = f"{sum(sizes):,} records" + (f" of {len(sizes):,} parties" if len(sizes) > 1 else "")
    change = "replaced by any other" if data["adjacency"] == "replace-one" else "there or not"
    if not any(is_useful(entry.epsilon) for entry in run.entries()):
        return f"Nobody: no observer has a useful guarantee for {unit} of the {of}."
    return f"{unit[0].upper()}{unit[1:]} of the {of}, compared with the same data in which it is {change}."


def against_text(run: RunFiles) -> str:
    """Against whom, in one sentence."""
    useful = [entry for entry in run.entries() if is_useful(entry.epsilon)]
    bare = [observer_name(entry.observer) for entry in run.entries() if not is_useful(entry.epsilon)]
    whom = ", ".join(observer_name(entry.observer) for entry in useful) or "nobody"
    return whom[0].upper() + whom[1:] + (f". Not against: {', '.join(bare)}." if bare else ".")


def promised_html(run: RunFiles) -> str:
    """The table, and every distinct promise in words, each once."""
    return table_html(run.card) + "".join(_promise(alike, run.card.delta) for alike in group_entries(run))


def table_html(card: Card) -> str:
    """What every observer learns: equal ones in one row, and units that protect somebody."""
    shown = Overview(card=card)
    rows = [[row.who, *row.epsilons, row.odds] for row in shown.rows]
    notes = "".join(f"<br>{escape(note)}" for note in shown.notes)
    every = table(
        list(shown.heads),
        rows,
        numbers=frozenset(range(1, len(shown.heads))),
        caption=f"epsilon at delta {card.delta:g}; smaller is more private",
    )
    return f"{every}<p class='quiet'>{notes.removeprefix('<br>')}</p>"


def _promise(alike: list[Entry], delta: float) -> str:
    entry = alike[0]
    spread = spread_text(entry)
    over = f"<br>Over the parties: {escape(spread)}." if spread else ""
    assumed = dict.fromkeys(each["text"] for one in alike for each in one.assumptions)
    assumes = "".join(f"<li>{escape(text)}</li>" for text in assumed)
    refusals = "".join(f"<li>{escape(text)}</li>" for text in dict.fromkeys(r for one in alike for r in one.refusals))
    more = f"<p>It assumes:</p><ul>{assumes}</ul>" if assumes else ""
    more += f"<p>Not claimed:</p><ul>{refusals}</ul>" if refusals else ""
    who = "; ".join(observer_heading(one.observer) for one in alike)
    return (
        f"<div class='observer'><h3>{escape(who)}</h3><p>{escape(plain_words(entry, delta))}</p>"
        f"<p class='quiet'>{escape(figures_text(entry))}; by {escape(entry.citation)}.{over}</p>"
        f"<details><summary>What this rests on</summary>{more or '<p>Only the parameters.</p>'}</details></div>"
    )


def tradeoff_html(run: RunFiles) -> str:
    """The trade-off curves, one for every distinct promise."""
    alarms = np.concatenate([np.geomspace(1e-4, 0.01, 20), np.linspace(0.015, 1.0, POINTS - 20)])
    series = [Series(name="blind guessing", x=alarms.tolist(), y=(1 - alarms).tolist(), quiet=True)]
    for alike in group_entries(run):
        if is_useful(alike[0].epsilon):
            name = ", ".join(observer_name(entry.observer) for entry in alike)
            missed = tradeoff(event_of(alike[0]), alarms)
            series.append(Series(name=name, x=alarms.tolist(), y=missed.tolist()))
    chart = line_chart(
        series,
        x=Axis(label="share of false alarms", limits=(0.0, 1.0)),
        y=Axis(label="share of cases missed, at least", limits=(0.0, 1.0)),
        title="Trade-off between false alarms and missed cases",
    )
    return (
        "<p>An attacker who tests whether somebody's data were used makes two kinds of mistakes. No test, however "
        f"clever, can lie below these curves.</p>{chart}"
    )


def ledger_text(run: RunFiles) -> str:
    """What is left of the budget, in one sentence."""
    if run.card.simulation:
        return "A simulation is charged to no ledger."
    if run.ledger is None:
        return "No ledger was charged: nobody adds this run to others on the same data."
    found = _balances(run.ledger)
    if found is None:
        return "A ledger was charged; it is not on the machine that made this page."
    told = [
        f"{round_down(max(balance.left, 0.0))} of epsilon {number_text(balance.budget.epsilon)} against "
        f"{observer_name(balance.budget.observer)}"
        for balance in found[0]
    ]
    return f"Left after {write_count(len(found[1]), 'run')}: {'; '.join(told)}."


def ledger_html(run: RunFiles) -> str:
    """Budget spent over the runs of the ledger, if one was charged and is here."""
    found = None if run.ledger is None else _balances(run.ledger)
    if found is None:
        return ""
    balances, runs = found
    places = list(range(len(runs) + 1))
    series = []
    for balance in balances:
        series.append(
            Series(name=f"spent, {observer_name(balance.budget.observer)}", x=places, y=_add_up_costs(balance, runs))
        )
        whole = [balance.budget.epsilon] * len(places)
        series.append(Series(name=f"budget, {observer_name(balance.budget.observer)}", x=places, y=whole, quiet=True))
    chart = line_chart(
        series,
        x=Axis(label="runs on this data set", whole=True),
        y=Axis(label="epsilon"),
        title="Budget spent over the runs",
    )
    listed = [[each.time[:19].replace("T", " "), each.what, each.state] for each in runs]
    return f"<h2>The ledger</h2>{chart}{table(['time', 'run', 'state'], listed)}"


def _add_up_costs(balance: Balance, runs: tuple[Run, ...]) -> list[float]:
    """What the first runs cost together, for every number; of a budget that renews, in the period of the last."""
    charged = [[each.charged for each in _list_together(balance, runs[:last])] for last in range(len(runs) + 1)]
    return [add_up(each, balance.budget).epsilon for each in charged]


def _list_together(balance: Balance, runs: tuple[Run, ...]) -> list[Run]:
    every = balance.budget.renews is None
    return [each for each in runs if each.state != "released" and (every or each.period == runs[-1].period)]


def _balances(path: Path) -> tuple[tuple[Balance, ...], tuple[Run, ...]] | None:
    if not path.exists():
        return None
    try:
        ledger = Ledger.open(path)
        return ledger.balances(), ledger.runs()
    except ConsensoError:
        return None
