"""The descriptions of all data sets, found by discovery."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from pathlib import Path

from consenso.datasets.description import Description
from consenso.errors import InputError


def catalogue() -> dict[str, Description]:
    """Every data set of this package by name."""
    package = "consenso.datasets"
    found = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        for value in vars(importlib.import_module(f"{package}.{module.name}")).values():
            if isinstance(value, Description):
                found[value.name] = value
    return dict(sorted(found.items()))


def describe(name: str) -> Description:
    """The description of one data set."""
    known = catalogue()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(known)}."
        raise InputError(f"{name!r}: no such data set; {hint}")
    return known[name]
