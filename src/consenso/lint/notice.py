"""What a rule says, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Language = Literal["python", "toml"]


@dataclass(frozen=True, order=True)
class Notice:
    """Something that leaks, in a line of a file."""

    path: Path
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "line": self.line, "rule": self.rule, "message": self.message}


@dataclass(frozen=True, kw_only=True)
class RuleExample:
    """Text that a rule catches, at a line, and text that it leaves alone."""

    language: Language
    catches: str
    line: int
    leaves: str


# A check yields lines and what is wrong there, from the parsed file: an ast.Module, or the text of a TOML file.
Check = Callable[[Any], Iterator[tuple[int, str]]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One mistake, how it is found, and examples of what is and what is not one."""

    name: str
    title: str
    why: str  # what leaks, and what to do instead
    python: Check | None = None
    toml: Check | None = None
    examples: tuple[RuleExample, ...]
