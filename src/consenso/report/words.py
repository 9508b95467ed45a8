"""What a guarantee means, in plain words."""

from __future__ import annotations

import math

from consenso.privacy.card.entry import Entry
from consenso.privacy.card.odds import ALARM, event_of, most_caught, odds_text
from consenso.privacy.guarantee import UNITS_IN_WORDS, is_useful
from consenso.privacy.observers import parse
from consenso.privacy.rounding import round_up
from consenso.report.charts import number_text

# How neighbouring data sets differ.
CHANGES = {
    "replace-one": "were replaced by any other",
    "add-remove": "were not there at all",
    "blanked": "one record blanked, n public",
}


def observer_heading(key: str) -> str:
    """The observer as a heading."""
    return _capital(parse(key).sentence)


def plain_words(entry: Entry, delta: float) -> str:
    """The promise of an entry in words for somebody who has never seen an epsilon."""
    unit = UNITS_IN_WORDS[entry.unit]
    if not is_useful(entry.epsilon):
        return (
            f"Nothing useful is promised: this observer may learn {unit} exactly. Trust it, or choose another setting."
        )
    factor = number_text(math.exp(min(entry.epsilon, 700.0)))
    caught = most_caught(event_of(entry))
    return (
        f"{_capital(odds_text(entry))}. Had {unit} been different ({CHANGES[entry.adjacency]}), no outcome "
        f"that can be seen would have become more than {factor} times as likely, but for a chance of {delta:g}. "
        f"Whoever accepts {ALARM:.0%} false alarms finds at most {caught:.1%} of the cases; guessing blindly finds "
        f"{ALARM:.0%}."
    )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def show_epsilon(value: float) -> str:
    """An epsilon as people read it, never below its value."""
    return round_up(value, 3) if is_useful(value) else "none"
