"""Names of a package that load when they are first used, read from the stub beside it.

The stub is what type checkers read, and the one list of what a package offers: `from home import Name as Name`, or
`from package import *` for all that another package with a stub offers.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Mapping
from pathlib import Path


def find_homes(package: str) -> dict[str, str]:
    """The module of each name that the stub of a package lists; nothing is imported."""
    folder = Path(__file__).parent.joinpath(*package.split(".")[1:])
    homes: dict[str, str] = {}
    for line in ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(line, ast.ImportFrom) and line.module is not None:
            star = line.names[0].name == "*"
            homes |= find_homes(line.module) if star else {each.name: line.module for each in line.names}
    return homes


def load_from(homes: Mapping[str, str], package: str, name: str) -> object:
    """What a package offers under a name, for its `__getattr__`."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(importlib.import_module(homes[name]), name)
