"""What the JSON of a card is made of: a digest says that it is as it was written, not that a card was written."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from consenso.conventions import PROTECTED
from consenso.privacy.card.entry import Entry
from consenso.privacy.observers import parse
from consenso.privacy.relations import RELATIONS
from consenso.trust import modes

_PLAIN = (str, dict, bool, int, float, tuple)
_COSTS = ("epsilon", "rho", "mu", "excess")  # infinite ones are texts in JSON


def json_kinds(document: type[Any]) -> dict[str, type]:
    """The JSON type of every field of a dataclass that has one; one with a default may be absent."""
    hints = typing.get_type_hints(document)
    kinds = {
        each.name: typing.get_origin(hints[each.name]) or hints[each.name] for each in dataclasses.fields(document)
    }
    return {name: list if kind is tuple else kind for name, kind in kinds.items() if kind in _PLAIN}


def optional_fields(document: type[Any]) -> set[str]:
    """Fields of a dataclass that a file of an earlier version need not have."""
    return {each.name for each in dataclasses.fields(document) if each.default is not dataclasses.MISSING}


def check_card(content: Mapping[str, Any], card: type[Any]) -> None:
    """Raise ValueError for fields of another kind than those of a card; units are those of today."""
    _require(content, json_kinds(card), optional_fields(card))
    if content["trust"] not in modes() or not 0 <= content["delta"] < 1:
        raise ValueError("trust or delta")
    if not content["entries"] or not all(isinstance(name, str) for name in content["versions"].values()):
        raise ValueError("entries or versions")
    for entry in content["entries"]:
        _require(entry, _entry_kinds(), optional_fields(Entry))
        parse(entry["observer"])
        if entry["unit"] not in PROTECTED or entry["adjacency"] not in RELATIONS:
            raise ValueError("unit or adjacency")
        if not all(isinstance(text, str) for text in entry["refusals"]):
            raise ValueError("refusals")
        for assumption in entry["assumptions"]:
            _require(assumption, {"text": str, "anchor": str}, set())
        if entry["epsilon"] is None or entry["excess"] is None:
            raise ValueError("epsilon or excess")
        if not all(_is_cost(entry[name]) for name in _COSTS):
            raise ValueError("epsilon, rho, mu or excess")


@cache
def _entry_kinds() -> dict[str, type]:
    return {name: kind for name, kind in json_kinds(Entry).items() if name not in _COSTS}


def _require(found: Any, kinds: Mapping[str, type], optional: Collection[str]) -> None:
    if not isinstance(found, Mapping):
        raise ValueError("a table is needed")
    for name, kind in kinds.items():
        if name in optional and name not in found:
            continue
        value = found[name]
        given = float if kind is float and type(value) is int else type(value)
        if given is not kind:
            raise ValueError(name)


def _is_cost(value: Any) -> bool:
    return value is None or (not isinstance(value, bool) and not math.isnan(float(value)) and float(value) >= 0)
