"""One token per run, outside every folder that a run could be copied with: it says which copy may go on.

Whoever goes on with a run replaces the token that it holds by a new one before it sends anything. Only one copy can
replace a given token, so that all other copies, and all older states, hold a token that is no longer there.
"""

from __future__ import annotations

import sqlite3

from consenso.errors import PrivacyError
from consenso.privacy.ledger.lease import has_table, read_text

TABLE = "CREATE TABLE tokens (run TEXT PRIMARY KEY, token TEXT NOT NULL) STRICT"


def read_token(connection: sqlite3.Connection, run: str) -> str | None:
    """The token of a run; None before its first one."""
    if not has_table(connection, "tokens"):
        return None
    row = connection.execute("SELECT token FROM tokens WHERE run = ?", (run,)).fetchone()
    return None if row is None else read_text(row[0])


def replace_token(connection: sqlite3.Connection, run: str, *, before: str | None, now: str) -> None:
    """Replace a token inside a transaction that has the write lock; PrivacyError if another one is there."""
    if not has_table(connection, "tokens"):
        connection.execute(TABLE)
    if read_token(connection, run) != before:
        raise stale(run)
    connection.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?)", (run, now))


def stale(run: str) -> PrivacyError:
    """The error of a copy, or of an older state, of a run that went on elsewhere."""
    return PrivacyError(
        f"run {run!r}: it went on from another copy or from a later state, and going on from here would draw noise a "
        "second time for what was charged once; go on with the latest folder, or start a new run, which is charged "
        "anew."
    )
