"""What a study that can be planned still deserves to be told: things that are allowed and are seldom meant."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consenso.study.study import Study


def list_doubts(study: Study) -> list[str]:
    """Warnings from public facts, in a sentence each."""
    records, delta = int(study.sizes.sum()), study.privacy.delta
    if study.privacy.exact or delta * records <= 1:
        return []
    return [
        f"privacy.delta = {delta:g} is above 1/{records:,}: with such a delta a method may publish whole records and "
        f"still keep to it; state {0.1 / records:.1g} or less."
    ]


def list_missing_files(study: Study) -> list[str]:
    """Files, or patterns of them, that a study names and that are not there, in a sentence each; nothing is opened."""
    return [
        f"{key} = {str(path)!r}: there is no such file; check the path."
        for key, path in _files(study)
        if not (study.folder / path).exists() and not glob.glob(str(study.folder / path), recursive=True)
    ]


def _files(study: Study) -> Iterator[tuple[str, Path]]:
    data = study.data
    if data.table is not None:
        yield "data.table", Path(data.table)
    for party, path in data.tables:
        yield f"data.tables.{party}", Path(path)
    if data.test is not None:
        yield "data.test", Path(data.test)
    if study.privacy.ledger is not None:
        yield "privacy.ledger", Path(study.privacy.ledger)
