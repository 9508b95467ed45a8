"""The kinds of columns. Each says what is public about it, and maps its cells one by one.

A feature kind has `feature_names` and `fill`, which writes its (rows, names) block and returns the rows to drop. No map
looks at a second record: what becomes of a cell depends on the cell and on the schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.schema.cells import Cells, Mask, Scale, find_missing, name_with_indicator, require_filling, unknown
from consenso.schema.dates import Date

#: The name of the feature that stands for every category that the schema does not list.
OTHER = "(other)"

NumericRule = Literal["error", "low", "high", "middle", "drop-row"] | float
CategoryRule = Literal["error", "category", "drop-row"]
BinaryRule = Literal["error", "low", "high", "middle", "drop-row"]
PlainRule = Literal["error", "drop-row"]


@runtime_checkable
class Feature(Protocol):
    """A column that becomes features; they add at most 1 to the squared norm of a row, 2 with an indicator."""

    @property
    def name(self) -> str:
        """The name in the table."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature."""

    def fill(self, block: Array, cells: Cells, scale: Scale) -> Mask:
        """Write the features into `block` (rows, names), which holds zeros, and return which rows to drop."""


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """A number between public bounds, scaled to [0, 1] or [-1, 1]; what lies outside is moved to the bound.

    indicator: whether a second feature is 1 where the number is missing, beside what fills it in.
    """

    kind: ClassVar[str] = "numeric"
    rules: ClassVar[tuple[str, ...]] = ("error", "low", "high", "middle", "drop-row")
    name: str
    low: float
    high: float
    missing: NumericRule = "error"
    indicator: bool = False

    def __post_init__(self) -> None:
        _require_bounds(self.name, self.low, self.high)
        _require_rule(self.name, self.missing, self.rules, self.low, self.high)
        require_filling(self.name, self.missing, self.indicator)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of the column."""
        return name_with_indicator(self.name, self.indicator)

    def fill(self, block: Array, cells: Cells, scale: Scale) -> Mask:
        """Write the scaled number, and whether it is missing."""
        values, drop, gone = _bound(cells, self.low, self.high, self.missing)
        block[:, 0] = _place((values - self.low) / (self.high - self.low), scale)
        if self.indicator:
            block[:, 1] = gone
        return drop


@dataclass(frozen=True, kw_only=True)
class Category:
    """One of several public categories, as one feature each, and one for all others unless `strict` refuses them."""

    kind: ClassVar[str] = "category"
    rules: ClassVar[tuple[str, ...]] = ("error", "category", "drop-row")
    name: str
    categories: tuple[str, ...]
    strict: bool = False
    missing: CategoryRule = "error"

    def __post_init__(self) -> None:
        _require_names(self.name, "categories", self.categories, least=1)
        _require_rule(self.name, self.missing, self.rules)
        if OTHER in self.categories:
            raise InputError(
                f"columns.{self.name}.categories: the name {OTHER!r} is taken by unlisted categories; rename."
            )

    @property
    def reserved(self) -> bool:
        """Whether a feature is kept for unlisted categories."""
        return not self.strict or self.missing == "category"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of the column with each category."""
        return tuple(f"{self.name}={item}" for item in (*self.categories, *((OTHER,) if self.reserved else ())))

    def fill(self, block: Array, cells: Cells, scale: Scale) -> Mask:
        """Write a one in the feature of the category, whatever the scale of numbers."""
        codes = cells.codes(self.categories)
        if self.strict:
            cells.refuse(unknown(codes), _say_unlisted("categories"))
        drop = _missing_rows(cells, find_missing(codes), self.missing)
        # Rows to drop land somewhere; the last feature exists in every case.
        block[np.arange(codes.size), np.where(codes < 0, block.shape[1] - 1, codes)] = 1.0
        return drop


@dataclass(frozen=True, kw_only=True)
class Binary:
    """One of two public values as a single feature, low for the first; an unlisted one is put in the middle."""

    kind: ClassVar[str] = "binary"
    rules: ClassVar[tuple[str, ...]] = ("error", "low", "high", "middle", "drop-row")
    name: str
    categories: tuple[str, ...]
    strict: bool = False
    missing: BinaryRule = "error"

    def __post_init__(self) -> None:
        _require_names(self.name, "categories", self.categories, least=2, most=2)
        _require_rule(self.name, self.missing, self.rules)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of the column with its second value."""
        return (f"{self.name}={self.categories[1]}",)

    def fill(self, block: Array, cells: Cells, scale: Scale) -> Mask:
        """Write the position of the value between the two."""
        position, _, drop = _position(cells, self.categories, self.missing, strict=self.strict, what="categories")
        block[:, 0] = _place(position, scale)
        return drop


@dataclass(frozen=True, kw_only=True)
class Ordinal:
    """One of several public levels in their order, at equal distances; an unlisted one is put in the middle.

    indicator: whether a second feature is 1 where the level is missing, beside what fills it in.
    """

    kind: ClassVar[str] = "ordinal"
    rules: ClassVar[tuple[str, ...]] = Binary.rules
    name: str
    levels: tuple[str, ...]
    strict: bool = False
    missing: BinaryRule = "error"
    indicator: bool = False

    def __post_init__(self) -> None:
        _require_names(self.name, "levels", self.levels, least=2)
        _require_rule(self.name, self.missing, self.rules)
        require_filling(self.name, self.missing, self.indicator)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of the column."""
        return name_with_indicator(self.name, self.indicator)

    def fill(self, block: Array, cells: Cells, scale: Scale) -> Mask:
        """Write the position of the level between the first and the last, and whether it is missing."""
        position, gone, drop = _position(cells, self.levels, self.missing, strict=self.strict, what="levels")
        block[:, 0] = _place(position, scale)
        if self.indicator:
            block[:, 1] = gone
        return drop


@dataclass(frozen=True, kw_only=True)
class Label:
    """What a classifier learns: two classes become -1 and +1 in this order, more become 0, 1, 2, ..."""

    kind: ClassVar[str] = "label"
    rules: ClassVar[tuple[str, ...]] = ("error", "drop-row")
    name: str
    classes: tuple[str, ...]
    missing: PlainRule = "error"

    def __post_init__(self) -> None:
        _require_names(self.name, "classes", self.classes, least=2)
        _require_rule(self.name, self.missing, self.rules)

    def targets(self, cells: Cells) -> tuple[NDArray[Any], Mask]:
        """The targets (rows,) and which rows to drop; an unlisted class is an error, since no target stands for it."""
        codes = cells.codes(self.classes)
        cells.refuse(unknown(codes), _say_unlisted("classes"))
        drop = _missing_rows(cells, find_missing(codes), self.missing)
        codes = np.maximum(codes, 0)
        return (2.0 * codes - 1.0 if len(self.classes) == 2 else codes), drop


@dataclass(frozen=True, kw_only=True)
class TargetColumn:
    """What a regression learns: a number that is moved into its public bounds and not scaled."""

    kind: ClassVar[str] = "target"
    rules: ClassVar[tuple[str, ...]] = Numeric.rules
    name: str
    low: float
    high: float
    missing: NumericRule = "error"

    def __post_init__(self) -> None:
        _require_bounds(self.name, self.low, self.high)
        _require_rule(self.name, self.missing, self.rules, self.low, self.high)

    @property
    def bound(self) -> float:
        """The largest size of a target."""
        return max(abs(self.low), abs(self.high))

    def targets(self, cells: Cells) -> tuple[NDArray[Any], Mask]:
        """The targets (rows,) and which rows to drop."""
        values, drop, _ = _bound(cells, self.low, self.high, self.missing)
        return values, drop


@dataclass(frozen=True, kw_only=True)
class User:
    """Whose record it is, where a person rather than a record is protected."""

    kind: ClassVar[str] = "user"
    rules: ClassVar[tuple[str, ...]] = ("error", "drop-row")
    name: str
    missing: PlainRule = "error"

    def __post_init__(self) -> None:
        _require_rule(self.name, self.missing, self.rules)

    def identifiers(self, cells: Cells) -> tuple[NDArray[Any], Mask]:
        """The identifiers (rows,) and which rows to drop."""
        values, gone = cells.identifiers()
        return values, _missing_rows(cells, gone, self.missing)


@dataclass(frozen=True, kw_only=True)
class Ignore:
    """A column that is not used."""

    kind: ClassVar[str] = "ignore"
    name: str


ColumnKind = Numeric | Date | Category | Ordinal | Binary | Label | TargetColumn | User | Ignore
KINDS: dict[str, type[ColumnKind]] = {
    kind.kind: kind for kind in (Numeric, Date, Category, Ordinal, Binary, Label, TargetColumn, User, Ignore)
}


def _position(cells: Cells, names: tuple[str, ...], rule: str, *, strict: bool, what: str) -> tuple[Array, Mask, Mask]:
    """Where each cell lies between the first and the last name, in [0, 1], which are missing, and which to drop."""
    codes = cells.codes(names)
    if strict:
        cells.refuse(unknown(codes), _say_unlisted(what))
    gone = find_missing(codes)
    drop = _missing_rows(cells, gone, rule)
    position = np.where(codes < 0, 0.5, codes / (len(names) - 1))
    position[gone] = {"low": 0.0, "high": 1.0}.get(rule, 0.5)
    return position, gone, drop


def _bound(cells: Cells, low: float, high: float, rule: NumericRule) -> tuple[Array, Mask, Mask]:
    """Numbers within bounds, which rows to drop, and which cells are missing."""
    values, gone = cells.numbers()
    drop = _missing_rows(cells, gone, rule)
    instead = {"low": low, "high": high, "middle": low + (high - low) / 2}.get(str(rule), low)
    if not isinstance(rule, str):
        instead = rule
    return np.where(gone, instead, np.clip(values, low, high)), drop, gone


def _place(position: Array, scale: Scale) -> Array:
    return position if scale == "unit" else 2.0 * position - 1.0


def _missing_rows(cells: Cells, gone: Mask, rule: str | float) -> Mask:
    """The rows to drop; a rule "error" raises at the first missing cell."""
    if rule == "error":
        cells.refuse(gone, 'a value is missing and the schema says missing = "error"; choose a rule for missing values')
    return gone if rule == "drop-row" else np.zeros(gone.shape, dtype=np.bool_)


def _say_unlisted(what: str) -> str:
    return f"the cell is none of the {what} of the schema; list it there if it is public, or correct the cell"


def _require_bounds(name: str, low: float, high: float) -> None:
    if not (np.isfinite([low, high]).all() and low < high and np.isfinite(high - low)):
        raise InputError(
            f"columns.{name}: low and high are finite with low < high, and low = {low}, high = {high} were given; "
            "state a public range."
        )


def _require_names(name: str, key: str, names: tuple[str, ...], *, least: int, most: int | None = None) -> None:
    count = f"exactly {least}" if most == least else f"at least {least}"
    if len(names) < least or (most is not None and len(names) > most):
        raise InputError(
            f"columns.{name}.{key}: {count} are needed, and {len(names)} were given; list the public ones."
        )
    if len(set(names)) < len(names) or any(item != item.strip() or not item for item in names):
        raise InputError(
            f"columns.{name}.{key}: entries differ and have no blanks around them; an empty cell is always missing."
        )


def _require_rule(name: str, rule: str | float, rules: tuple[str, ...], low: float = 0.0, high: float = -1.0) -> None:
    """Check a missing-value rule; a number is allowed within [low, high], so by default none is."""
    if rule in rules or (not isinstance(rule, str) and low <= rule <= high):
        return
    number = f", or a number from {low} to {high}" if low < high else ""
    raise InputError(
        f"columns.{name}.missing: a rule is one of {', '.join(rules)}{number}, and {rule!r} was given; choose one."
    )
