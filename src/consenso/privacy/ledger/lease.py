"""The one host that may write to a ledger, named inside the file: a copy on another host is refused."""

from __future__ import annotations

import os
import sqlite3
import uuid
from pathlib import Path

from consenso.errors import BudgetError, InputError

TABLE = "CREATE TABLE lease (id INTEGER PRIMARY KEY CHECK (id = 0), host TEXT NOT NULL) STRICT"
NAME = "CONSENSO_HOST"


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
    found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'lease'").fetchone()
    if not found[0]:
        return None
    row = connection.execute("SELECT host FROM lease").fetchone()
    host = row[0] if row is not None else None
    return host.decode("ascii", errors="replace") if isinstance(host, bytes) else host


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


def write_lease(connection: sqlite3.Connection, host: str) -> None:
    """Name the host that may write from now on. Under the write lock."""
    if read_lease(connection) is None:
        connection.execute(TABLE)
    connection.execute("INSERT OR REPLACE INTO lease VALUES (0, ?)", (host,))
