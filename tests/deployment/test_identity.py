"""What a run is called, and to which ledger it is charged."""

from __future__ import annotations

from pathlib import Path

import pytest

from consenso.deployment import identity
from consenso.deployment.identity import disk_of, guard_of, read_addresses, run_of
from consenso.errors import InputError, PrivacyError
from consenso.privacy.ledger import Budget, Ledger
from consenso.study import Study


def study_of(made, **changes) -> Study:
    return Study.load(made.folder / "study.toml").change(changes)


def test_a_run_is_its_study_its_version_and_its_label(federation, monkeypatch):
    made = federation()
    study = study_of(made)
    known = run_of(study, "1")
    assert len(known) == 64
    assert run_of(study_of(made), "1") == known
    assert run_of(study_of(made, title="Another title"), "1") == known
    assert run_of(study, "2") != known
    assert run_of(study_of(made, **{"privacy.multiplier": 1.999}), "1") != known
    monkeypatch.setattr(identity, "__version__", "9.9.9")
    assert run_of(study, "1") != known


def ledger_of(folder: Path) -> Path:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1000.0, delta=1e-5)
    return Ledger.create(folder / "own.ledger", dataset="own", budgets=[budget]).path


def test_a_folder_that_was_lost_is_charged_again(federation, tmp_path):
    study = study_of(federation(), **{"privacy.seed": None, "setting.rounds": 2})
    ledger = ledger_of(tmp_path)

    def reserved(folder: str) -> int:
        disk = disk_of(study, tmp_path / folder, owner="ash", label="1")
        guard_of(study, disk, ledger, label="1").open()
        disk.close()
        return len(Ledger.open(ledger).runs())

    assert [reserved("state"), reserved("state"), reserved("anew")] == [1, 1, 2]


def test_a_party_without_a_ledger_does_not_release_anything(federation, tmp_path):
    made = federation()
    study = study_of(made, **{"privacy.seed": None})
    disk = disk_of(study, tmp_path / "state", owner="ash", label="1")
    with pytest.raises(PrivacyError, match="--ledger"):
        guard_of(study, disk, None, label="1")
    with pytest.raises(PrivacyError, match="simulation"):
        guard_of(study_of(made), disk, ledger_of(tmp_path), label="1")
    named = study_of(made, **{"privacy.seed": None, "privacy.ledger": str(tmp_path / "own.ledger")})
    assert guard_of(named, disk, None, label="1") is not None
    disk.close()


@pytest.mark.parametrize(
    "text", ["ash = 1", 'oak = "h:1"', "ash = ", "\udce4".encode("utf-8", "surrogateescape").decode("latin-1") + "="]
)
def test_addresses_that_cannot_be_understood_are_refused(tmp_path, text):
    (tmp_path / "addresses.toml").write_text(text)
    with pytest.raises(InputError, match=r"addresses\.toml"):
        read_addresses(tmp_path / "addresses.toml", {0: "ash"})


def test_addresses_are_by_number(tmp_path):
    (tmp_path / "addresses.toml").write_text('birch = "h:2"\nash = "h:1"\n')
    assert read_addresses(tmp_path / "addresses.toml", {0: "ash", 1: "birch"}) == {0: "h:1", 1: "h:2"}
    with pytest.raises(InputError, match="is needed"):
        read_addresses(tmp_path / "nowhere.toml", {0: "ash"})
