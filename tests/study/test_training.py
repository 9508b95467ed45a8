"""The folder of a run: what is in it, what must not be, and how a run that was stopped goes on."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.study.people import SCHEMA as PEOPLE
from tests.study.people import write_people

from consenso.engine.checkpoint import Checkpoint
from consenso.errors import InputError
from consenso.models import load_model
from consenso.privacy.ledger import Budget, Ledger
from consenso.study import Study
from consenso.study.folder import RunFolder
from consenso.study.training import is_covered, train
from consenso.study.verification import folder_faults

TABLES: dict[str, Any] = {
    "data": {"table": "table.csv", "schema": "schema.toml", "rows": 30},
    "model": {"loss": "logistic", "regularizer": {"kind": "l2", "strength": 0.5}},
    "privacy": {"epsilon": 3.0, "delta": 1e-4, "seed": 1},
    "setting": {"kind": "central", "algorithm": "DP-SGD", "rounds": 12},
    "output": {"checkpoint": 4},
}
HIDDEN: dict[str, Any] = {
    "kind": "federated",
    "algorithm": "000-3",
    "rounds": 6,
    "parameters": {"step": 0.5},
    "split": {"kind": "equal", "parties": 6},
}


def study_of(folder: Path, **changes: Any) -> Study:
    study = Study.from_tables(TABLES, folder=folder)
    return study.change({key.replace("__", "."): value for key, value in changes.items()})


def test_a_trace_is_kept_only_where_a_guarantee_covers_it(table: Path) -> None:
    seen = study_of(table)
    assert is_covered(seen, seen.plan())
    train(seen, table / "seen")
    trace = json.loads((table / "seen" / "trace.json").read_text())
    assert len(trace["columns"]["model movement"]) == trace["rounds run"] == 12
    # The last mean hides more than the messages of all rounds do.
    hidden = study_of(table, setting=HIDDEN, privacy__unit="party", privacy__observer="public")
    assert not is_covered(hidden, hidden.plan())
    train(hidden, table / "hidden")
    trace = json.loads((table / "hidden" / "trace.json").read_text())
    assert (trace["columns"], trace["traced"]) == ({}, False)
    untraced = train(study_of(table, output__trace=False), table / "untraced")
    assert json.loads((untraced.folder / "trace.json").read_text())["columns"] == {}


def test_without_a_public_test_file_there_are_no_metrics(table: Path) -> None:
    found = train(study_of(table), table / "run")
    assert found.metrics is None
    assert not (table / "run" / "metrics.json").exists()
    assert not list(folder_faults(table / "run"))


def test_neighbouring_tables_leave_the_same_files_but_for_what_the_noise_covers(table: Path) -> None:
    train(study_of(table), table / "one")
    lines = (table / "table.csv").read_text().splitlines()
    (table / "table.csv").write_text("\n".join([*lines[:-1], "99.0,1.99,yes,no"]) + "\n")
    train(study_of(table), table / "two")
    names = {path.name for path in (table / "one").iterdir()}
    assert names == {path.name for path in (table / "two").iterdir()}
    covered = {"trace.json": "columns", "status.json": "movement"}
    for name in names - {"model.json", *covered}:
        assert (table / "one" / name).read_bytes() == (table / "two" / name).read_bytes()
    for name, noisy in covered.items():
        one, two = (json.loads((table / run / name).read_text()) for run in ("one", "two"))
        assert one.pop(noisy) != two.pop(noisy)
        assert one == two


def test_the_status_shows_no_movement_that_no_guarantee_covers(table: Path) -> None:
    hidden = study_of(table, setting=HIDDEN, privacy__unit="party", privacy__observer="public")
    train(hidden, table / "hidden")
    assert json.loads((table / "hidden" / "status.json").read_text())["movement"] == []


def test_stopped_at_any_checkpoint_a_seeded_run_ends_the_same(table: Path) -> None:
    whole = train(study_of(table), table / "whole").model
    for rounds in (4, 8):
        out = table / f"parts-{rounds}"
        done: list[int] = []
        with pytest.raises(KeyboardInterrupt):
            train(
                study_of(table),
                out,
                progress=lambda now, _, done=done: done.append(now),
                stop=lambda rounds=rounds, done=done: bool(done) and done[-1] >= rounds,
            )
        assert done[-1] == rounds
        assert stat.S_IMODE((out / "checkpoint").stat().st_mode) == 0o700
        parts = train(study_of(table), out, resume=True).model
        np.testing.assert_array_equal(parts.coefficients, whole.coefficients)
        assert RunFolder(path=out).complete


def test_resume_refuses_another_study_and_a_complete_run(table: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(study_of(table), table / "run", stop=_after_reading())
    with pytest.raises(InputError, match="belongs to another study"):
        train(study_of(table, privacy__epsilon=4.0), table / "run", resume=True)
    train(study_of(table), table / "run", resume=True)
    with pytest.raises(InputError, match="complete"):
        train(study_of(table), table / "run", resume=True)


def _after_reading() -> Any:
    asked = iter([False])
    return lambda: next(asked, True)


def test_stopped_before_anything_is_read_leaves_nothing(table: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(study_of(table), table / "run", stop=lambda: True)
    assert not (table / "run").exists()


def _ledger(folder: Path) -> Ledger:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=4.0, delta=1e-4)
    return Ledger.create(folder / "budget.ledger", dataset="people", budgets=[budget])


def test_a_run_that_failed_before_anything_was_released_starts_anew(table: Path, monkeypatch: Any) -> None:
    ledger = _ledger(table)
    study = study_of(table, privacy__seed=None, privacy__ledger="budget.ledger")
    with monkeypatch.context() as broken:
        broken.setattr(Checkpoint, "begin", _failing)
        with pytest.raises(OSError, match="disk"):
            train(study, table / "run")
    assert [run.state for run in ledger.runs()] == ["released"]
    train(study, table / "run", resume=True)
    assert [run.state for run in ledger.runs()] == ["released", "committed"]
    assert ledger.balances()[0].spent == pytest.approx(3.0, rel=1e-3)


def _failing(*arguments: Any) -> None:
    raise OSError("the disk is gone")


def test_a_run_that_was_charged_and_lost_its_model_is_not_charged_again(table: Path, monkeypatch: Any) -> None:
    ledger = _ledger(table)
    study = study_of(table, privacy__seed=None, privacy__ledger="budget.ledger", output__checkpoint=5)
    with monkeypatch.context() as broken:
        broken.setattr("consenso.study.training.save_model", _failing)
        with pytest.raises(OSError, match="disk"):
            train(study, table / "run")
    assert [run.state for run in ledger.runs()] == ["committed"]
    rows = ledger.head().count
    train(study, table / "run", resume=True)
    assert ledger.head().count == rows
    assert load_model(table / "run").card is not None


def test_people_with_several_records_in_a_central_study(tmp_path) -> None:
    stays = [(30 + number, f"patient-{number % 20}", number % 2 == 1) for number in range(50)]
    write_people(tmp_path / "table.csv", stays)
    text = """
[data]
table = "table.csv"
schema = "schema.toml"
rows = 20
[model]
loss = "logistic"
regularizer = {kind = "l2", strength = 0.1}
[privacy]
epsilon = 1.0
delta = 1e-5
unit = "person"
seed = 0
[setting]
kind = "central"
"""
    (tmp_path / "study.toml").write_text(text)
    study = Study.load(tmp_path / "study.toml")
    trained = train(study, tmp_path / "out")
    card = trained.card
    assert {entry.unit for entry in card.entries} == {"person"}
    assert "patient-" not in (tmp_path / "out" / "card.json").read_text()
    (tmp_path / "study.toml").write_text(text.replace("rows = 20", "rows = 50"))
    with pytest.raises(InputError, match="50 people are declared"):
        train(Study.load(tmp_path / "study.toml"), tmp_path / "other")
    (tmp_path / "schema.toml").write_text(PEOPLE.replace('"user"', '"ignore"'))
    with pytest.raises(InputError, match='kind = "user"'):
        Study.load(tmp_path / "study.toml")


def test_a_model_file_has_standard_errors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cells = rng.uniform(-1, 1, size=(1500, 2))
    y = cells @ [1.0, -0.5] + 0.3 * rng.normal(size=1500)
    lines = [f"{a:.6f},{b:.6f},{c:.6f}" for (a, b), c in zip(cells, y, strict=True)]
    (tmp_path / "table.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    column = "kind = 'numeric'\nlow = -1\nhigh = 1\nmissing = 'middle'\n"
    (tmp_path / "schema.toml").write_text(
        f"intercept = true\n[columns.a]\n{column}[columns.b]\n{column}"
        "[columns.y]\nkind = 'target'\nlow = -3\nhigh = 3\n"
    )
    tables = {
        "data": {"table": "table.csv", "schema": "schema.toml", "rows": 1500},
        "model": {"loss": "squared"},
        "privacy": {"epsilon": 2.0, "delta": 1e-5, "seed": 1},
        "setting": {"kind": "central", "algorithm": "auto"},
    }
    trained = train(Study.from_tables(tables, folder=tmp_path), tmp_path / "run")
    read = load_model(tmp_path / "run")
    assert read.standard_errors is not None
    assert read.estimates is not None
    assert (read.standard_errors == trained.model.standard_errors).all()
    # The ratio does not depend on the units of features; a tenth is five of its standard errors.
    assert read.estimates[1] / read.estimates[0] == pytest.approx(-0.5, abs=0.1)
    assert (read.standard_errors[:2] < 0.1 * np.abs(read.estimates[0])).all()


STUDY_OF_PEOPLE = """
[data]
schema = "schema.toml"
{data}
[model]
loss = "logistic"
regularizer = {{kind = "l2", strength = 0.1}}
[privacy]
epsilon = 1.0
delta = 1e-5
unit = "person"
seed = 0
[setting]
kind = "federated"
trust = "secure-sum"
{parties}
"""


def _write_people(folder: Path, data: str, parties: str) -> Study:
    (folder / "study.toml").write_text(STUDY_OF_PEOPLE.format(data=data, parties=parties))
    return Study.load(folder / "study.toml")


def _write_stays(table: Path, people: range) -> None:
    write_people(table, [(30 + person + stay, f"p{person}", person % 2 == 1) for person in people for stay in range(3)])


def test_people_of_several_hospitals(tmp_path) -> None:
    _write_stays(tmp_path / "north.csv", range(20))
    _write_stays(tmp_path / "south.csv", range(20, 50))
    tables = '[data.tables]\nnorth = "north.csv"\nsouth = "south.csv"'
    study = _write_people(tmp_path, tables, "[setting.parties]\nnorth = 20\nsouth = 30")
    trained = train(study, tmp_path / "out")
    assert {entry.unit for entry in trained.card.entries} == {"person"}
    assert "one party holds them" in (tmp_path / "out" / "card.json").read_text()
    # What a party brings alone is its part of the whole.
    whole, alone = study.shards(), study.party_shards("south")
    np.testing.assert_array_equal(whole._weights[60:], alone._weights)
    # The same people in one table learn the same: sums do not know who holds whom.
    _write_stays(tmp_path / "all.csv", range(50))
    one = replace_setting(tmp_path, "all.csv")
    assert train(one, tmp_path / "central").model.features == trained.model.features
    wrong = _write_people(tmp_path, tables, "[setting.parties]\nnorth = 21\nsouth = 30")
    with pytest.raises(InputError, match="north: 21 people are declared"):
        train(wrong, tmp_path / "wrong")


def replace_setting(folder: Path, table: str) -> Study:
    text = STUDY_OF_PEOPLE.format(data=f'table = "{table}"\nrows = 50', parties="")
    text = text.replace('kind = "federated"\ntrust = "secure-sum"', 'kind = "central"')
    (folder / "central.toml").write_text(text)
    return Study.load(folder / "central.toml")


@pytest.mark.parametrize("seed", ["", ", seed = 3"])
def test_a_split_keeps_people_whole(tmp_path, seed) -> None:
    _write_stays(tmp_path / "all.csv", range(50))
    split = f'split = {{kind = "equal", parties = 7{seed}}}'
    study = _write_people(tmp_path, 'table = "all.csv"\nrows = 50', split)
    assert study.sizes.tolist() == [7, 7, 7, 7, 7, 7, 8]
    shards = study.shards()
    weights = [study.party_shards(name)._weights for name in study.parties]
    np.testing.assert_array_equal(np.concatenate(weights), shards._weights)
    assert [round(float(each.sum())) for each in weights] == [7, 7, 7, 7, 7, 7, 8], "three rows of a third each"
    with pytest.raises(InputError, match="keeps people whole"):
        _write_people(tmp_path, 'table = "all.csv"\nrows = 50', 'split = {kind = "one-per-record"}')
