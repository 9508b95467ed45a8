"""The one host and the one file that may be written to, named inside a ledger: copies are refused.

A file is known by its number on its file system (the inode), which it keeps when it is renamed and which no other file
has at the same time. The number of the device may change when a machine is started again, so that a file which is still
where it was needs no other proof.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from dataclasses import dataclass
from pathlib import Path

from consenso.errors import BudgetError, InputError

TABLE = "CREATE TABLE lease (id INTEGER PRIMARY KEY CHECK (id = 0), host TEXT NOT NULL) STRICT"
PLACE_TABLE = (
    "CREATE TABLE place (id INTEGER PRIMARY KEY CHECK (id = 0), file TEXT NOT NULL, device TEXT NOT NULL, "
    "path TEXT NOT NULL) STRICT"
)
NAME = "CONSENSO_HOST"


@dataclass(frozen=True)
class Place:
    """A file: its number, the device that has it, and where it was last seen."""

    file: str
    device: str
    path: str

    def is_same(self, other: Place) -> bool:
        """Whether this is one file, moved on its device or left where it was."""
        return self.file == other.file and (self.device == other.device or self.path == other.path)


def this_host() -> str:
    """The name of this host: $CONSENSO_HOST, else the machine id of the operating system, else its network address."""
    named = os.environ.get(NAME, "").strip()
    if named:
        return check_host(named)
    for file in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
        try:
            found = file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found
    return f"{uuid.getnode():012x}"


def check_host(name: str) -> str:
    """A name that can stand in a ledger."""
    if not name or len(name) > 200 or not name.isascii() or not name.isprintable():
        raise InputError(f"host {name[:50]!r}: a host has a printable ASCII name of at most 200 characters; give one.")
    return name


def read_lease(connection: sqlite3.Connection) -> str | None:
    """The host that holds the lease; None where none was ever taken."""
    row = connection.execute("SELECT host FROM lease").fetchone() if has_table(connection, "lease") else None
    return None if row is None else read_text(row[0])


def require_lease(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse to write on a host that does not hold the lease; take it where nobody does. Under the write lock."""
    holder, here = read_lease(connection), this_host()
    if holder is None:
        write_lease(connection, here)
    elif holder != here:
        raise BudgetError(
            f"Ledger(path={str(path)!r}): the host {holder!r} writes to this ledger and this host is {here!r}, so that "
            f"two copies could spend the same budget; hand it over there with `consenso ledger lease {path.name} --to "
            f"{here}` before it is copied, or, if no other copy is in use, take it with `--take-over`."
        )
    _require_place(connection, path)


def _require_place(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse to write to a copy of a ledger on its own host; note the file where none was, and where it is now."""
    noted, here = read_place(connection), place_of(path)
    if noted is not None and not noted.is_same(here):
        raise BudgetError(
            f"Ledger(path={str(path)!r}): this file is a copy of the ledger {noted.path!r} (or was restored, or moved "
            "to another disk), so that two copies could spend the same budget; go on with that file, or, if no other "
            f"copy is in use, take this one with `consenso ledger lease {path.name} --take-over`."
        )
    if noted != here:
        write_place(connection, here)


def write_lease(connection: sqlite3.Connection, host: str) -> None:
    """Name the host that may write from now on. Under the write lock."""
    if read_lease(connection) is None:
        connection.execute(TABLE)
    connection.execute("INSERT OR REPLACE INTO lease VALUES (0, ?)", (host,))


def place_of(path: Path, *, named: Path | None = None) -> Place:
    """The file at a path; `named` is where it is going to be."""
    found = path.stat()
    return Place(file=str(found.st_ino), device=str(found.st_dev), path=str(named or path))


def read_place(connection: sqlite3.Connection) -> Place | None:
    """The file that is the ledger; None where none was ever noted."""
    if not has_table(connection, "place"):
        return None
    row = connection.execute("SELECT file, device, path FROM place").fetchone()
    return None if row is None else Place(*(read_text(each) for each in row))


def write_place(connection: sqlite3.Connection, place: Place) -> None:
    """Note the file that is the ledger from now on. Under the write lock."""
    if not has_table(connection, "place"):
        connection.execute(PLACE_TABLE)
    connection.execute("INSERT OR REPLACE INTO place VALUES (0, ?, ?, ?)", (place.file, place.device, place.path))


def forget_place(connection: sqlite3.Connection) -> None:
    """Let the file that is written to next be the ledger. Under the write lock."""
    if has_table(connection, "place"):
        connection.execute("DELETE FROM place")


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a table that is made when it is first needed is there."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0])


def read_text(value: object) -> str:
    """A text as SQLite gave it: as bytes, which a flipped bit must not keep from being read."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
