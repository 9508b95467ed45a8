"""Reading files, asking the rules, and listening to comments that allow a finding for a reason."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from consenso.errors import InputError
from consenso.lint.flow import uses_library
from consenso.lint.notice import Notice
from consenso.lint.rules import RULES

ALLOW = re.compile(r"#\s*consenso:\s*allow\s+([a-z-]+)\s*(.*)$")
SKIPPED = frozenset((".git", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", ".tox"))
UNEXPLAINED = "unexplained-allowance"


def lint(paths: Iterable[Path]) -> list[Notice]:
    """Everything that the rules find in files and folders, in the order of files and lines."""
    notices = [notice for path in files(paths) for notice in lint_file(path)]
    return sorted(notices)


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Python and TOML files, those in folders included."""
    for path in paths:
        if path.is_dir():
            inside = (each for each in sorted(path.rglob("*")) if each.suffix in (".py", ".toml"))
            yield from (each for each in inside if not SKIPPED & set(each.relative_to(path).parts))
        elif path.suffix in (".py", ".toml") and path.is_file():
            yield path
        else:
            raise InputError(f"lint({str(path)!r}): a Python file, a TOML file or a folder is needed; check the path.")


def lint_file(path: Path) -> list[Notice]:
    """What the rules find in one file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"lint({str(path)!r}): the file cannot be read as UTF-8 text; check it.") from error
    return lint_text(text, path)


def lint_text(text: str, path: Path) -> list[Notice]:
    """What the rules find in text that stands in a file of that name."""
    found = _python(text, path) if path.suffix == ".py" else _toml(text, path)
    lines = text.splitlines()
    kept = [notice for notice in found if not _is_allowed(notice, lines)]
    return sorted([*kept, *_find_unexplained(lines, path)])


def _python(text: str, path: Path) -> list[Notice]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"lint({str(path)!r}): not Python that can be read ({error}); correct it.") from error
    if not uses_library(tree):
        return []
    return [
        Notice(path, line, rule.name, message)
        for rule in RULES
        if rule.python is not None
        for line, message in rule.python(tree)
    ]


def _toml(text: str, path: Path) -> list[Notice]:
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"lint({str(path)!r}): not TOML ({error}); correct it.") from error
    return [
        Notice(path, line, rule.name, message)
        for rule in RULES
        if rule.toml is not None
        for line, message in rule.toml(text)
    ]


def _is_allowed(notice: Notice, lines: list[str]) -> bool:
    """Whether the line, or the one above it, allows this rule and says why."""
    for number in (notice.line, notice.line - 1):
        comment = ALLOW.search(lines[number - 1]) if 0 < number <= len(lines) else None
        if comment and comment[1] == notice.rule and comment[2].strip():
            return True
    return False


def _find_unexplained(lines: list[str], path: Path) -> Iterator[Notice]:
    known = {rule.name for rule in RULES}
    for number, line in enumerate(lines, start=1):
        comment = ALLOW.search(line)
        if comment and comment[1] not in known:
            yield Notice(
                path, number, UNEXPLAINED, f"there is no rule {comment[1]!r}; known: {', '.join(sorted(known))}."
            )
        elif comment and not comment[2].strip():
            yield Notice(path, number, UNEXPLAINED, f"say why {comment[1]!r} is allowed here, in the same comment.")
