"""What a guarantee means, in plain words."""

from __future__ import annotations

import math

import numpy as np

from consenso.privacy.accountants import tradeoff
from consenso.privacy.card.entry import Entry, round_up
from consenso.privacy.guarantee import UNITS_IN_WORDS, is_useful
from consenso.privacy.observers import parse
from consenso.report.reading import events_of

ALARM = 0.05  # of innocent cases that the attacker of the sentence is ready to accuse


def observer_name(key: str) -> str:
    """The observer as a heading."""
    told = parse(key).sentence
    return told[0].upper() + told[1:]


def unit_phrase(entry: Entry) -> str:
    """What is protected, as a noun."""
    return UNITS_IN_WORDS[entry.unit]


def change_phrase(entry: Entry) -> str:
    """The neighbouring data sets of an entry."""
    return {
        "replace-one": "were replaced by any other",
        "add-remove": "were not there at all",
        "blanked": "one record blanked, n public",
    }[entry.adjacency]


def most_caught(entry: Entry, alarm: float = ALARM) -> float:
    """The largest share of true cases that any test finds at this share of false alarms."""
    missed = float(tradeoff(events_of(entry), np.array([alarm]))[0])
    return 1.0 - missed


def plain_words(entry: Entry, delta: float) -> str:
    """The promise of an entry in words for somebody who has never seen an epsilon."""
    if not is_useful(entry.epsilon):
        return (
            f"Nothing useful is promised: this observer may learn {unit_phrase(entry)} exactly. Trust it, or choose "
            "another setting."
        )
    odds = math.exp(min(entry.epsilon, 700.0))
    factor = f"{odds:.3g}" if odds < 1e6 else "an astronomic number"
    caught = most_caught(entry)
    return (
        f"Had {unit_phrase(entry)} been different ({change_phrase(entry)}), no outcome that this observer can see "
        f"would "
        f"have become more than {factor} times as likely, but for a chance of {delta:g}. Whoever wants to find out "
        f"from "
        f"it whether somebody's data were used, and accepts {ALARM:.0%} false alarms, succeeds in at most "
        f"{caught:.1%} of "
        f"the cases; guessing blindly succeeds in {ALARM:.0%}."
    )


def show_epsilon(value: float) -> str:
    """An epsilon as people read it, never below its value."""
    return round_up(value, 3) if is_useful(value) else "none"
