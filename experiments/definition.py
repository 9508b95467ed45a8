"""What a reproduction is made of, before anything is run: a paper, its cells, and what it reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from consenso.errors import InputError
from experiments.outcome import Objection, Outcome
from experiments.results import Results


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One computation: a function of module level, its settings and what it is expected to take.

    Two cells are the same when function and settings are; the key under which a result is kept is made from their text.
    """

    group: str  # the experiment that it belongs to
    work: Callable[..., Mapping[str, Any]]
    settings: tuple[tuple[str, Any], ...]
    seconds: float = field(default=1.0, compare=False)  # on one core, for the time left

    @classmethod
    def of(cls, group: str, work: Callable[..., Mapping[str, Any]], *, seconds: float = 1.0, **settings: Any) -> Cell:
        """A cell that calls work(**settings); settings are numbers, texts, tuples or frozen dataclasses of those."""
        return cls(group=group, work=work, settings=tuple(sorted(settings.items())), seconds=seconds)

    def __post_init__(self) -> None:
        if set(".<") & set(getattr(self.work, "__qualname__", ".")):
            raise InputError(f"Cell(work={self.work!r}): worker processes need a function of module level.")
        if " at 0x" in repr(self.settings) or "array(" in repr(self.settings):
            raise InputError(
                f"Cell(settings={self.settings!r}): a setting must have a text that says all of it; use plain values."
            )

    @property
    def name(self) -> str:
        """For progress and errors."""
        return f"{self.group} ({', '.join(f'{name}={value}' for name, value in self.settings)})"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of the paper's experiment and where it is stated."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Something that the paper leaves open, and what was chosen."""

    what: str
    chosen: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """Something that is wrong in the paper or its code, and what follows from it."""

    what: str
    consequence: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """An objection and the groups of cells that it needs: `consenso reproduce 000 --objection NAME` runs these."""

    name: str  # for the command line
    groups: tuple[str, ...]
    object_to: Callable[[Results], Objection]


@dataclass(frozen=True, kw_only=True)
class Reported:
    """Numbers that the paper or its code reports: data to compare with, never a result."""

    name: str
    source: str
    values: tuple[float, ...]
    at: tuple[float, ...] = ()  # where, on the horizontal axis
    axis: str = ""  # what `at` is


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper's reproduction.

    grids: at least "quick" and "full"; what a grid is, is the paper's own affair (a frozen dataclass).
    cells: the cells of a grid. gather: tables, figures and verdicts from their results, a pure function.
    """

    number: str  # "000"
    title: str
    authors: str
    reference: str
    about: str  # what the experiment shows, in a few sentences
    parameters: tuple[Parameter, ...]
    choices: tuple[Choice, ...]
    flaws: tuple[Flaw, ...]
    reported: tuple[Reported, ...]
    grids: Mapping[str, Any]
    cells: Callable[[Any], tuple[Cell, ...]]
    gather: Callable[[Any, Results], Outcome]
    cases: tuple[Case, ...] = ()  # objections, in the order of their importance
    label: Callable[[Cell], str] = lambda cell: cell.group  # what a cell is counted under, where a grid is incomplete

    def cells_of(self, grid: str) -> tuple[Cell, ...]:
        """The cells of a named grid."""
        if grid not in self.grids:
            raise InputError(f"Paper {self.number}: no grid {grid!r}; there are {', '.join(self.grids)}.")
        return self.cells(self.grids[grid])
