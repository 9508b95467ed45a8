"""Whether the file system of a ledger locks files: without locks two processes could spend the same budget at once."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from consenso.errors import BudgetError

# Beginning of the names of files on which locks are tried.
TRIED = ".ledger-lock-"


def require_locks(path: Path) -> None:
    """Refuse a ledger beside which a lock cannot be had, or keeps nobody out. Tried on an empty file, not declared."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=TRIED)
    except OSError as error:
        raise BudgetError(
            f"Ledger(path={str(path)!r}): it cannot be written ({error.strerror}); nothing was charged; see to it that "
            "the disk has room and that the folder may be written."
        ) from error
    try:
        why = _find_fault(handle, name)
    finally:
        os.close(handle)
        with contextlib.suppress(OSError):
            os.unlink(name)
    if why:
        raise BudgetError(
            f"Ledger(path={str(path)!r}): locks do not work on its file system ({why}), so that two processes could "
            "spend the same budget at once; nothing was charged; keep the ledger on a disk of this machine."
        )


def _find_fault(first: int, name: str) -> str:
    """Why locks do not work; empty where they do."""
    if os.name != "posix":
        return ""  # Windows locks every file that is opened through it, or refuses to open it
    try:
        kept_out = _keeps_openings_apart(first, name)
        if kept_out is None:
            kept_out = _keeps_processes_apart(first, name)
    except OSError as error:
        return str(error.strerror)
    return "" if kept_out else "a second lock on one file was granted"


def _keeps_openings_apart(first: int, name: str) -> bool | None:
    """Whether a lock of one opening of a file keeps another out; None where the system knows no such locks."""
    import fcntl

    if sys.platform != "linux":
        return None
    whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    second = os.open(name, os.O_RDWR)
    try:
        fcntl.fcntl(first, fcntl.F_OFD_SETLK, whole)
        fcntl.fcntl(second, fcntl.F_OFD_SETLK, whole)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
    finally:
        os.close(second)
    return False


def _keeps_processes_apart(first: int, name: str) -> bool:
    """Whether a lock of this process keeps another one out; asked once for each device, since it takes a process."""
    import fcntl

    device = os.fstat(first).st_dev
    if device not in _apart:
        fcntl.lockf(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _apart[device] = (
            subprocess.run([sys.executable, "-S", "-c", _SECOND, name], check=False).returncode == _KEPT_OUT
        )
    return _apart[device]


_apart: dict[int, bool] = {}
_KEPT_OUT = 3
_SECOND = f"""
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit({_KEPT_OUT})
"""
