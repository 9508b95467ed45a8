"""Damage to a ledger is found and named, up to what only a head pinned elsewhere can show."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from consenso.errors import BudgetError, InputError, TamperError
from consenso.privacy.events import Gaussian
from consenso.privacy.ledger import Budget, Ledger, Scope, verify_file
from consenso.privacy.ledger import store as storage
from consenso.privacy.ledger.chain import canonical, link

PUBLIC = Scope(observer="public", unit="record", adjacency="replace-one")
EVENT = Gaussian(std=400.0, sensitivity=1.0)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Row 0 creates, rows 2k+1 reserve and rows 2k+2 commit run k, for k < 4."""
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    made = Ledger.create(tmp_path / "adult.ledger", dataset="adult", budgets=[budget])
    for number in range(4):
        made.reserve(f"run-{number}", {PUBLIC: EVENT}, what=f"fit number {number}")
        made.commit(f"run-{number}")
    return made


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The file without the triggers that keep honest programs from editing it."""
    connection = sqlite3.connect(path, isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    yield connection
    for _, text in triggers:
        connection.execute(text)
    connection.close()


def edit_a_row(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("UPDATE entries SET content = replace(content, '400.0', '900.0') WHERE number = 3")


def edit_a_row_and_its_hash(path: Path) -> None:
    with opened(path) as connection:
        (before,) = connection.execute("SELECT hash FROM entries WHERE number = 2").fetchone()
        (text,) = connection.execute("SELECT content FROM entries WHERE number = 3").fetchone()
        text = text.replace("400.0", "900.0")
        connection.execute(
            "UPDATE entries SET content = ?, hash = ? WHERE number = 3", (text, link(before, text.encode()))
        )


def delete_in_the_middle(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("DELETE FROM entries WHERE number = 4")


def delete_and_renumber(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("DELETE FROM entries WHERE number = 4")
        for number in range(5, 9):
            connection.execute("UPDATE entries SET number = ? WHERE number = ?", (number - 1, number))


def delete_the_last_row(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("DELETE FROM entries WHERE number = 8")


def truncate_and_move_the_inner_anchor(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("DELETE FROM entries WHERE number > 6")
        (digest,) = connection.execute("SELECT hash FROM entries WHERE number = 6").fetchone()
        connection.execute("UPDATE anchor SET count = 7, hash = ?", (digest,))


def swap_two_rows(path: Path) -> None:
    with opened(path) as connection:
        for source, target in [(3, 99), (5, 3), (99, 5)]:
            connection.execute("UPDATE entries SET number = ? WHERE number = ?", (target, source))


def append_without_the_anchor(path: Path) -> None:
    with opened(path) as connection:
        (before,) = connection.execute("SELECT hash FROM entries WHERE number = 8").fetchone()
        text = canonical({"kind": "release", "time": "now", "run": "run-9", "reason": "none"})
        connection.execute("INSERT INTO entries VALUES (9, ?, ?)", (text, link(before, text.encode())))


@pytest.mark.parametrize(
    ("damage", "row"),
    [
        (edit_a_row, 3),
        (edit_a_row_and_its_hash, 4),
        (delete_in_the_middle, 4),
        (delete_and_renumber, 4),
        (delete_the_last_row, 8),
        (truncate_and_move_the_inner_anchor, 7),
        (swap_two_rows, 3),
        (append_without_the_anchor, 9),
    ],
)
def test_damage_is_found_named_and_stops_the_ledger(ledger: Ledger, damage: Callable[[Path], None], row: int) -> None:
    damage(ledger.path)
    verdict = ledger.verify()
    assert verdict.fault is not None
    assert verdict.fault.row == row
    with pytest.raises(TamperError, match=f"row {row}"):
        ledger.reserve("next", {PUBLIC: EVENT}, what="a fit")
    with pytest.raises(TamperError, match=f"row {row}"):
        Ledger.open(ledger.path)


def test_an_emptied_ledger_is_found(ledger: Ledger) -> None:
    with opened(ledger.path) as connection:
        connection.execute("DELETE FROM entries")
    assert str(ledger.verify().fault) == "row 0: is missing: the ledger is empty"


def test_removed_triggers_are_found(ledger: Ledger) -> None:
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("DROP TRIGGER entries_stay")
    assert "the definition of entries_stay was changed" in str(ledger.verify().fault)


def test_a_ledger_set_back_to_an_old_copy_is_found_by_its_anchor_file(ledger: Ledger, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy(ledger.path, copy)
    ledger.reserve("late", {PUBLIC: EVENT}, what="a fit")
    shutil.copy(copy, ledger.path)
    assert "row 9: is missing" in str(ledger.verify().fault)
    with pytest.raises(TamperError, match="counts 10 rows and the ledger has 9"):
        ledger.reserve("later", {PUBLIC: EVENT}, what="a fit")


def test_a_lost_anchor_file_is_found(ledger: Ledger) -> None:
    storage.anchor_path(ledger.path).unlink()
    assert "(.head) beside the ledger is missing" in str(ledger.verify().fault)


def test_a_damaged_anchor_file_is_found(ledger: Ledger) -> None:
    storage.anchor_path(ledger.path).write_text("not an anchor")
    assert "is not the row that the anchor file (.head) recorded" in str(ledger.verify().fault)


def test_a_crash_before_the_first_anchor_is_no_damage_and_heals(tmp_path: Path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "l", dataset="d", budgets=[budget])
    storage.anchor_path(ledger.path).unlink()
    assert ledger.verify().sound
    ledger.reserve("run", {PUBLIC: EVENT}, what="a fit")
    assert json.loads(storage.anchor_path(ledger.path).read_text())["count"] == 2


def test_an_anchor_file_that_lags_behind_a_crash_is_no_damage_and_catches_up(ledger: Ledger) -> None:
    anchor = storage.anchor_path(ledger.path)
    before = anchor.read_text()
    ledger.reserve("run", {PUBLIC: EVENT}, what="a fit")
    anchor.write_text(before)
    assert ledger.verify().sound
    ledger.commit("run")
    assert json.loads(anchor.read_text())["count"] == 11


def test_a_deleted_ledger_cannot_be_made_anew_in_its_place(ledger: Ledger) -> None:
    ledger.path.unlink()
    with pytest.raises(InputError, match="spending would be forgotten"):
        Ledger.create(ledger.path, dataset="adult", budgets=ledger.budgets)


def rewrite(path: Path, keep: int) -> None:
    """What somebody with full write access and this source code can do: a shorter chain with every anchor moved."""
    truncated = storage.read(path, 10.0).rows[:keep]
    with opened(path) as connection:
        connection.execute("DELETE FROM entries WHERE number >= ?", (keep,))
        connection.execute("UPDATE anchor SET count = ?, hash = ?", (keep, truncated[-1].hash))
    anchor = {"count": keep, "hash": truncated[-1].hash}
    storage.anchor_path(path).write_text(canonical(anchor) + "\n")


def test_only_a_pinned_head_finds_a_forger_with_full_access(ledger: Ledger) -> None:
    pinned = ledger.head().hash
    rewrite(ledger.path, keep=5)
    assert ledger.verify().sound
    assert "is not in the chain" in str(ledger.verify(pinned).fault)


def test_a_pinned_head_stays_valid_while_the_ledger_grows(ledger: Ledger) -> None:
    pinned = ledger.head().hash
    ledger.reserve("more", {PUBLIC: EVENT}, what="a fit")
    assert ledger.verify(pinned).sound
    assert not ledger.verify("0" * 64).sound


def test_rows_that_chain_but_make_no_sense_are_found(ledger: Ledger) -> None:
    charges = json.loads(storage.read(ledger.path, 10.0).rows[1].content)["charges"]
    base = {"time": "now", "run": "run-0"}
    senseless = [
        {"kind": "reserve", "what": "twice", "charges": charges, **base},
        {"kind": "release", "reason": "after the commit", **base},
        {"kind": "commit", "charges": charges, "exceeds": [], "time": "now", "run": "never-reserved"},
        {"kind": "reserve", "what": "nothing charged", "charges": [], "time": "now", "run": "free"},
        {"kind": "create", "dataset": "another", "budgets": [], "time": "now"},
        {"kind": "forgive", **base},
        {"kind": "release", "reason": "none", "extra": 1, **base},
    ]
    for content in senseless:
        folder = ledger.path.parent / content["kind"] / str(len(content))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / str(content.get("run", "none"))
        for ending in ("", ".head"):
            shutil.copy(f"{ledger.path}{ending}", f"{path}{ending}")
        Ledger.open(path).take_over()
        with storage.open_writer(path, 10.0) as writer:
            writer.append(content)
        fault = verify_file(path).fault
        assert fault is not None
        assert fault.row == 9
        with pytest.raises(TamperError):
            Ledger.open(path)


def logical(path: Path) -> object:
    snapshot = storage.read(path, 10.0)
    return snapshot.rows, snapshot.anchor


def flipped(source: Path, folder: Path, position: int, mask: int) -> Path:
    folder.mkdir()
    target = folder / source.name
    damaged = bytearray(source.read_bytes())
    damaged[position] ^= mask
    target.write_bytes(damaged)
    shutil.copy(storage.anchor_path(source), storage.anchor_path(target))
    return target


def test_a_flipped_byte_in_a_row_is_found(ledger: Ledger, tmp_path: Path) -> None:
    stored = ledger.path.read_bytes()
    rows = storage.read(ledger.path, 10.0).rows
    rng = np.random.default_rng(5)
    for row in rows:
        for text in (row.content, row.hash.encode()):
            start = stored.index(text)
            for place in rng.choice(len(text), size=4, replace=False):
                folder = tmp_path / f"{row.number}-{len(text)}-{place}"
                verdict = verify_file(flipped(ledger.path, folder, start + int(place), 1 << int(rng.integers(8))))
                assert verdict.fault is not None
                assert verdict.fault.row in (row.number, None)


def test_a_flipped_byte_anywhere_is_found_or_changes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    size, told = ledger.path.stat().st_size, logical(ledger.path)
    rng = np.random.default_rng(6)
    found = 0
    header = list(range(100))
    for number, position in enumerate([*header, *rng.choice(size, size=200, replace=False)]):
        path = flipped(ledger.path, tmp_path / str(number), int(position), 1 << int(rng.integers(8)))
        if verify_file(path, timeout=0.2).sound:
            assert logical(path) == told
        else:
            found += 1
    assert found > 20  # most of the file is unused space; the rows are in the rest


def test_a_damaged_or_missing_wal_is_found(ledger: Ledger, tmp_path: Path) -> None:
    # An open reader keeps the WAL from being merged, as a crash does; what is in it alone must not be lost unnoticed.
    with contextlib.closing(sqlite3.connect(ledger.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchall()
        ledger.reserve("late", {PUBLIC: EVENT}, what="a fit")
        wal = Path(f"{ledger.path}-wal").read_bytes()
        assert b"late" in wal
        for place, damage in {"flipped": bytes([wal[200] ^ 1]), "cut": b"", "missing": None}.items():
            folder = tmp_path / place
            folder.mkdir()
            target = folder / ledger.path.name
            shutil.copy(ledger.path, target)
            shutil.copy(storage.anchor_path(ledger.path), storage.anchor_path(target))
            if damage is not None:
                Path(f"{target}-wal").write_bytes(wal[:200] + damage + wal[201:] if damage else wal[:200])
            assert "row 9: is missing" in str(verify_file(target).fault)
            with pytest.raises(TamperError):
                Ledger.open(target).reserve("next", {PUBLIC: EVENT}, what="a fit")


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a ledger at all " * 100)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE entries (x)")
    (tmp_path / "empty").touch()
    for name in ("text", "other.db", "empty"):
        with pytest.raises((TamperError, InputError)):
            Ledger.open(tmp_path / name)
        assert not verify_file(tmp_path / name).sound
    with pytest.raises(InputError, match="no such file"):
        verify_file(tmp_path / "none")


def test_a_ledger_that_is_held_too_long_is_given_up_with_nothing_charged(ledger: Ledger) -> None:
    impatient = Ledger.open(ledger.path, timeout=0.1)
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(BudgetError, match="held the ledger for all that time"):
            impatient.reserve("run", {PUBLIC: EVENT}, what="a fit")
        assert len(impatient.runs()) == 4  # readers are not held up
