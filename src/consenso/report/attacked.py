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
from consenso.privacy.rounding import round_down, round_up
from consenso.report.charts import Axis, Series, line_chart, number_text
from consenso.report.promised import group_entries
from consenso.report.reading import ATTACKS, RunFiles
from consenso.study.audited import AUDIT

HEADS = ["who", "claimed", "proved", "share", "in which sense", "verdict"]
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
            round_up(float(each["claimed"])),
            round_down(float(each["lower"]), digits=3),
            f"{float(each['share']):.0%}",
            str(each["sense"]),
            _verdict(each),
        ]
        for each in tried
    ]
    reasons: dict[str, list[str]] = {}
    for each in tried:
        if each.get("reason"):
            reasons.setdefault(str(each["reason"]), []).append(observer_name(str(each["observer"])))
    listed = "".join(f"<li>{escape(', '.join(who))}: {escape(reason)}</li>" for reason, who in reasons.items())
    sure = min(float(each["confidence"]) for each in tried)
    caption = f"epsilon at delta {float(tried[0]['delta']):g}; proved with confidence {sure:g}"
    return (
        "<p>The guarantees were attacked with simulated runs on the worst data that are known. What an attack proves "
        "is a lower bound: the truth lies between it and the claim.</p>"
        f"{table(HEADS, rows, numbers=frozenset((1, 2, 3)), caption=caption)}"
        f"{_picture(run, tried)}" + (f"<ul class='quiet'>{listed}</ul>" if listed else "")
    )


def _verdict(finding: Any) -> str:
    return "REFUTED" if finding["refuted"] else "not refuted"


def _picture(run: RunFiles, tried: list[Any]) -> str:
    """Each attacked point as a corner, from which its errors may reach so far with the stated confidence."""
    alarms = np.concatenate([np.geomspace(1e-4, 0.01, 20), np.linspace(0.015, 1.0, 180)])
    counted = {str(finding["observer"]): finding["errors"] for finding in tried if finding.get("errors") is not None}
    claimed, attacked = [], []
    for alike in group_entries(run):
        names = [entry.observer for entry in alike if entry.observer in counted]
        if not names:
            continue
        missed, who = tradeoff(event_of(alike[0]), alarms), ", ".join(map(observer_name, names))
        claimed.append(Series(name=f"claimed, {who}", x=alarms.tolist(), y=missed.tolist(), quiet=True))
        corners: dict[tuple[float, ...], list[str]] = {}
        for name in names:
            corners.setdefault(tuple(float(counted[name][rate]) for rate in RATES), []).append(observer_name(name))
        for (far, alarm, miss, most), alike_names in corners.items():
            if not all(math.isfinite(each) for each in (far, alarm, miss, most)):
                raise ValueError
            title = f"attacked, {', '.join(alike_names)}"
            attacked.append(Series(name=title, x=[far, alarm, alarm], y=[miss, miss, most], mark=1))
    if not attacked:
        return ""
    chart = line_chart(
        [*claimed, *attacked],
        x=Axis(label="share of false alarms", limits=(0.0, 1.0)),
        y=Axis(label="share of cases missed", limits=(0.0, 1.0)),
        title="Claimed trade-off curves, and the errors of the attacks with their intervals",
    )
    return (
        f"{chart}<p class='quiet'>A disc is what was counted; its lines reach to the most that chance explains. An "
        "attack refutes its claim if both of their ends lie below the claimed curve.</p>"
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
        f"holds, {values[1]} of any mechanism, {values[2]} if canaries do not hide each other.{_ideally(found)}</p>"
    )


def _ideally(found: Any) -> str:
    if found.get("ideal") is None:  # of an audit by an earlier version
        return ""
    return f" An attack that attains the claim proves {number_text(float(found['ideal']))} with as many canaries."
