"""The hash chain: every row is bound to all rows before it.

hash_0 = sha256(ORIGIN + content_0), hash_k = sha256(hash_{k-1} + content_k), contents in canonical JSON.

So an edited, removed, inserted or moved row breaks the chain where it stands. Rows cut off at the end leave a chain
that is sound but shorter; they are missed by the two anchors, each a (count, hash) pair: one inside the file, written
in the same transaction as the row, and one in a file beside it (`consenso.privacy.ledger.anchors`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

ORIGIN = "0" * 64


@dataclass(frozen=True, kw_only=True)
class ChainRow:
    """One stored row, as it was read: nothing in it has been believed yet."""

    number: int
    content: bytes
    hash: str

    @property
    def time(self) -> str:
        """When it was written, by the clock of whoever wrote it; only of a row that was checked."""
        return str(json.loads(self.content)["time"])


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """How many rows there are, and the hash of the last one."""

    count: int
    hash: str


@dataclass(frozen=True, kw_only=True)
class ChainFault:
    """Why a ledger cannot be believed; `row` is the first bad row, None where the fault belongs to no row."""

    row: int | None
    reason: str

    def __str__(self) -> str:
        return self.reason if self.row is None else f"row {self.row}: {self.reason}"


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII, no NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def link(previous: str, content: bytes) -> str:
    """Hash of a row that follows the row with hash `previous`."""
    return hashlib.sha256(previous.encode("ascii") + content).hexdigest()


def broken_link(rows: tuple[ChainRow, ...]) -> ChainFault | None:
    """The first row that does not follow from the rows before it."""
    previous = ORIGIN
    for place, row in enumerate(rows):
        if row.number != place:
            return ChainFault(row=place, reason=f"is missing or out of order; row {row.number} stands in its place")
        if row.hash != link(previous, row.content):
            return ChainFault(row=place, reason="its hash does not follow from its content and the rows before it")
        previous = row.hash
    return None


def check_anchor(rows: tuple[ChainRow, ...], anchor: Anchor, where: str) -> ChainFault | None:
    """Whether the chain contains the anchor: it may be longer than the anchor says, never shorter or different."""
    if anchor.count > len(rows):
        return ChainFault(
            row=len(rows), reason=f"is missing: {where} counts {anchor.count} rows and the ledger has {len(rows)}"
        )
    if anchor.count < 1 or rows[anchor.count - 1].hash != anchor.hash:
        return ChainFault(row=max(anchor.count - 1, 0), reason=f"is not the row that {where} recorded")
    return None


def check_pin(rows: tuple[ChainRow, ...], pinned: str) -> ChainFault | None:
    """Whether a head that was noted earlier is part of the chain."""
    if any(row.hash == pinned for row in rows):
        return None
    return ChainFault(
        row=None, reason=f"the pinned head {pinned} is not in the chain: rows after it or before it were changed"
    )
