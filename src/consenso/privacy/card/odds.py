"""What a guarantee means for a person: how often an attacker can be right, computed from the trade-off curve."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from consenso.privacy.accountants import tradeoff
from consenso.privacy.card.entry import Entry
from consenso.privacy.events import Event
from consenso.privacy.serial import from_json

COIN = 50  # of 100 who toss a coin are right
ALARM = 0.05  # of innocent cases that the attacker of a sentence is ready to accuse
# From here on an attacker may be right so often that nobody is protected.
HELPLESS = 0.99
_POINTS = 1001  # of the curve; what lies between two of them is bounded by their ends

_QUESTIONS = {
    ("record", "replace-one"): "which of two records is yours",
    ("record", "add-remove"): "whether you took part",
    ("record", "blanked"): "whether your record is there or blank",
    ("person", "replace-one"): "which of two sets of records is yours",
    ("person", "add-remove"): "whether you took part",
    ("person", "blanked"): "whether your records are there or blank",
    ("party", "replace-one"): "which of two data sets a party holds",
    ("party", "add-remove"): "whether a party took part",
    ("party", "blanked"): "whether the data of a party are there or blank",
}


def event_of(entry: Entry) -> Event:
    """The privacy event that an entry follows from."""
    event: Event = from_json(entry.theorem).event()
    return event


@lru_cache(maxsize=256)
def most_right(event: Event) -> float:
    """The largest share of attackers that can be right about two cases that are equally likely; at least 1/2.

    A test with false alarms a misses at least f(a) cases, so it is right in (1 - a + 1 - f(a))/2 of them at most.
    Between two points of the curve, which falls, that is at most the value with a of the first and f of the second.
    """
    alarms = np.linspace(0.0, 1.0, _POINTS)
    missed = tradeoff(event, alarms)
    return float(min(1.0, max(0.5, np.max(2.0 - alarms[:-1] - missed[1:]) / 2)))


def most_caught(event: Event, alarm: float = ALARM) -> float:
    """The largest share of true cases that any test finds at this share of false alarms."""
    return 1.0 - float(tradeoff(event, np.array([alarm]))[0])


def right_of_hundred(entry: Entry) -> int:
    """Of 100 attackers, how many are right at most; rounded up."""
    return min(100, math.ceil(100 * most_right(event_of(entry)) - 1e-9))


def protects(entry: Entry) -> bool:
    """Whether the promise of an entry keeps any attacker from being right nearly always."""
    return most_right(event_of(entry)) < HELPLESS


def odds_text(entry: Entry) -> str:
    """The odds of an attacker in plain words."""
    question = _QUESTIONS[entry.unit, entry.adjacency]
    right = right_of_hundred(entry)
    if right >= 100:
        return f"all of 100 attackers who have to say {question} may be right: this protects nobody"
    return f"of 100 attackers who have to say {question}, at most {right} are right; tossing a coin makes {COIN} right"
