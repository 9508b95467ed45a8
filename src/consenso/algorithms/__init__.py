"""Algorithms, one file per definition. They are discovered, not listed: a new file here is a new algorithm."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from typing import Any

from consenso.errors import InputError


@cache
def discover() -> dict[str, type[Any]]:
    """Every definition of this package by its class name."""
    found: dict[str, type[Any]] = {}
    for module in pkgutil.iter_modules(__path__):
        for obj in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(obj, type) and obj.__module__ == f"{__name__}.{module.name}" and hasattr(obj, "example"):
                found[obj.__name__] = obj
    return dict(sorted(found.items()))


def find(name: str) -> type[Any]:
    """A definition by its own name or by a name that a paper uses."""
    known: dict[str, type[Any]] = {}
    for own, definition in discover().items():
        known[_plain(own)] = definition
        for source in definition.sources:
            for alias in source.names:
                known[_plain(alias)] = definition
    if _plain(name) not in known:
        near = difflib.get_close_matches(_plain(name), known, n=1)
        hint = f"did you mean {known[near[0]].__name__!r}?" if near else f"known: {', '.join(discover())}."
        raise InputError(f"algorithm {name!r}: there is no such definition; {hint}")
    return known[_plain(name)]


def _plain(name: str) -> str:
    """A name as people vary it: case and spaces do not count."""
    return name.lower().replace(" ", "")
