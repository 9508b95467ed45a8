"""`consenso data`, run as a program."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest
from tests import forks

from consenso.schema import Schema

PEOPLE = "age,job,label\n31,cook,yes\n77,nurse,no\n"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return forks.run("data", *arguments, env={"COLUMNS": "200", "CONSENSO_DATA": None} | environment)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def test_list() -> None:
    answer = run("list")
    assert answer.returncode == 0
    assert "california_housing" in answer.stdout
    assert "30,162" in answer.stdout
    listed = json.loads(run("list", "--json").stdout)
    assert {entry["name"] for entry in listed} >= {"adult", "mnist", "femnist", "a9a", "lasso", "digits"}
    adult = next(entry for entry in listed if entry["name"] == "adult")
    assert (adult["rows"], adult["test_rows"], adult["features"]) == (30_162, 15_060, 104)


def test_describe_without_files(tmp_path: Path) -> None:
    answer = run("describe", "femnist", CONSENSO_CACHE=str(tmp_path))
    assert answer.returncode == 0
    for part in ("15,440", "INCOMPLETE", "89e550271c8af972", "APPFL", "NIST", "not on this machine"):
        assert part in answer.stdout


def test_describe_with_files(data_dir: Path, tmp_path: Path) -> None:
    answer = run("describe", "adult", "--json", CONSENSO_DATA=str(data_dir), CONSENSO_CACHE=str(tmp_path))
    facts = json.loads(answer.stdout)
    assert facts["licence"].startswith("CC BY 4.0")
    files = {entry["name"]: entry for entry in facts["files"]}
    assert files["adult.data.gz"]["path"] == str(data_dir / "adult.data.gz")
    assert files["adult.data"]["path"] is None
    assert files["adult.data"]["url"].startswith("https://archive.ics.uci.edu/")
    assert all(len(entry["sha256"]) == 64 for entry in facts["files"])


def test_describe_an_unknown_set() -> None:
    answer = run("describe", "adlut")
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "did you mean 'adult'?" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_draft_on_standard_output(people: Path) -> None:
    answer = run("draft-schema", str(people))
    assert answer.returncode == 0
    assert answer.stdout.startswith("# DRAFT, NOT PUBLIC")
    schema = Schema.parse(answer.stdout)
    assert schema.draft
    assert [column.kind for column in schema.columns] == ["numeric", "category", "label"]
    facts = json.loads(run("draft-schema", str(people), "--json").stdout)
    assert facts["columns"] == {"age": "numeric", "job": "category", "label": "label"}
    assert facts["schema"] == answer.stdout


def test_draft_into_a_file(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "schema.toml"
    answer = run("draft-schema", str(people), "--out", str(out))
    assert answer.returncode == 0
    assert "replace its ranges" in answer.stdout
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert Schema.load(out).draft
    written = out.read_text()
    # What a person may have corrected is not overwritten.
    again = run("draft-schema", str(people), "--out", str(out))
    assert again.returncode == 2
    assert "the file exists" in again.stderr
    assert out.read_text() == written
    facts = json.loads(run("draft-schema", str(people), "--json", "--out", str(tmp_path / "new.toml")).stdout)
    assert facts["out"] == str(tmp_path / "new.toml")
    assert "schema" not in facts
    nowhere = run("draft-schema", str(people), "--out", str(tmp_path / "no" / "s.toml"))
    assert nowhere.returncode == 2
    assert "cannot be written" in nowhere.stderr


def test_draft_of_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("a,b\n1,s3cr3t,3\n")
    answer = run("draft-schema", str(path))
    assert answer.returncode == 2
    assert "line 2: a record has 2 cells, and 3 were found" in answer.stderr
    assert "s3cr3t" not in answer.stderr + answer.stdout
    assert "Traceback" not in answer.stderr
