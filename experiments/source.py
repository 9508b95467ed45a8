"""The version of the code that a cell runs: a hash of every source file that its module can reach by imports.

What a cell cannot import (the command line, other papers, the prose of a report) does not change its version, nor do
errors, comments, docstrings and what is imported for annotations only, so that mending a sentence does not throw away
hours of results. A package whose `__init__` only hands on names is followed to the homes of the names that are taken
from it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
from functools import cache
from pathlib import Path
from typing import NamedTuple

import consenso

ROOTS = {"consenso": Path(consenso.__file__).parent, "experiments": Path(__file__).parent}
MESSAGES = ROOTS["consenso"] / "errors.py"  # a cell that raises has no result, and what it says is in none


@cache
def version(module: str) -> str:
    """Hash of the module's own code and of all that it imports from this repository, also inside functions."""
    content = hashlib.sha256()
    for path in sorted(reached(module), key=_place):
        content.update(f"{path.name}\0{_code(path)}\0".encode())
    return content.hexdigest()


def _place(path: Path) -> tuple[int, tuple[str, ...]]:
    """Where a file stands in the repository, wherever that is installed: results are found again from a wheel."""
    for rank, name in enumerate(("experiments", "consenso")):  # a wheel has the experiments inside the package
        if path.is_relative_to(ROOTS[name]):
            return rank, path.relative_to(ROOTS[name]).parts
    return len(ROOTS), path.parts  # a module of a test


def reached(module: str) -> set[Path]:
    """The source files of this repository that importing a module can execute, without mere lists of names."""
    _homes.cache_clear()  # files may have changed since
    _file.cache_clear()
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
    return {path for path in found - {MESSAGES} if path == own or not _hands_on(path)}


class _Parsed(NamedTuple):
    tree: ast.Module  # without docstrings
    imports: list[ast.Import | ast.ImportFrom]  # that can run
    annotations: list[ast.ImportFrom]  # if TYPE_CHECKING


def _imports(path: Path) -> set[str]:
    """Full names of the modules that a file imports, with their parents."""
    names: set[str] = set()
    for node in [] if _hands_on(path) else _parse(path).imports:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
            for alias in node.names:  # any of its names may be used
                names |= set(_homes(alias.name).values())
        elif node.module and node.level == 0:
            homes = _homes(node.module)
            # A name from a module may be a module itself.
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            names |= {homes[alias.name] for alias in node.names if alias.name in homes}
    return {".".join(parts[:end]) for name in names for parts in [name.split(".")] for end in range(1, len(parts) + 1)}


@cache
def _homes(module: str, asked: frozenset[str] = frozenset()) -> dict[str, str]:
    """The names that a package hands on, with the modules that have them; those of other modules are their own."""
    path = _file(module)
    if path is None or module in asked:  # two packages may hand on names of each other
        return {}
    stub = path.with_suffix(".pyi")  # where there is one, it lists the names of its package
    parsed = _parse(stub if stub.is_file() else path)
    handed = parsed.imports if stub.is_file() or _hands_on(path) else []
    nodes = [*parsed.annotations, *(node for node in handed if isinstance(node, ast.ImportFrom))]
    named = {alias.asname or alias.name: (str(node.module), alias.name) for node in nodes for alias in node.names}
    all_of = [home for name, (home, _) in named.items() if name == "*"]
    own = {name: home for name, home in named.items() if name != "*"}
    # The home of a name may hand it on again.
    found = {name: _homes(home, asked | {module}).get(there, home) for name, (home, there) in own.items()}
    return {**{name: home for each in all_of for name, home in _homes(each, asked | {module}).items()}, **found}


def _hands_on(path: Path) -> bool:
    """Whether a file is a package's list of names: imports, private constants and what loads names when asked."""
    return path.name == "__init__.py" and all(
        isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))  # a remark
        or (isinstance(node, ast.If) and _is_for_annotations(node))
        or (isinstance(node, ast.Assign) and all(str(getattr(each, "id", "")).startswith("_") for each in node.targets))
        or (isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__"))
        for node in _parse(path).tree.body
    )


def _parse(path: Path) -> _Parsed:
    return _parsed(path, path.stat().st_mtime_ns)


@cache
def _parsed(path: Path, changed: int) -> _Parsed:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports: list[ast.Import | ast.ImportFrom] = []
    annotations: list[ast.ImportFrom] = []
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, annotating = todo.pop()
        if isinstance(node, ast.Import | ast.ImportFrom) and not annotating:
            imports.append(node)
        elif isinstance(node, ast.ImportFrom):
            annotations.append(node)
        inside = node.body if isinstance(node, ast.If) and _is_for_annotations(node) else []
        todo += [(child, annotating or child in inside) for child in ast.iter_child_nodes(node)]
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return _Parsed(tree, imports, annotations)


def _is_for_annotations(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _code(path: Path) -> str:
    """What a file says to Python, without comments and docstrings."""
    return _dumped(path, path.stat().st_mtime_ns)


@cache
def _dumped(path: Path, changed: int) -> str:
    """Kept, since the modules of a paper reach the same files: writing down all of them takes a second."""
    return ast.dump(_parsed(path, changed).tree)


@cache
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
