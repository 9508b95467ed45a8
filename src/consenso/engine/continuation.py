"""One live continuation per run: copies of a stopped run, and older states of it, are refused.

A state on disk holds two tokens, that of the state before it and its own. When it is stored, its own token replaces the
one before it in the ledger, which is no part of the state, and only then may anything of the state be sent. So:

* A crash between storing and replacing leaves the token before it in the ledger: nothing was sent, the state goes on.
* A copy finds another token in the ledger as soon as somebody went on from the same state, and sends nothing.
* An older state finds a later token.

A run with private noise and without a ledger keeps its token in a folder of its user on this machine instead.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy.ledger.tokens import read_token, replace_token, stale
from consenso.privacy.noise import NoNoise

STATE = "CONSENSO_STATE"
LIVE = "live"  # the name of the tokens on a disk

Held = Mapping[str, str | None]  # the tokens of a state: "before" and "now"


class Tokens(Protocol):
    """Where tokens are: a ledger, or the folder of a user."""

    def token(self, run_id: str, /) -> str | None:
        """The token of a run; None before its first one."""
        ...

    def replace_token(self, run_id: str, /, *, before: str | None, now: str) -> None:
        """Replace it, on the disk when the call returns; PrivacyError if `before` is not there."""
        ...


class Continuation:
    """The tokens of one owner's state in one run.

    `held` is what the state on disk says, None for a new run. Without `tokens` there is nothing to guard: noise that
    can be drawn again protects nobody.
    """

    def __init__(self, tokens: Tokens | None, run: str, held: Held | None) -> None:
        self._tokens, self._run = tokens, run
        self._held: Held = held or {"before": None, "now": None}
        self._opened, self._replaced = False, False
        self.fresh = held is None
        if tokens is not None and tokens.token(run) not in self._held.values():
            raise stale(run)

    def open(self, store: Callable[[Held], None]) -> None:
        """Become the one continuation, before the first draw; `store` keeps the new tokens with the state.

        Calling it again raises unless what was stored last may be sent.
        """
        if self._tokens is None:
            return
        if self._opened:
            self._confirm(self._held)
            return
        if self._tokens.token(self._run) != self._held["now"]:
            # The state was stored, and the process ended before it could say so.
            self._confirm(self._held)
        self.store(store)
        self._opened = True

    def store(self, store: Callable[[Held], None]) -> None:
        """Have a state stored with new tokens, in one transaction; when this returns, what follows may be sent."""
        held: Held = {"before": self._held["now"], "now": secrets.token_hex(16)}
        store(held)
        self._confirm(held)

    def _confirm(self, stored: Held) -> None:
        """Raise unless the state that was stored is the one that goes on."""
        if stored != self._held:
            self._held, self._replaced = stored, False
        if self._tokens is None or self._replaced:
            return
        now = stored["now"]
        assert now is not None
        self._tokens.replace_token(self._run, before=stored["before"], now=now)
        self._replaced = True


class UserTokens:
    """Tokens of runs without a ledger, in one file of this user on this machine."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or state_folder()

    def token(self, run_id: str, /) -> str | None:
        """The token of a run."""
        with self._connect() as connection:
            return read_token(connection, run_id)

    def replace_token(self, run_id: str, /, *, before: str | None, now: str) -> None:
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                replace_token(connection, run_id, before=before, now=now)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        file = self.folder / "tokens.sqlite"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            with contextlib.closing(sqlite3.connect(file, timeout=60.0, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"{self.folder}: a run without a ledger keeps there which of its copies may go on, and it cannot be "
                f"used ({type(error).__name__}); name a folder outside of all runs in {STATE}, or charge a ledger."
            ) from error


def state_folder() -> Path:
    """$CONSENSO_STATE, else the folder in which programs of this user keep their state."""
    named = os.environ.get(STATE)
    if named:
        return Path(named)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "consenso"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "consenso"


def draws_private_noise(plan: Plan) -> bool:
    """Whether a second draw would tell more than the first: not where noise is seeded, and not where there is none."""
    return plan.sampler.private and not all(isinstance(noise, NoNoise) for noise in plan.noise.values())
