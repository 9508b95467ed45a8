"""The anchor file beside a ledger: the count and hash of its last row, outside the SQLite file.

It is what notices a ledger that was set back: restored from an old copy, cut at the end, or robbed of its WAL.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from consenso.privacy.ledger.chain import Anchor, canonical


def anchor_path(path: Path) -> Path:
    """The anchor file of a ledger."""
    return path.with_name(path.name + ".head")


def read_anchor(path: Path) -> Anchor | None:
    """What the anchor file of a ledger says; None when there is none."""
    try:
        stored = json.loads(anchor_path(path).read_bytes())
        return Anchor(count=int(stored["count"]), hash=str(stored["hash"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return Anchor(count=0, hash="")  # unreadable: an anchor that no chain contains


def write_anchor(path: Path, anchor: Anchor) -> None:
    """Replace the anchor file of a ledger, whole or not at all; the caller holds the ledger's write lock."""
    target = anchor_path(path)
    draft = target.with_name(target.name + ".new")
    with draft.open("w", encoding="ascii") as file:
        file.write(canonical({"count": anchor.count, "hash": anchor.hash}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.chmod(path.stat().st_mode & 0o777)  # whoever may charge the ledger must be able to move its anchor
    os.replace(draft, target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a new or renamed file of a folder durable."""
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened, and a rename is durable by itself
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
