"""What the JSON of a card is made of: a digest says that it is as it was written, not that a card was written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from consenso.conventions import PROTECTED
from consenso.privacy.observers import parse
from consenso.privacy.relations import RELATIONS
from consenso.trust import modes

_CARD: dict[str, type] = {
    **dict.fromkeys(("algorithm", "trust", "sampler"), str),
    **dict.fromkeys(("parameters", "data", "versions"), dict),
    "simulation": bool,
    "delta": float,
    "entries": list,
}
_ENTRY: dict[str, type] = {
    **dict.fromkeys(("observer", "unit", "adjacency", "method", "citation", "section", "sentence"), str),
    **dict.fromkeys(("theorem", "event"), dict),
    **dict.fromkeys(("assumptions", "refusals"), list),
}


def check_card(content: Mapping[str, Any]) -> None:
    """Raise ValueError for fields of another kind; units are those of today."""
    _require(content, _CARD)
    if content["trust"] not in modes() or not 0 <= content["delta"] < 1:
        raise ValueError("trust or delta")
    if not content["entries"] or not all(isinstance(name, str) for name in content["versions"].values()):
        raise ValueError("entries or versions")
    for entry in content["entries"]:
        _require(entry, _ENTRY)
        parse(entry["observer"])
        if entry["unit"] not in PROTECTED or entry["adjacency"] not in RELATIONS:
            raise ValueError("unit or adjacency")
        if not all(isinstance(text, str) for text in entry["refusals"]):
            raise ValueError("refusals")
        for assumption in entry["assumptions"]:
            _require(assumption, {"text": str, "anchor": str})
        if entry["epsilon"] is None or entry["excess"] is None:
            raise ValueError("epsilon or excess")
        if not all(_is_cost(entry[name]) for name in ("epsilon", "rho", "mu", "excess")):
            raise ValueError("epsilon, rho, mu or excess")


def _require(found: Any, kinds: Mapping[str, type]) -> None:
    if not isinstance(found, Mapping):
        raise ValueError("a table is needed")
    for name, kind in kinds.items():
        value = found[name]
        given = float if kind is float and type(value) is int else type(value)
        if given is not kind:
            raise ValueError(name)


def _is_cost(value: Any) -> bool:
    return value is None or (not isinstance(value, bool) and not math.isnan(float(value)) and float(value) >= 0)
