"""`consenso study new` and `consenso study check`, run as programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from consenso.study import Study


def test_new_asks_a_few_questions_and_writes_a_study_that_can_be_planned(tmp_path: Path, program: Any) -> None:
    answers = ["digits", "", "0.7", "", "elsewhere", "federated", "12", "curator"]
    made = program("study", "new", "mine.toml", at=tmp_path, typed="\n".join(answers) + "\n")
    assert made.returncode == 0, made.stderr
    assert "'elsewhere': choose one of central, federated, decentralized" in made.stdout
    study = Study.load(tmp_path / "mine.toml")
    assert (study.setting.kind, study.setting.trust, len(study.parties)) == ("federated", "curator", 12)
    assert study.privacy.target is not None
    assert study.privacy.target.limit == 0.7
    assert type(study.model.loss).__name__ == "Softmax"
    checked = program("study", "check", "mine.toml", "--json", at=tmp_path)
    assert json.loads(checked.stdout)["digest"] == study.digest


@pytest.mark.parametrize("setting", ["central", "federated", "decentralized"])
def test_new_with_options_asks_nothing(setting: str, patients: Path, answers: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(patients)
    options = ["--table", "table.csv", "--schema", "schema.toml", "--rows", "200", "--test", "test.csv"]
    code, out, told = answers("study", "new", "new.toml", *options, "--setting", setting, "--seed", "3", "--json")
    assert code == 0, told
    assert json.loads(out)["setting"] == setting
    assert Study.load(patients / "new.toml").simulation
    code, _, told = answers("study", "new", "new.toml", *options, "--defaults")
    assert (code, "the file exists" in told) == (2, True)
    code, out, _ = answers("study", "check", "new.toml")
    assert code == 0
    assert "a sound study" in out


def test_new_says_whether_people_are_protected_where_a_column_says_whose_a_row_is(
    patients: Path, answers: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(patients)
    schema = (patients / "schema.toml").read_text()
    (patients / "schema.toml").write_text(schema + '[columns.who]\nkind = "user"\n')
    options = ["--table", "table.csv", "--schema", "schema.toml", "--rows", "200", "--setting", "central", "--defaults"]
    code, _, told = answers("study", "new", "new.toml", *options)
    assert (code, "'who'" in told, "--unit person" in told) == (2, True, True)
    code, _, told = answers("study", "new", "new.toml", *options, "--unit", "people")
    assert (code, "person" in told) == (2, True)
    for unit, warned in (("person", False), ("record", True)):
        assert answers("study", "new", f"{unit}.toml", *options, "--unit", unit)[0] == 0
        assert Study.load(patients / f"{unit}.toml").privacy.unit == unit
        code, out, _ = answers("plan", f"{unit}.toml")
        assert (code, "not protected" in out) == (0, warned)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--dataset", "digits", "--table", "table.csv"), "--table table.csv: a set of the catalogue has its own"),
        (("--dataset", "digits", "--rows", "10"), "--rows 10: a set of the catalogue has its own"),
        (("--dataset", "digits", "--test", "test.csv"), "--test test.csv: a set of the catalogue has its own"),
        (("--dataset", "digits", "--parties", "0"), "--parties 0: a central setting has one curator"),
        (("--dataset", "digits", "--target-bound", "3"), "--target-bound 3.0: only a catalogued regression takes one"),
        (("--dataset", "diabetes", "--target-bound", "0"), "target_bound"),
    ],
)
def test_new_refuses_options_that_would_say_nothing(
    given: tuple[str, ...], message: str, tmp_path: Path, answers: Any
) -> None:
    code, _, told = answers("study", "new", tmp_path / "new.toml", "--defaults", *given)
    assert (code, message in told) == (2, True)
    assert not (tmp_path / "new.toml").exists()


def test_new_refuses_what_cannot_be_planned_and_writes_nothing(tmp_path: Path, answers: Any) -> None:
    path = tmp_path / "new.toml"
    code, _, told = answers("study", "new", path, "--dataset", "digits", "--loss", "squared", "--defaults")
    assert (code, "multiclass" in told) == (2, True)
    code, _, told = answers("study", "new", path, "--dataset", "california_housing", "--defaults")
    assert (code, "--target-bound" in told) == (2, True)
    code, _, told = answers("study", "new", path, "--table", "t.csv", "--schema", "s.toml", "--defaults")
    assert (code, "--rows" in told) == (2, True)
    code, _, told = answers("study", "new", path, "--dataset", "digits", "--epsilon", "-1", "--defaults")
    assert (code, "privacy.epsilon" in told) == (2, True)
    assert not path.exists()
