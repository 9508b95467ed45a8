"""A first schema guessed from a file, marked as a draft because every number in it was read from private data."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consenso.schema.columns import Binary, Category, ColumnKind, Ignore, Label, Numeric, TargetColumn, User
from consenso.schema.dates import Date, read_day
from consenso.schema.description import Schema
from consenso.tables import UNKNOWN, Column, Table, read_table

WARNING = """\
# DRAFT, NOT PUBLIC: the ranges, categories and classes below were read from a private file.
# Replace each of them by what is known without looking at the file (a code book, a law, common sense),
# then remove the line "draft = true". Until then no private training accepts this schema, and the text
# itself must be handled like the file it came from.
"""

#: Texts with more different values than this are not taken for categories.
MOST_CATEGORIES = 50
#: A label with more different values than this is taken for a number.
MOST_CLASSES = 20
MARKERS = ("?", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "-")
#: Pairs of texts that are taken for a binary column, in this order.
PAIRS = (("False", "True"), ("false", "true"), ("no", "yes"), ("No", "Yes"), ("N", "Y"))
LABELS = ("label", "class", "target", "outcome", "y")
IDENTIFIER = re.compile(
    r"((user|person|patient|client|customer|member|subject|writer)[ _-]?)?id|user|writer|patient", re.I
)


def draft_schema(path: str | Path) -> str:
    """The text of a draft schema for a file; it is as private as the file until a person has replaced its numbers."""
    table = read_table(path)
    missing = frozenset(marker for marker in MARKERS if _occurs(marker, table))
    named = [name for name in table.columns if name.lower() in LABELS]
    learned = named[0] if named else list(table.columns)[-1]
    kinds: list[ColumnKind] = []
    for name, column in table.columns.items():
        sight = _look(column, missing)
        kinds.append(_learn(name, sight) if name == learned else _feature(name, sight))
    if not any(isinstance(kind, Numeric | Category | Date | Binary) for kind in kinds):
        # A schema needs a feature, so a lone column is not taken for the label.
        kinds = [_feature(name, _look(column, missing)) for name, column in table.columns.items()]
    users = [position for position, kind in enumerate(kinds) if isinstance(kind, User)]
    for position in users[1:]:
        kinds[position] = Ignore(name=kinds[position].name)
    made = Schema(columns=tuple(kinds), missing_values=tuple(sorted(missing)), draft=True)
    reasons = {
        kind.name: _say_ignored(kind.name, _look(table.columns[kind.name], missing), learned)
        for kind in kinds
        if isinstance(kind, Ignore)
    }
    return WARNING + _with_reasons(made.to_toml(), reasons)


def _with_reasons(text: str, reasons: dict[str, str]) -> str:
    """The text with a comment below the head of each ignored column."""
    heads = {f"[columns.{json.dumps(name, ensure_ascii=False)}]": f"# ignored: {why}" for name, why in reasons.items()}
    lines = ([line, heads[line]] if line in heads else [line] for line in text.splitlines())
    return "\n".join(part for parts in lines for part in parts) + "\n"


def _say_ignored(name: str, sight: _Sight, learned: str) -> str:
    """Why a column was ignored."""
    if IDENTIFIER.fullmatch(name) and name != learned:
        return "a second column of identifiers; one says whose record it is."
    if sight.texts is not None and not sight.texts:
        return "no cell has a value."
    if sight.numeric and sight.low == sight.high:
        return "all its numbers are the same."
    if sight.texts is None and name == learned:
        return f"more than {MOST_CATEGORIES} different texts are no classes."
    if sight.texts is None:
        return (
            f"more than {MOST_CATEGORIES} different texts: list public categories, correct cells that are no days, or "
            'say kind = "user" if they are ids of people.'
        )
    return "one class is nothing to learn." if name == learned else "it is neither numbers nor categories."


@dataclass(frozen=True, kw_only=True)
class _Sight:
    """What was seen of a column: its range when it holds numbers or days, its different texts when they are few."""

    low: float
    high: float
    numeric: bool
    empty: bool
    texts: tuple[str, ...] | None
    days: tuple[str, str] | None


def _look(column: Column, missing: frozenset[str]) -> _Sight:
    values, gone, wrong = column.numbers(missing)
    seen = values[~gone & np.isfinite(values)]
    numeric = wrong is None and seen.size > 0
    found = column.distinct(MOST_CATEGORIES + len(missing))
    return _Sight(
        low=float(seen.min()) if numeric else 0.0,
        high=float(seen.max()) if numeric else 0.0,
        numeric=numeric,
        empty=bool((column.codes((), missing) != UNKNOWN).any()),
        texts=None if found is None else tuple(text for text in found if text not in missing),
        days=None if numeric else _find_days(column, missing),
    )


def _find_days(column: Column, missing: frozenset[str]) -> tuple[str, str] | None:
    """The first and the last day of a column of days."""
    cells, gone = column.identifiers(missing)
    days = [read_day(str(cell)) for cell, empty in zip(cells.tolist(), gone.tolist(), strict=True) if not empty]
    known = [day for day in days if day is not None]
    if not known or len(known) < len(days) or min(known) == max(known):
        return None
    first, last = (datetime.date.fromordinal(day).isoformat() for day in (min(known), max(known)))
    return first, last


def _learn(name: str, sight: _Sight) -> ColumnKind:
    if sight.texts is not None and 2 <= len(sight.texts) <= MOST_CLASSES:
        return Label(name=name, classes=sight.texts, missing="drop-row" if sight.empty else "error")
    if sight.numeric and sight.low < sight.high:
        return TargetColumn(name=name, low=sight.low, high=sight.high, missing="drop-row" if sight.empty else "error")
    return Ignore(name=name)


def _feature(name: str, sight: _Sight) -> ColumnKind:
    if IDENTIFIER.fullmatch(name):
        return User(name=name, missing="drop-row" if sight.empty else "error")
    if sight.numeric and sight.low < sight.high:
        return Numeric(name=name, low=sight.low, high=sight.high, missing="middle" if sight.empty else "error")
    if sight.days is not None:
        return Date(name=name, low=sight.days[0], high=sight.days[1], missing="middle" if sight.empty else "error")
    if sight.texts in PAIRS:
        return Binary(name=name, categories=sight.texts, missing="middle" if sight.empty else "error")
    if sight.texts and not sight.numeric:
        return Category(name=name, categories=sight.texts, missing="category" if sight.empty else "error")
    return Ignore(name=name)


def _occurs(marker: str, table: Table) -> bool:
    return any((column.codes((marker,), frozenset()) == 0).any() for column in table.columns.values())
