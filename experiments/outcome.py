"""What a reproduction comes to: tables, figures, verdicts and true budgets, all computed from the cells' results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from consenso.arrays import Array
from consenso.errors import InputError

State = Literal["reproduced", "only with the flaw", "not reproduced", "undecided"]
Numbers: TypeAlias = Sequence[float] | Array
Version = Literal["as published", "corrected"]
LINES = 5  # of an argument
Style = Literal["line", "dashed", "dotted", "points", "reported"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of numbers and texts; `name` is also the name of its file."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A curve of a panel, with a band where `low` and `high` are given. Style "reported" is for the paper's numbers."""

    label: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    style: Style = "line"
    hue: int | None = None  # place in the palette, to give curves of several panels one colour


@dataclass(frozen=True, kw_only=True)
class Level:
    """A horizontal line."""

    label: str
    y: float


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str  # with its unit
    y: str
    curves: tuple[Curve, ...]
    levels: tuple[Level, ...] = ()
    log_x: bool = False
    log_y: bool = False
    limits: tuple[float, float] | None = None  # of y


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Panels side by side; `name` is also the name of its files."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    across: int = 2  # panels in a row


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a headline claim, with our number beside the paper's."""

    claim: str
    source: str  # where the paper makes it
    state: State
    reported: str
    ours: str
    because: str


@dataclass(frozen=True, kw_only=True)
class Objection:
    """Something in a paper that does not hold, told so that its authors can check it and use what follows.

    It is made from the results of cells, so that it goes away when they do not show it.
    """

    claim: str  # in the paper's own symbols
    place: str
    argument: tuple[str, ...]  # at most five lines
    shown: str  # what the program found
    stands: bool  # whether that contradicts the claim as it is printed
    reading: str  # the most charitable one
    survives: bool  # whether the objection stands under that reading, too
    correction: str  # what holds instead

    def __post_init__(self) -> None:
        if not 0 < len(self.argument) <= LINES:
            raise InputError(f"Objection({self.place!r}): an argument has 1 to {LINES} lines; shorten it.")


@dataclass(frozen=True, kw_only=True)
class Spent:
    """The true total of a run for one observer."""

    run: str
    version: Version
    nominal: float | None  # the epsilon that the paper states for it
    observer: str
    unit: str
    adjacency: str
    epsilon: float  # what is proved, infinite where nothing is
    delta: float
    theorem: str
    at_least: float | None = None  # exact for a pair of data sets, where one was worked out


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Everything that a report shows beside the paper's own metadata."""

    results: Table  # the main table: results.csv
    figures: tuple[Figure, ...]
    verdicts: tuple[Verdict, ...]
    spent: tuple[Spent, ...]
    changes: tuple[str, ...]  # sentences: what is different when it is done right
    tables: tuple[Table, ...] = ()
    cards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what `cards.checked` returned, by file name
    objections: tuple[Objection, ...] = ()  # in the order of their importance
