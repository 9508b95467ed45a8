"""One host writes to a ledger; a copy elsewhere is read and verified, and charges nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from consenso.errors import BudgetError, InputError, PrivacyError
from consenso.privacy.events import Gaussian
from consenso.privacy.ledger import Budget, Ledger, Scope
from consenso.privacy.ledger.lease import Place, this_host

COST = {Scope(observer="public", unit="record", adjacency="replace-one"): Gaussian(std=40.0, sensitivity=1.0)}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("CONSENSO_HOST", "old")
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    return Ledger.create(tmp_path / "a.ledger", dataset="d", budgets=[budget])


def copy_of(ledger: Ledger, name: str) -> Ledger:
    target = ledger.path.with_name(name)
    for end in ("", ".head", "-wal"):
        source = ledger.path.with_name(ledger.path.name + end)
        if source.exists():
            shutil.copy(source, target.with_name(target.name + end))
    return Ledger.open(target)


def test_a_copy_on_another_host_spends_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.reserve("here", COST, what="w")
    copy = copy_of(ledger, "copy.ledger")
    monkeypatch.setenv("CONSENSO_HOST", "new")
    head = copy.head()
    for write in (
        lambda: copy.reserve("there", COST, what="w"),
        lambda: copy.commit("here"),
        lambda: copy.release("here", nothing_was_released=True, reason="r"),
        lambda: copy.replace_token("here", before=None, now="t"),
        lambda: copy.hand_over("new"),
    ):
        with pytest.raises(BudgetError, match="'old' writes to this ledger and this host is 'new'"):
            write()
    assert copy.head() == head
    assert copy.verify().sound
    assert copy.token("here") is None


def test_a_ledger_that_is_handed_over_is_written_there_and_no_more_here(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.hand_over("new")
    moved = copy_of(ledger, "moved.ledger")
    with pytest.raises(BudgetError, match="'new' writes"):
        ledger.reserve("here", COST, what="w")
    monkeypatch.setenv("CONSENSO_HOST", "new")
    moved.reserve("there", COST, what="w")
    assert moved.verify().sound


def test_taking_over_is_a_statement_of_whoever_does_it(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = copy_of(ledger, "copy.ledger")
    monkeypatch.setenv("CONSENSO_HOST", "new")
    copy.take_over()
    copy.reserve("there", COST, what="w")
    assert copy.holder() == "new"


def test_a_ledger_without_a_host_belongs_to_the_first_that_writes(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    with sqlite3.connect(ledger.path) as connection:
        connection.execute("DROP TABLE lease")
    connection.close()
    assert ledger.holder() is None
    monkeypatch.setenv("CONSENSO_HOST", "first")
    ledger.reserve("r", COST, what="w")
    assert ledger.holder() == "first"


def test_a_copy_on_the_same_host_spends_nothing_until_it_is_taken_over(ledger: Ledger) -> None:
    ledger.reserve("one", COST, what="w")
    copy = copy_of(ledger, "copy.ledger")
    head = copy.head()
    for write in (
        lambda: copy.reserve("two", COST, what="w"),
        lambda: copy.commit("one"),
        lambda: copy.release("one", nothing_was_released=True, reason="r"),
        lambda: copy.replace_token("one", before=None, now="t"),
        lambda: copy.hand_over("old"),
        lambda: copy.hand_over("new"),
    ):
        with pytest.raises(BudgetError, match=r"copy of the ledger '.*a\.ledger'.*--take-over"):
            write()
    assert copy.head() == head
    assert copy.verify().sound
    ledger.reserve("two", COST, what="w")
    copy.take_over()
    copy.reserve("three", COST, what="w")
    assert copy.place() == str(copy.path)


def test_a_ledger_that_is_moved_on_its_disk_goes_on(ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    folder.mkdir()
    for file in tmp_path.glob("a.ledger*"):
        file.rename(folder / file.name)
    moved = Ledger.open(folder / "a.ledger")
    moved.reserve("one", COST, what="w")
    assert moved.place() == str(moved.path)


def test_handing_over_to_this_host_lets_no_copy_write(ledger: Ledger) -> None:
    ledger.hand_over("old")
    copy = copy_of(ledger, "copy.ledger")
    with pytest.raises(BudgetError, match="copy of the ledger"):
        copy.reserve("one", COST, what="w")
    ledger.reserve("one", COST, what="w")


def test_a_ledger_that_was_made_before_files_were_noted_is_the_first_that_writes(ledger: Ledger) -> None:
    import sqlite3

    with sqlite3.connect(ledger.path) as connection:
        connection.execute("DROP TABLE place")
    connection.close()
    assert ledger.place() is None
    ledger.reserve("one", COST, what="w")
    with pytest.raises(BudgetError, match="copy of the ledger"):
        copy_of(ledger, "copy.ledger").reserve("two", COST, what="w")


@pytest.mark.parametrize(
    ("file", "device", "path", "same"),
    [("1", "2", "b", True), ("1", "3", "a", True), ("1", "3", "b", False), ("9", "2", "a", False)],
    ids=["renamed", "device numbered anew", "on another disk", "another file in its place"],
)
def test_which_files_are_one(file: str, device: str, path: str, same: bool) -> None:
    assert Place("1", "2", "a").is_same(Place(file, device, path)) is same


def test_a_host_has_a_name_without_being_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSENSO_HOST", raising=False)
    assert this_host() == this_host() != ""
    monkeypatch.setenv("CONSENSO_HOST", "x" * 300)
    with pytest.raises(InputError, match="at most 200"):
        this_host()


def test_a_token_is_replaced_by_whoever_holds_it(ledger: Ledger) -> None:
    ledger.replace_token("r", before=None, now="1")
    for held in (None, "0"):
        with pytest.raises(PrivacyError, match="another copy"):
            ledger.replace_token("r", before=held, now="2")
    ledger.replace_token("r", before="1", now="2")
    ledger.replace_token("other", before=None, now="1")
    assert (ledger.token("r"), ledger.token("other"), ledger.token("none")) == ("2", "1", None)
    assert ledger.verify().sound
