"""The descriptions of all data sets, found by discovery."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from consenso.datasets.description import Description
from consenso.errors import InputError
from consenso.registry import nearest


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
        raise InputError(f"{name!r}: no such data set; {nearest(name, known)}")
    return known[name]
