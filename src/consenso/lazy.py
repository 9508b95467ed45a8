"""Names of a package that load when they are first used, read from the stub beside it.

The stub is what type checkers read, and the one list of what a package offers: `from home import Name as Name`, or
`from package import *` for all that another package with a stub offers.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package."""
    homes = _read_stub(package)

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return load, lambda: sorted(homes), sorted(homes)


def _read_stub(package: str) -> dict[str, str]:
    """Where each name of a package is at home; nothing is imported."""
    folder = Path(__file__).parent.joinpath(*package.split(".")[1:])
    stub = (folder / "__init__.pyi").read_text(encoding="utf-8")
    homes: dict[str, str] = {}
    for line in ast.parse(stub).body:
        if isinstance(line, ast.ImportFrom) and line.module is not None:
            star = line.names[0].name == "*"
            homes |= _read_stub(line.module) if star else {each.name: line.module for each in line.names}
    return homes
