"""What attacks proved: the findings of an audit beside the run, and of canaries in it."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from consenso.errors import InputError
from consenso.pages import table
from consenso.privacy.accountants import tradeoff
from consenso.privacy.card.depths import observer_name
from consenso.privacy.card.odds import event_of
from consenso.report.charts import Axis, Series, line_chart, number_text
from consenso.report.reading import ATTACKS, RunFiles
from consenso.study.audited import AUDIT

HEADS = ["who", "claimed", "proved", "share", "verdict"]
RATES = ("most_false_positives", "false_positives", "false_negatives", "most_false_negatives")


def attacked_html(run: RunFiles) -> str:
    """One line a claim, and a picture of claimed curves and attacked points; nothing where nothing was attacked."""
    try:
        found = _attacks(run) + _canaries(run)
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{run.folder}: {ATTACKS} or {AUDIT} is not what an audit writes; write it again with consenso audit."
        ) from None
    return f"<h2>Attacked</h2>{found}" if found else ""


def _attacks(run: RunFiles) -> str:
    tried = [each for each in run.attacks if each["trials"] and each["claimed"] is not None]
    if not tried:
        return ""
    rows = [
        [
            observer_name(str(each["observer"])),
            number_text(float(each["claimed"])),
            number_text(float(each["lower"])),
            f"{float(each['share']):.0%}",
            _verdict(each),
        ]
        for each in tried
    ]
    reasons = "".join(
        f"<li>{escape(observer_name(str(each['observer'])))}: {escape(str(each['reason']))}</li>"
        for each in tried
        if each.get("reason")
    )
    sure = min(float(each["confidence"]) for each in tried)
    caption = f"epsilon at delta {float(tried[0]['delta']):g}; proved with confidence {sure:g}"
    return (
        "<p>The guarantees were attacked with simulated runs on the worst data that are known. What an attack proves "
        "is a lower bound: the truth lies between it and the claim.</p>"
        f"{table(HEADS, rows, numbers=frozenset((1, 2, 3)), caption=caption)}"
        f"{_picture(run, tried)}" + (f"<ul class='quiet'>{reasons}</ul>" if reasons else "")
    )


def _verdict(finding: Any) -> str:
    return "REFUTED" if finding["refuted"] else "not refuted"


def _picture(run: RunFiles, tried: list[Any]) -> str:
    """Each attacked point as a corner, from which its errors may reach so far with the stated confidence."""
    alarms = np.concatenate([np.geomspace(1e-4, 0.01, 20), np.linspace(0.015, 1.0, 180)])
    series = []
    promised = {entry.observer: entry for entry in run.entries()}
    for finding in tried:
        observer, errors = str(finding["observer"]), finding.get("errors")
        if errors is None or observer not in promised:
            continue
        name = observer_name(observer)
        missed = tradeoff(event_of(promised[observer]), alarms)
        series.append(Series(name=f"claimed, {name}", x=alarms.tolist(), y=missed.tolist(), quiet=True))
        far, alarm, miss, most = (float(errors[rate]) for rate in RATES)
        if not all(math.isfinite(each) for each in (far, alarm, miss, most)):
            raise ValueError
        series.append(Series(name=f"attacked, {name}", x=[far, alarm, alarm], y=[miss, miss, most]))
    if not series:
        return ""
    chart = line_chart(
        series,
        x=Axis(label="share of false alarms", limits=(0.0, 1.0)),
        y=Axis(label="share of cases missed", limits=(0.0, 1.0)),
        title="Claimed trade-off curves, and the errors of the attacks with their intervals",
    )
    return (
        f"{chart}<p class='quiet'>An attack below its claimed curve would refute it. The corner is what was counted; "
        "the lines reach to the most that chance explains.</p>"
    )


def _canaries(run: RunFiles) -> str:
    found = run.canaries
    if found is None:
        return ""
    claimed, sure = number_text(float(found["claimed"])), float(found["confidence"])
    values = [number_text(float(found[name])) for name in ("within", "lower", "pair")]
    return (
        f"<p>{int(found['canaries']):,} canaries were among the records of this run, and "
        f"{int(found['right']):,} of {int(found['guesses']):,} guesses about them were right. Claimed of the model: "
        f"epsilon {claimed}. Proved, each with confidence {sure:g}: at least {values[0]} if the shape of the claim "
        f"holds, {values[1]} of any mechanism, {values[2]} if canaries do not hide each other.</p>"
    )
