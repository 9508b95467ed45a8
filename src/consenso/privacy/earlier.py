"""The words of version 0.1.0, in which cards, ledgers and studies are still read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What protects all records of a party was called after its user.
UNITS = {"user": "party"}
KINDS = {
    "StatelessWalk": "WalkWithoutStates",
    "Table": "PerRound",
    "TheoremF": "MeanOfNoisyStates",
    "Walk": "TokenWalk",
}


def translate(value: Any, *, algorithm: bool = False) -> Any:
    """A JSON value of version 0.1.0 in the words of this version.

    An algorithm and a theorem had the same name; an algorithm's own parameters are told apart by where they stand.
    """
    if isinstance(value, list):
        return [translate(item, algorithm=algorithm) for item in value]
    if not isinstance(value, Mapping):
        return value
    found = {}
    for name, item in value.items():
        if name == "kind" and isinstance(item, str) and not algorithm:
            item = KINDS.get(item, item)
        elif name == "unit" and isinstance(item, str):
            item = UNITS.get(item, item)
        elif name == "level" and item == "user":
            item = "party"
        else:
            item = translate(item, algorithm=name == "algorithm")
        found[name] = item
    return found
