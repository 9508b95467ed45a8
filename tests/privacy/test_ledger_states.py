"""The ledger against a reference of a few lines, in any order of calls, crashes, copies, clocks and full disks."""

from __future__ import annotations

import datetime
import errno
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from consenso.errors import BudgetError, PrivacyError, TamperError
from consenso.privacy.accountants import epsilon
from consenso.privacy.events import Gaussian, repeat
from consenso.privacy.ledger import Budget, Ledger, Scope
from consenso.privacy.ledger.costs import GAUSSIAN_SHARE
from consenso.testing.planted.misuses import copy_files

SMALL, DELTA, LIMIT = Gaussian(std=8.0, sensitivity=1.0), 1e-5, 2.0
PUBLIC = Scope(observer="public", unit="record", adjacency="replace-one")
NAMES, COUNTS = st.sampled_from("abcdef"), st.integers(1, 4)


def cost(count: int) -> dict:
    return {PUBLIC: repeat(SMALL, count)}


SEVERAL = GAUSSIAN_SHARE * DELTA  # of Gaussian runs, where there are several
# A run is so many small Gaussians: a period is overspent exactly when it holds more of them than this.
MOST = max(count for count in range(1, 40) if epsilon(repeat(SMALL, count), SEVERAL) <= LIMIT)


class LedgerMachine(RuleBasedStateMachine):
    """The reference: runs as [period, count, state], and what a period may hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ledger-"))
        self.runs: dict[str, list] = {}
        self.tokens: dict[str, str] = {}
        self.now = datetime.datetime(2030, 1, 15, tzinfo=datetime.UTC)
        self.patches = [
            mock.patch.dict(os.environ, {"CONSENSO_HOST": "here"}),
            mock.patch("consenso.privacy.ledger.book._now", side_effect=lambda: self.now.isoformat(timespec="seconds")),
        ]
        for patch in self.patches:
            patch.start()

    @initialize(renews=st.sampled_from([None, "month"]))
    def create(self, renews) -> None:
        budget = Budget(
            observer="public", unit="record", adjacency="replace-one", epsilon=LIMIT, delta=DELTA, renews=renews
        )
        self.renews = renews
        self.ledger = Ledger.create(self.folder / "a.ledger", dataset="d", budgets=[budget])

    # --- the reference ---

    def period(self) -> str:
        months = [self.now.isoformat()[:7], *(run[0] for run in self.runs.values())]
        return max(months) if self.renews else ""

    def held(self) -> int:
        return sum(self.counts())

    def counts(self) -> list[int]:
        period = self.period()
        return [run[1] for run in self.runs.values() if run[2] != "released" and run[0] == period]

    # --- what people do ---

    @rule(name=NAMES, count=COUNTS)
    def reserve(self, name: str, count: int) -> None:
        known = self.runs.get(name)
        fits = known is None and self.held() + count <= MOST
        resumed = known is not None and known[1:] == [count, "reserved"]
        if fits or resumed:
            self.ledger.reserve(name, cost(count), what="w")
            if fits:
                self.runs[name] = [self.period(), count, "reserved"]
        else:
            with pytest.raises(BudgetError):
                self.ledger.reserve(name, cost(count), what="w")

    @rule(name=NAMES, spent=COUNTS)
    def commit(self, name: str, spent: int) -> None:
        run = self.runs.get(name)
        if run is not None and run[2] == "reserved" and spent <= run[1]:
            self.ledger.commit(name, cost(spent))
            self.runs[name] = [run[0], spent, "committed"]
        elif run is not None and run[2] == "reserved":
            with pytest.raises(BudgetError, match="spent more"):
                self.ledger.commit(name, cost(spent))
            self.runs[name] = [run[0], spent, "committed, too much"]
        elif run is not None and run[1:] == [spent, "committed"]:
            self.ledger.commit(name, cost(spent))
        else:
            with pytest.raises(BudgetError):
                self.ledger.commit(name, cost(spent))

    @rule(name=NAMES)
    def release(self, name: str) -> None:
        run = self.runs.get(name)
        if run is not None and run[2] in ("reserved", "released"):
            self.ledger.release(name, nothing_was_released=True, reason="r")
            run[2] = "released"
        else:
            with pytest.raises(BudgetError):
                self.ledger.release(name, nothing_was_released=True, reason="r")

    @rule(name=NAMES, fresh=st.booleans(), number=st.integers(0, 10**6))
    def resume(self, name: str, fresh: bool, number: int) -> None:
        """The copy that holds the last token goes on; one that holds an older one does not."""
        held = self.tokens.get(name)
        if fresh:
            self.ledger.replace_token(name, before=held, now=f"{number}")
            self.tokens[name] = f"{number}"
        else:
            with pytest.raises(PrivacyError):
                self.ledger.replace_token(name, before="of an older state", now=f"{number}")

    # --- what happens to people ---

    @rule(days=st.integers(-70, 70))
    def jump_the_clock(self, days: int) -> None:
        self.now += datetime.timedelta(days=days)

    @precondition(lambda self: "g" not in self.runs and self.held() < MOST)
    @rule()
    def crash_before_the_row_is_stored(self) -> None:
        full = sqlite3.OperationalError("database or disk is full")
        with (
            mock.patch("consenso.privacy.ledger.store.Writer.append", side_effect=full),
            pytest.raises(BudgetError, match="cannot be written"),
        ):
            self.ledger.reserve("g", cost(1), what="w")

    @precondition(lambda self: "g" not in self.runs and self.held() < MOST)
    @rule()
    def crash_or_full_disk_before_the_anchor_is_moved(self) -> None:
        """The row is on disk: not acknowledged, and charged."""
        full = OSError(errno.ENOSPC, "no space left on device")
        with (
            mock.patch("consenso.privacy.ledger.store.write_anchor", side_effect=full),
            pytest.raises(BudgetError, match="stored and counts"),
        ):
            self.ledger.reserve("g", cost(1), what="w")
        self.runs["g"] = [self.period(), 1, "reserved"]

    @rule()
    def spend_a_copy_on_another_host(self) -> None:
        copy_files(self.ledger.path, self.folder / "copy.ledger")
        with mock.patch.dict(os.environ, {"CONSENSO_HOST": "there"}), pytest.raises(BudgetError, match="this host is"):
            Ledger.open(self.folder / "copy.ledger").reserve("z", cost(1), what="w")

    @precondition(lambda self: self.held() < MOST)
    @rule()
    def spend_a_copy_on_this_host(self) -> None:
        copy = self.folder / "copy.ledger"
        copy_files(self.ledger.path, copy)
        for write in (
            lambda: Ledger.open(copy).reserve("z", cost(1), what="w"),
            lambda: Ledger.open(copy).replace_token("a", before=self.tokens.get("a"), now="t"),
            lambda: Ledger.open(copy).hand_over("there"),
        ):
            with pytest.raises(BudgetError, match="is a copy of the ledger"):
                write()

    @rule()
    def rename_and_back(self) -> None:
        """The file stays the same, so it may be written to under its new name."""
        for place in (self.folder / "b.ledger", self.folder / "a.ledger"):
            for end in ("", ".head", "-wal", "-shm"):
                source = self.ledger.path.with_name(self.ledger.path.name + end)
                if source.exists():
                    source.rename(place.with_name(place.name + end))
            self.ledger = Ledger.open(place)
            self.ledger.replace_token("renamed", before=self.tokens.get("renamed"), now=place.name)
            self.tokens["renamed"] = place.name

    @rule()
    def restore_the_latest_copy(self) -> None:
        """Another file with the same rows: whoever restored it states that it is the one in use."""
        copy_files(self.ledger.path, self.folder / "true.ledger")
        kept = self.ledger.path.rename(self.folder / "kept")  # so that the restored file gets another number
        self.put(self.folder / "true.ledger", head=True)
        with pytest.raises(BudgetError, match="is a copy of the ledger"):
            self.ledger.replace_token("a", before=self.tokens.get("a"), now="t")
        self.ledger.take_over()
        kept.unlink()

    @rule()
    def hand_over_and_back(self) -> None:
        self.ledger.hand_over("there")
        with pytest.raises(BudgetError, match="this host is"):
            self.ledger.release("a", nothing_was_released=True, reason="r")
        with mock.patch.dict(os.environ, {"CONSENSO_HOST": "there"}):
            self.ledger.hand_over("here")
        # The copy that is written to first, here, is the ledger again.
        self.ledger.replace_token("back", before=self.tokens.get("back"), now="here")
        self.tokens["back"] = "here"

    @precondition(lambda self: "h" not in self.runs and self.held() < MOST)
    @rule()
    def restore_an_old_copy(self) -> None:
        """What was spent since is missing: nothing goes on until the true ledger is back."""
        old, true = self.folder / "old.ledger", self.folder / "true.ledger"
        copy_files(self.ledger.path, old)
        self.ledger.reserve("h", cost(1), what="w")
        self.runs["h"] = [self.period(), 1, "reserved"]
        copy_files(self.ledger.path, true)
        self.put(old, head=False)
        with pytest.raises(TamperError):
            self.ledger.reserve("i", cost(1), what="w")
        self.put(true, head=True)

    def put(self, source: Path, *, head: bool) -> None:
        """Copy over what is there: the file stays the same, what it says does not."""
        for end in ("-wal", "-shm"):
            self.ledger.path.with_name(self.ledger.path.name + end).unlink(missing_ok=True)
        for end in ("", "-wal", *([".head"] if head else [])):
            if source.with_name(source.name + end).exists():
                shutil.copy(
                    source.with_name(source.name + end), self.ledger.path.with_name(self.ledger.path.name + end)
                )

    # --- what holds at all times ---

    @invariant()
    def the_books_are_those_of_the_reference(self) -> None:
        if not hasattr(self, "ledger"):
            return
        again = Ledger.open(self.ledger.path)
        (balance,) = again.balances()
        held = self.held()
        delta = SEVERAL if len(self.counts()) > 1 else DELTA
        assert balance.spent == (epsilon(repeat(SMALL, held), delta) if held else 0.0)
        assert {run.run_id: run.state for run in again.runs()} == {
            name: run[2].partition(",")[0] for name, run in self.runs.items()
        }

    def teardown(self) -> None:
        assert self.ledger.verify().sound
        for patch in self.patches:
            patch.stop()
        shutil.rmtree(self.folder)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(
    max_examples=10, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
