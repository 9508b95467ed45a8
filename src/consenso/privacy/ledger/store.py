"""The file of a ledger: SQLite in WAL mode, and an anchor file beside it.

A connection lives for one operation, so a ledger may be shared by threads, forks and processes. Writers take the
write lock before they read (BEGIN IMMEDIATE): what they decide on is what they append to. A row is durable
(synchronous=FULL) before the anchor file is brought up to it, so the anchor file may lag behind the rows after a
crash but never runs ahead of them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from consenso.errors import BudgetError, InputError, TamperError
from consenso.privacy.ledger import lease, tokens
from consenso.privacy.ledger.anchors import anchor_path, read_anchor, sync_folder, write_anchor
from consenso.privacy.ledger.chain import (
    ORIGIN,
    Anchor,
    ChainFault,
    ChainRow,
    broken_link,
    canonical,
    check_anchor,
    link,
)
from consenso.privacy.ledger.locks import require_locks
from consenso.privacy.ledger.sqlite_errors import (
    DAMAGE,
    NOTHING_STORED,
    get_code,
    readable,
    roll_back,
    storable,
    try_patiently,
    unreadable,
    unwritable,
)

APPLICATION = 0x434E534F  # "CNSO" in the SQLite header
FORMAT = 1
# Seconds after which somebody who waits for a file is told why, if it is for want of locks.
SOON = 0.5
# Folders in which ledgers are made before they appear.
DRAFTS = ".ledger-"

_SCHEMA = {
    "entries": "CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL) STRICT",
    "anchor": "CREATE TABLE anchor (id INTEGER PRIMARY KEY CHECK (id = 0), count INTEGER NOT NULL, "
    "hash TEXT NOT NULL) STRICT",
    "entries_stay": "CREATE TRIGGER entries_stay BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    "entries_keep": "CREATE TRIGGER entries_keep BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
}

# Made when they are first needed. Not in the chain: they say who may go on, not what was spent.
_ASIDE = {"tokens": tokens.TABLE, "lease": lease.TABLE, "place": lease.PLACE_TABLE}


_Result = TypeVar("_Result")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Everything stored at one moment."""

    rows: tuple[ChainRow, ...]
    anchor: Anchor
    beside: Anchor | None

    def fault(self) -> ChainFault | None:
        """The first thing that does not follow."""
        if not self.rows:
            return ChainFault(row=0, reason="is missing: the ledger is empty")
        found = broken_link(self.rows) or check_anchor(self.rows, self.anchor, "the anchor in the file")
        if found is None and self.anchor.count != len(self.rows):
            found = ChainFault(row=self.anchor.count, reason="was added without moving the anchor in the file")
        if found is not None:
            return found
        if self.beside is None:
            # A crash between creating the ledger and writing the anchor file leaves exactly this, with nothing spent.
            alone = len(self.rows) == 1
            return (
                None if alone else ChainFault(row=None, reason="the anchor file (.head) beside the ledger is missing")
            )
        return check_anchor(self.rows, self.beside, "the anchor file (.head)")


class Writer:
    """Rows as they stand under the write lock, and the one way to add to them."""

    def __init__(self, connection: sqlite3.Connection, rows: tuple[ChainRow, ...]) -> None:
        """Take over the rows that were read under the lock."""
        self._connection = connection
        self.rows = rows

    def append(self, content: dict[str, Any]) -> ChainRow:
        """Add a row; it is stored when the `writing` block ends without an error."""
        text = canonical(content)
        previous = self.rows[-1].hash if self.rows else ORIGIN
        row = ChainRow(number=len(self.rows), content=text.encode(), hash=link(previous, text.encode()))
        self._connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (row.number, text, row.hash))
        self._connection.execute(
            "INSERT INTO anchor VALUES (0, ?, ?) ON CONFLICT (id) DO UPDATE SET count = excluded.count, "
            "hash = excluded.hash",
            (row.number + 1, row.hash),
        )
        self.rows = (*self.rows, row)
        return row


def create(path: Path, content: dict[str, Any], timeout: float) -> None:
    """A new ledger with its first row; it appears whole or not at all, and never replaces another."""
    if path.exists():
        raise InputError(
            f"Ledger.create(path={str(path)!r}): the file exists; take another name, or open it if it is your ledger."
        )
    if anchor_path(path).exists():
        raise InputError(
            f"Ledger.create(path={str(path)!r}): the anchor file of an earlier ledger lies there, whose spending would "
            f"be forgotten; restore that ledger, or remove {anchor_path(path).name} if it never charged these data."
        )
    if not path.parent.is_dir():
        raise InputError(f"Ledger.create(path={str(path)!r}): the folder does not exist; make it first.")
    require_locks(path)
    try:
        _create_whole(path, content)
    except (sqlite3.OperationalError, OSError) as error:
        raise InputError(
            f"Ledger.create(path={str(path)!r}): it cannot be written ({error}); see to it that the disk has room and "
            "that the folder may be written."
        ) from error
    sync_folder(path.parent)
    with contextlib.closing(_connect(path, timeout, "rw")) as connection:
        _refresh_anchor(connection, path, timeout)


def _create_whole(path: Path, content: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=DRAFTS) as folder:
        draft = Path(folder) / "draft"
        with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            for statement in _SCHEMA.values():
                connection.execute(statement)
            Writer(connection, ()).append(content)
            lease.write_lease(connection, lease.this_host())
            lease.write_place(connection, lease.place_of(draft, named=path))
            connection.execute("COMMIT")
        try:
            os.link(draft, path)
        except FileExistsError:
            raise InputError(f"Ledger.create(path={str(path)!r}): another process has just made it; open it.") from None


def read(path: Path, timeout: float, *, thorough: bool = False) -> Snapshot:
    """What is stored now; never writes. `thorough` also has SQLite check its own structure."""
    # The anchor file first: rows only grow, so what it says must be found in rows that are read later.
    beside = read_anchor(path)
    with contextlib.closing(_connect(path, timeout, "ro")) as connection, readable(path):
        if thorough:
            _check_structure(connection)
        connection.execute("BEGIN")
        return _snapshot(connection, beside)


@contextlib.contextmanager
def open_writer(path: Path, timeout: float) -> Iterator[Writer]:
    """One transaction under the write lock, on a chain that holds; an error inside leaves the ledger as it was."""
    with contextlib.closing(_connect(path, timeout, "rw")) as connection:
        with _transaction(connection, path, timeout):
            with readable(path):
                snapshot = _snapshot(connection, read_anchor(path))
            fault = snapshot.fault()
            if fault is not None:
                raise refuse(path, fault)
            writer = Writer(connection, snapshot.rows)
            lease.require_lease(connection, path)
            yield writer
        if writer.rows != snapshot.rows:
            _refresh_anchor(connection, path, timeout)


def read_aside(path: Path, timeout: float, look: Callable[[sqlite3.Connection], _Result]) -> _Result:
    """What is kept beside the chain: tokens of runs (`tokens`), the host and the file that may be written (`lease`)."""
    with contextlib.closing(_connect(path, timeout, "ro")) as connection, readable(path):
        return look(connection)


def replace_token(path: Path, timeout: float, run: str, *, before: str | None, now: str) -> None:
    """Replace the token of a run; when the call returns, the new one survives a power cut."""
    with _aside(path, timeout) as connection:
        lease.require_lease(connection, path)
        tokens.replace_token(connection, run, before=before, now=now)


def write_lease(path: Path, timeout: float, host: str, *, take_over: bool) -> None:
    """Name the host that may write from now on; only the holder may, unless it is taken over."""
    with _aside(path, timeout) as connection:
        if not take_over:
            lease.require_lease(connection, path)
        lease.write_lease(connection, host)
        if take_over:
            lease.write_place(connection, lease.place_of(path))
        elif host != lease.this_host():
            lease.forget_place(connection)  # the copy that is written there first is the ledger


@contextlib.contextmanager
def _aside(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """One transaction under the write lock that adds no row."""
    with contextlib.closing(_connect(path, timeout, "rw")) as connection, _transaction(connection, path, timeout):
        yield connection


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, path: Path, timeout: float) -> Iterator[None]:
    """What is done under the write lock is stored as a whole when the block ends, or not at all."""
    _begin(connection, path, timeout)
    try:
        with storable(path):
            yield
            connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def refuse(path: Path, fault: ChainFault) -> TamperError:
    """The error of a ledger that cannot be believed."""
    return TamperError(
        f"Ledger(path={str(path)!r}): {fault}; nothing was charged; find out who wrote to it, and restore it from a "
        "copy whose head you have pinned."
    )


def _connect(path: Path, timeout: float, mode: str) -> sqlite3.Connection:
    if not path.is_file():
        raise InputError(f"Ledger.open(path={str(path)!r}): there is no such file; see consenso ledger create.")
    _require_one_name(path)

    def open_connection(options: str) -> sqlite3.Connection:
        uri = f"{path.absolute().as_uri()}?{options}"
        connection = sqlite3.connect(uri, uri=True, timeout=min(timeout, SOON), isolation_level=None)
        connection.text_factory = bytes  # a flipped bit must not stop the reading before its row is named
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # where plain fsync stops at the disk's cache
            _check_header(path, connection)
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * timeout)}")
        except BaseException:
            connection.close()
            raise
        return connection

    if mode == "rw":
        require_locks(path)
    try:
        return try_patiently(lambda: open_connection(f"mode={mode}"), timeout, lambda: _explain(path))
    except sqlite3.OperationalError as error:
        if mode == "rw" and get_code(error) in (sqlite3.SQLITE_IOERR, *NOTHING_STORED):
            raise unwritable(path, error) from error
        # On read-only media and full disks SQLite cannot make the shared memory of WAL mode; without a WAL none is
        # needed.
        shared = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
        if get_code(error) not in shared or mode != "ro" or _has_log(path):
            _explain(path)
            raise unreadable(path, error) from error
        return open_connection("immutable=1")
    except DAMAGE as error:
        raise unreadable(path, error) from error


def _explain(path: Path) -> None:
    """Where locks do not work SQLite says that somebody else has the file, or that the disk fails."""
    if os.access(path.parent, os.W_OK):
        require_locks(path)


def _has_log(path: Path) -> bool:
    """Whether rows may be in the WAL that are not in the file."""
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _require_one_name(path: Path) -> None:
    """Refuse hard links: SQLite has a log for each name of a file, and two logs would each spend the budget."""
    drafts = 0
    if path.stat().st_nlink > 1:
        # One that is being made has a draft, and a process that was killed meanwhile may have left it.
        for each in path.parent.glob(f"{DRAFTS}*/draft"):
            with contextlib.suppress(FileNotFoundError):
                drafts += each.samefile(path)
    if path.stat().st_nlink > 1 + drafts:
        raise InputError(
            f"Ledger.open(path={str(path)!r}): the file has another name, too (a hard link), under which it could be "
            "spent a second time; remove that one, or copy the file to have a copy."
        )


def _check_header(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise InputError(
            f"Ledger.open(path={str(path)!r}): the file is not a ledger; make one with consenso ledger create."
        )
    if version != FORMAT:
        raise InputError(
            f"Ledger.open(path={str(path)!r}): the file has format {version} and this version reads format {FORMAT}; "
            "use the version of consenso that wrote it."
        )


def _check_structure(connection: sqlite3.Connection) -> None:
    found = {_text(name): _text(text) for name, text in connection.execute("SELECT name, sql FROM sqlite_master")}
    indexes = {f"sqlite_autoindex_{name}_1" for name in _ASIDE}  # of primary keys, made by SQLite
    for name in sorted(_SCHEMA.keys() | found.keys() - indexes):
        if (_SCHEMA | _ASIDE).get(name) != found.get(name):
            raise sqlite3.DatabaseError(f"the definition of {name} was changed")
    (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != b"ok":
        raise sqlite3.DatabaseError(answer.decode(errors="replace"))


def _snapshot(connection: sqlite3.Connection, beside: Anchor | None) -> Snapshot:
    stored = connection.execute("SELECT number, content, hash FROM entries ORDER BY number").fetchall()
    anchors = connection.execute("SELECT count, hash FROM anchor").fetchall()
    rows = tuple(
        ChainRow(number=number, content=_blob(content), hash=_text(digest)) for number, content, digest in stored
    )
    count, digest = anchors[0] if len(anchors) == 1 and isinstance(anchors[0][0], int) else (0, b"")
    return Snapshot(rows=rows, anchor=Anchor(count=count, hash=_text(digest)), beside=beside)


def _begin(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    try:
        try_patiently(lambda: connection.execute("BEGIN IMMEDIATE"), timeout)
    except sqlite3.OperationalError as error:
        if get_code(error) != sqlite3.SQLITE_BUSY:
            raise unreadable(path, error) from error
        raise BudgetError(
            f"Ledger(path={str(path)!r}, timeout={timeout:g}): another process held the ledger for all that time; "
            "nothing was charged; try again or raise the timeout."
        ) from error


def _blob(value: object) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode()


def _text(value: object) -> str:
    return _blob(value).decode("ascii", errors="replace")


def _refresh_anchor(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Bring the anchor file up to the last stored row; under the lock, so that it never moves back."""
    _begin(connection, path, timeout)
    try:
        count, digest = connection.execute("SELECT count, hash FROM anchor").fetchone()
        write_anchor(path, Anchor(count=count, hash=_text(digest)))
    except OSError as error:
        raise BudgetError(
            f"Ledger(path={str(path)!r}): the entry is stored and counts, but its anchor file cannot be written "
            f"({error.strerror}); see to it that the disk has room, and try again: the same entry is charged once."
        ) from error
    finally:
        roll_back(connection)
