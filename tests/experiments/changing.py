"""The law of verdicts: each is made from results, so that some change of them changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from experiments.results import Results

EDITS: tuple[Callable[[float], float], ...] = (
    lambda x: 1e-9 * x,
    lambda x: 1e9 * x,
    lambda x: 0.3 * x,
    lambda x: 3.0 * x,
    lambda x: x * abs(x),  # changes a rate
)


def unchanging(states: Callable[[Results], list[str]], results: Results) -> list[int]:
    """Places of the verdicts that no change of a single field of similar cells changes."""
    before = states(results)
    left = set(range(len(before)))
    for changed in _changes(results):
        after = states(changed)
        assert len(after) == len(before)
        left -= {place for place in left if after[place] != before[place]}
        if not left:
            break
    return sorted(left)


def _changes(results: Results) -> Iterator[Results]:
    kinds = dict.fromkeys((cell.group, kind) for cell in results for kind in _kinds(cell))
    # What changes most comes first, since looking ends when every verdict has changed.
    for edit in EDITS:
        for group, kind in kinds:
            own = [cell for cell in results if cell.group == group and kind in _kinds(cell)]
            for name in dict.fromkeys(name for cell in own for name in results[cell]):
                yield Results(
                    {
                        cell: {**values, name: _edited(values[name], edit)}
                        if cell in own and name in values
                        else values
                        for cell, values in results.items()
                    }
                )


def _kinds(cell: Any) -> list[str]:
    """What cells of a group are told apart by: their settings, but for seeds, and the methods of their runs."""
    asked = dict(cell.settings)
    methods = sorted({run.method for run in asked.get("runs", ())})
    return ["", *(f"{name}={value}" for name, value in asked.items() if name not in ("seed", "runs")), *methods]


def _edited(value: Any, edit: Callable[[float], float]) -> Any:
    if isinstance(value, dict):
        return {name: _edited(each, edit) for name, each in value.items()}
    if isinstance(value, list):
        return [_edited(each, edit) for each in value]
    return edit(value) if isinstance(value, float) else value
