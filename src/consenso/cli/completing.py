"""What a shell offers after a few letters: studies, runs, ledgers, algorithms, data sets.

Where nothing fits, nothing is offered, and shells go on with the names of files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# A study has this section, and no other file of ours does.
_MARK = "[privacy"


def complete_studies(incomplete: str) -> list[str]:
    """Files that look like studies."""
    return _list_paths(incomplete, (path for path in _within(incomplete, "*.toml") if _is_study(path)))


def complete_runs(incomplete: str) -> list[str]:
    """Folders with a card, here and one level further down, such as `runs/study`."""
    found = [path.parent for pattern in ("*/card.json", "*/*/card.json") for path in _within(incomplete, pattern)]
    return _list_paths(incomplete, found)


def complete_studies_and_runs(incomplete: str) -> list[str]:
    return [*complete_studies(incomplete), *complete_runs(incomplete)]


def complete_ledgers(incomplete: str) -> list[str]:
    return _list_paths(incomplete, _within(incomplete, "*.ledger"))


def complete_targets(incomplete: str) -> list[str]:
    """What can be attacked: algorithms by name, and studies."""
    from consenso.algorithms import discover

    return [*_list_names(incomplete, discover()), *complete_studies(incomplete)]


def complete_data_sets(incomplete: str) -> list[str]:
    from consenso.datasets import catalogue

    return _list_names(incomplete, catalogue())


def complete_papers(incomplete: str) -> list[str]:
    """Papers that are reproduced, and the words for all of them."""
    from consenso.cli.reproduce import import_experiments

    return _list_names(incomplete, [*import_experiments().papers(), "all", "list", "summary"])


def _within(incomplete: str, pattern: str) -> list[Path]:
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    return sorted(folder.glob(pattern)) if folder.is_dir() else []


def _list_paths(incomplete: str, paths: Iterable[Path]) -> list[str]:
    return list(dict.fromkeys(_list_names(incomplete, map(str, paths))))


def _list_names(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _is_study(path: Path) -> bool:
    try:
        return _MARK in path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
