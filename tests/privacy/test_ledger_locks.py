"""A ledger where files cannot be locked: one clear error at once, and nothing is spent."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from consenso.errors import BudgetError
from consenso.privacy.events import Pure
from consenso.privacy.ledger import Budget, Ledger, Scope, locks

SCOPE = Scope(observer="public", unit="record", adjacency="replace-one")
BUDGET = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)

# Stands before the locks of the system, also for SQLite: they fail as LOCK_ERRNO says, or are granted to everybody.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
static int call(const char *name, int handle, int command, void *given) {
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name);
    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_GETLK) {
        errno = atoi(getenv("LOCK_ERRNO"));
        if (command == F_GETLK && !errno) ((struct flock *)given)->l_type = F_UNLCK;
        return errno ? -1 : 0;
    }
    return real(handle, command, given);
}
#define INSTEAD(name) int name(int handle, int command, ...) { va_list rest; va_start(rest, command); \
    void *given = va_arg(rest, void *); va_end(rest); return call(#name, handle, command, given); }
INSTEAD(fcntl)
INSTEAD(fcntl64)
"""

ATTEMPTS = """
import sys
from consenso.errors import ConsensoError
from consenso.privacy.events import Pure
from consenso.privacy.ledger import Budget, Ledger, Scope
scope = Scope(observer="public", unit="record", adjacency="replace-one")
budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
for attempt in (
    lambda: Ledger.open(sys.argv[1]).reserve("run", {scope: Pure(0.5)}, what="w"),
    lambda: Ledger.create(sys.argv[1] + ".new", dataset="x", budgets=[budget]),
):
    try:
        attempt()
        print("done")
    except ConsensoError as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", dataset="x", budgets=[BUDGET])


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("locks are replaced by a library that a C compiler makes, on Linux")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM, encoding="ascii")
    library = folder / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "shim.c", "-ldl"], check=True)
    return library


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (0, "a second lock on one file was granted"),
        (errno.ENOLCK, os.strerror(errno.ENOLCK)),
    ],
    ids=["granted to everybody", "none available"],
)
def test_without_locks_nothing_is_charged_or_made(ledger: Ledger, shim: Path, code: int, why: str) -> None:
    """With locks that are granted to everybody two processes would each have been charged the whole budget."""
    given = {**os.environ, "LD_PRELOAD": str(shim), "LOCK_ERRNO": str(code)}
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPTS, ledger.path],
        env=given,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    first, second = done.stdout.splitlines()
    for said in (first, second):
        assert said.startswith("BudgetError")
        assert f"locks do not work on its file system ({why})" in said
        assert "nothing was charged" in said
    assert (len(ledger.rows()), ledger.verify().fault) == (1, None)
    left = {file.name for file in ledger.path.parent.iterdir()}
    assert left <= {f"a.ledger{end}" for end in ("", ".head", "-wal", "-shm")}


def test_where_only_processes_have_locks_another_process_is_asked(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_keeps_openings_apart", lambda first, name: None)
    monkeypatch.setattr(locks, "_apart", {})
    ledger.reserve("run", {SCOPE: Pure(0.5)}, what="w")
    monkeypatch.setattr(locks, "_SECOND", "")
    monkeypatch.setattr(locks, "_apart", {})
    with pytest.raises(BudgetError, match="a second lock on one file was granted"):
        ledger.reserve("another", {SCOPE: Pure(0.5)}, what="w")
