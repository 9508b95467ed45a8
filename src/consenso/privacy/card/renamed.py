"""Cards with the names of version 0.1.0, in the names of today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from consenso import registry
from consenso.errors import InputError


def rename_card(card: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a card with qualified kinds and today's units; a name that nobody knows stays, to be refused."""
    families = {"parameters": registry.PLANNED, "data": registry.PLANNED, "entries": registry.PROVED}
    return {name: _rename(value, families[name]) if name in families else value for name, value in card.items()}


def _rename(value: Any, families: Iterable[str]) -> Any:
    if isinstance(value, list):
        return [_rename(item, families) for item in value]
    if not isinstance(value, Mapping):
        return value
    found = {name: _rename(item, families) for name, item in value.items()}
    if isinstance(found.get("kind"), str):
        try:
            found["kind"] = registry.name_of(registry.find(found["kind"], families))
        except InputError:
            return found
    if isinstance(found.get("unit"), str):
        found["unit"] = registry.rename("units", found["unit"])
    if found.get("level") == "user":
        found["level"] = "party"
    return found
