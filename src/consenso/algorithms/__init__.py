"""Algorithms, one file per definition. They are discovered, not listed: a new file here is a new algorithm."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

from consenso import registry
from consenso.errors import InputError


@cache
def discover() -> dict[str, type[Any]]:
    """Every definition by its class name: those of this package, and of entry points `consenso.algorithms`."""
    return {name: kind for name, kind in registry.kinds("algorithms").items() if hasattr(kind, "example")}


def find(name: str) -> type[Any]:
    """A definition by its own name or by a name that a paper uses."""
    known: dict[str, type[Any]] = {}
    for own, definition in discover().items():
        for alias in (own, f"algorithms.{own}", *(each for source in definition.sources for each in source.names)):
            known[_fold(alias)] = definition
    if _fold(name) not in known:
        near = difflib.get_close_matches(_fold(name), known, n=1)
        hint = f"did you mean {known[near[0]].__name__!r}?" if near else f"known: {', '.join(discover())}."
        raise InputError(f"algorithm {name!r}: there is no such definition; {hint}")
    return known[_fold(name)]


def _fold(name: str) -> str:
    """A name as people vary it: case and spaces do not count."""
    return name.lower().replace(" ", "")
