"""What SQLite says when it cannot read or write a ledger, as errors that say whether something was charged."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from consenso.errors import BudgetError, TamperError

# SQLite quotes damaged definitions in its messages, which then cannot be decoded.
DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
# After these nothing was stored. After others, such as an error of the disk itself, that is not known.
NOTHING_STORED = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)

_Result = TypeVar("_Result")


def try_patiently(
    attempt: Callable[[], _Result], timeout: float, explain: Callable[[], None] = lambda: None
) -> _Result:
    """Try again while the file is busy: SQLite's own waiting does not cover opening and recovery.

    explain: is asked once, when the file is first busy, and may raise another reason than that somebody has it.
    """
    deadline, asked = time.monotonic() + timeout, False
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if get_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            if not asked:
                explain()
                asked = True
        time.sleep(0.005)


def get_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # extended codes keep the primary one in the low byte


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """What cannot be read was damaged."""
    try:
        yield
    except DAMAGE as error:
        raise unreadable(path, error) from error


@contextlib.contextmanager
def storable(path: Path) -> Iterator[None]:
    """A full disk, or a folder that may not be written, is no damage."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise unwritable(path, error) from error
    except DAMAGE as error:
        raise unreadable(path, error) from error


def unwritable(path: Path, error: sqlite3.OperationalError) -> BudgetError:
    """The error of a ledger that the disk does not take."""
    stored = "nothing was charged" if get_code(error) in NOTHING_STORED else "see whether the ledger lists the entry"
    return BudgetError(
        f"Ledger(path={str(path)!r}): it cannot be written ({error}); {stored}; see to it that the disk has room and "
        "that the file and its folder may be written, and try again: the same entry is charged once."
    )


def roll_back(connection: sqlite3.Connection) -> None:
    """Give up a transaction, if there still is one."""
    if connection.in_transaction:  # SQLite has done so itself where the disk is full
        connection.execute("ROLLBACK")


def unreadable(path: Path, error: Exception) -> TamperError:
    """The error of a ledger that was damaged."""
    return TamperError(
        f"Ledger(path={str(path)!r}): SQLite cannot read the file ({error}); nothing was charged; restore it from a "
        "copy whose head you have pinned."
    )
