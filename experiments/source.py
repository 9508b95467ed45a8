"""The version of the code that a cell runs: a hash of every source file that its module can reach by imports.

What a cell cannot import (the command line, other papers, the prose of a report) does not change its version, so that
mending a sentence does not throw away hours of results.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
from functools import cache
from pathlib import Path

import consenso

ROOTS = {"consenso": Path(consenso.__file__).parent, "experiments": Path(__file__).parent}


@cache
def version(module: str) -> str:
    """Hash of the module's own source and of all that it imports from this repository, also inside functions."""
    content = hashlib.sha256()
    for path in sorted(reached(module)):
        content.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()


def reached(module: str) -> set[Path]:
    """The source files of this repository that importing a module can execute."""
    own = _file(module)
    if own is None:  # a module of a test
        source = inspect.getsourcefile(importlib.import_module(module))
        own = Path(str(source))
    found: set[Path] = set()
    todo = {own}
    while todo:
        path = todo.pop()
        found.add(path)
        todo |= {target for name in _imports(path) if (target := _file(name)) is not None} - found
    return found


def _imports(path: Path) -> set[str]:
    """Full names that a file imports, with their parents; a name from a module may be a module itself."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {".".join(parts[:end]) for name in names for parts in [name.split(".")] for end in range(1, len(parts) + 1)}


def _file(module: str) -> Path | None:
    """The file of a module of this repository."""
    first, *rest = module.split(".")
    if first not in ROOTS:
        return None
    place = ROOTS[first].joinpath(*rest)
    for path in (place / "__init__.py", place.with_suffix(".py")):
        if path.is_file():
            return path
    return None
