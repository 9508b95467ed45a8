"""Results of cells, as plain data, and how to pick from them."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError

if TYPE_CHECKING:
    from experiments.definition import Cell


class Results:
    """What each cell returned. `results[cell]` is all of it, `values` picks one number of many cells."""

    def __init__(self, by_cell: Mapping[Cell, Mapping[str, Any]]) -> None:
        self._by_cell = dict(by_cell)

    def __getitem__(self, cell: Cell) -> Mapping[str, Any]:
        return self._by_cell[cell]

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._by_cell)

    def __len__(self) -> int:
        return len(self._by_cell)

    def keys(self) -> KeysView[Cell]:
        """The cells."""
        return self._by_cell.keys()

    def items(self) -> ItemsView[Cell, Mapping[str, Any]]:
        """Cells and what they returned."""
        return self._by_cell.items()

    def rows(self, group: str, **settings: Any) -> list[tuple[dict[str, Any], Mapping[str, Any]]]:
        """Settings and values of the cells of a group that have these settings."""
        asked = [(dict(cell.settings), values) for cell, values in self._by_cell.items() if cell.group == group]
        found = [row for row in asked if all(row[0].get(name) == value for name, value in settings.items())]
        if not found:
            raise InputError(f"Results.rows({group!r}, {settings}): no cell has these settings; see Paper.cells.")
        return found

    def values(self, name: str, group: str, **settings: Any) -> Array:
        """One value of each of those cells, usually over seeds."""
        return np.array([values[name] for _, values in self.rows(group, **settings)], dtype=np.float64)

    def distinct(self, setting: str, group: str, **settings: Any) -> list[Any]:
        """The values that a setting takes in a group, in the order of the cells."""
        return list(dict.fromkeys(asked[setting] for asked, _ in self.rows(group, **settings)))


def plain(value: Any) -> Any:
    """A value as JSON holds it: arrays become lists."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(f"A cell returned {type(value).__name__}; numbers, texts, lists and arrays can be kept.")
