"""What one party, hub or node must not lose: its state, its last answers and its journal, in one file of its own.

Everything that a step changes is written in one transaction, which is on the disk before anything is sent: after a
crash the old step is there or the new one, never half of it. A disk that is full is an error and changes nothing. The
file holds exact private states; it is for its owner only, and one process at a time may have it open.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from consenso.engine.continuation import LIVE, Continuation, Tokens
from consenso.engine.row_binding import ROWS, bind_rows, check_rows
from consenso.errors import ConsensoError, InputError
from consenso.shards import Cohort

FORMAT = 1
FILE = "state.sqlite"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS journal (number INTEGER PRIMARY KEY, content TEXT NOT NULL) STRICT",
)


class DiskError(ConsensoError):
    """Something could not be written; nothing was sent that depends on it."""


class Disk:
    """The folder of one owner in one run. `run` and `fingerprint` say which; another run is refused."""

    def __init__(self, folder: Path, *, owner: str, run: str, fingerprint: str) -> None:
        self.folder, self.owner, self.run, self._mutex = folder, owner, run, threading.Lock()
        identity = {"format": FORMAT, "owner": owner, "run": run, "fingerprint": fingerprint}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _lock_folder(folder)
            file = folder / FILE
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            for statement in _SCHEMA:
                self._connection.execute(statement)
            self._kept: dict[str, bytes] = dict(self._connection.execute("SELECT name, value FROM kept"))
        except (OSError, sqlite3.Error) as error:
            raise _unwritten(folder, error) from error
        known = self.read_json("identity")
        if known is None:
            self.commit({"identity": identity})
        elif known != identity:
            self.close()
            raise InputError(
                f"{folder}: it belongs to another study, version, run or party; resume with what it was made with, or "
                "name another folder."
            )

    def read_bytes(self, name: str) -> bytes | None:
        """Bytes kept under a name."""
        return self._kept.get(name)

    def read_json(self, name: str) -> Any | None:
        """A JSON value kept under a name."""
        blob = self._kept.get(name)
        return None if blob is None else json.loads(blob)

    def names(self, prefix: str) -> list[str]:
        """Names that begin with a prefix."""
        with self._mutex:  # another thread may commit meanwhile
            kept = list(self._kept)
        return [name for name in kept if name.startswith(prefix)]

    def commit(self, changes: Mapping[str, Any], journal: Iterable[Mapping[str, Any]] = ()) -> None:
        """Write all of this or nothing; when the call returns it survives a power cut.

        Bytes are kept as they are, other values as JSON; None forgets a name. The journal only grows.
        """
        blobs = {name: _blob(value) for name, value in changes.items()}
        rows = [(json.dumps(row, sort_keys=True),) for row in journal]
        with self._mutex:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                for name, blob in blobs.items():
                    if blob is None:
                        self._connection.execute("DELETE FROM kept WHERE name = ?", (name,))
                    elif self._kept.get(name) != blob:
                        self._connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, blob))
                self._connection.executemany("INSERT INTO journal (content) VALUES (?)", rows)
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise _unwritten(self.folder, error) from error
            for name, blob in blobs.items():
                if blob is None:
                    self._kept.pop(name, None)
                else:
                    self._kept[name] = blob

    def journal(self) -> list[dict[str, Any]]:
        """Every row of the journal, in order."""
        with self._mutex:
            rows = self._connection.execute("SELECT content FROM journal ORDER BY number").fetchall()
        return [json.loads(content) for (content,) in rows]

    def close(self) -> None:
        """Let go of the file; what was committed stays."""
        with self._mutex:
            self._connection.close()
        os.close(self._lock)


class LiveDisk:
    """A disk that is the one continuation of its owner's run; of a copy, or of an older state, nothing is sent."""

    def __init__(self, disk: Disk, tokens: Tokens | None, run: str) -> None:
        self._disk, self._live = disk, Continuation(tokens, run, disk.read_json(LIVE))

    def go_on(self) -> None:
        """Be the one continuation of this run, or raise."""
        self._live.open(lambda held: self._disk.commit({LIVE: held}))

    def commit(self, changes: Mapping[str, Any], journal: Iterable[Mapping[str, Any]]) -> None:
        """Write all of this or nothing; when the call returns it survives a power cut, and may be sent."""
        self._live.store(lambda held: self._disk.commit({**changes, LIVE: held}, journal))


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """The journal of a folder that nobody has open; for its owner to look at."""
    file = folder / FILE
    if not file.is_file():
        raise InputError(f"{folder}: no run is kept there; name the folder of a party or server.")
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        return [json.loads(content) for (content,) in connection.execute("SELECT content FROM journal ORDER BY number")]
    finally:
        connection.close()


def _blob(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()


def _lock_folder(folder: Path) -> int:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(lock)
    except OSError as error:
        os.close(lock)
        if not isinstance(error, BlockingIOError | PermissionError):
            raise
        raise InputError(f"{folder}: another process has this run open; stop it, or name another folder.") from None
    return lock


def _lock(handle: int) -> None:
    """Lock a file for as long as it is open, or raise at once."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unwritten(folder: Path, error: Exception) -> DiskError:
    return DiskError(
        f"{folder}: the state could not be written ({error}), so nothing was sent; make room or mend the disk, and "
        "start again: the run resumes where it was."
    )


def bind_disk(disk: Disk, cohort: Cohort) -> None:
    """Bind a disk to the rows that it is first opened with, and refuse others later."""
    bound = disk.read_json(ROWS)
    if bound is None:
        disk.commit({ROWS: bind_rows(cohort)})
    else:
        check_rows(bound, cohort, disk.folder)
