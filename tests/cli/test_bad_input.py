"""Malformed studies and data files: one clear error, exit code 2, no traceback, nothing written and nothing spent."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# What is replaced in the study, and what the error must say.
STUDIES: list[tuple[str, str, str, str]] = [
    ("delta", "delta = 1e-4", "delta = 1.0", "privacy.delta = 1.0: delta lies in (0, 1); a common choice is 1/(10 n)"),
    ("delta text", "delta = 1e-4", 'delta = "1e-4"', "privacy.delta"),
    ("no delta", "delta = 1e-4\n", "", "privacy.delta: an epsilon with Gaussian noise needs a delta"),
    ("epsilon", "epsilon = 2.0", "epsilon = -1", "privacy.epsilon = -1: epsilon is positive"),
    ("two budgets", "epsilon = 2.0", "epsilon = 2.0\nrho = 0.1", "state one of epsilon, rho"),
    ("no budget", "epsilon = 2.0\n", "", "state one of epsilon, rho"),
    ("unknown key", "delta = 1e-4", "delta = 1e-4\nepsilonn = 1", "did you mean 'epsilon'"),
    ("unknown section", "[privacy]", "[privaci]", "did you mean 'privacy'"),
    ("no section", '[setting]\nkind = "central"\n', "", "[setting]: a study has this section"),
    ("not toml", "[data]", "[data", "not TOML"),
    ("loss", '"logistic"', '"logistik"', "did you mean 'logistic'"),
    ("loss of another target", '"logistic"', '"squared"', "regression target"),
    ("loss parameter", '"logistic"', '{kind = "logistic", width = 1}', "has no parameter 'width'"),
    ("regularizer", '"l2", strength', '"l2", stength', "did you mean 'strength'"),
    ("strength", "strength = 0.01", "strength = -3", "strength"),
    ("intercept", "intercept = true", 'intercept = "yes"', "model.intercept"),
    ("rows", "rows = 200", "rows = 0", "data.rows = 0"),
    ("no rows", "rows = 200\n", "", "data.rows: the number of records must be public"),
    ("schema path", '"schema.toml"', '"scheme.toml"', "data.schema"),
    ("no schema", 'schema = "schema.toml"\n', "", "data.dataset"),
    ("dataset", 'table = "table.csv"\nschema = "schema.toml"\nrows = 200', 'dataset = "adlt"', "data.dataset"),
    ("setting", '"central"', '"centrall"', "did you mean 'central'"),
    ("trust", 'kind = "central"', 'kind = "central"\ntrust = "local"', "setting.trust"),
    ("algorithm", 'kind = "central"', 'kind = "central"\nalgorithm = "DP-SDG"', "setting.algorithm"),
    (
        "parameter",
        'kind = "central"',
        'kind = "central"\nalgorithm = "DP-SGD"\nparameters = {stepp = 1.0}',
        "did you mean 'step'",
    ),
    (
        "parameter type",
        'kind = "central"',
        'kind = "central"\nalgorithm = "DP-SGD"\nparameters = {step = "long"}',
        "DPSGD.step",
    ),
    ("rounds", 'kind = "central"', 'kind = "central"\nrounds = "many"', "setting.rounds"),
    ("observer", "delta = 1e-4", 'delta = 1e-4\nobserver = "me"', "privacy.observer"),
    ("server", "delta = 1e-4", 'delta = 1e-4\nobserver = "server"', "a central setting has no server"),
    ("seed and ledger", "delta = 1e-4", "delta = 1e-4\nseed = 1", "privacy.ledger"),
    ("party", "delta = 1e-4", 'delta = 1e-4\nunit = "party"', "privacy.unit"),
    ("no parties", '"central"', '"federated"', "setting.split"),
    (
        "too many parties",
        'kind = "central"',
        'kind = "federated"\nsplit = {kind = "equal", parties = 500}',
        "setting.split.parties",
    ),
    (
        "no graph",
        'kind = "central"',
        'kind = "decentralized"\nsplit = {kind = "equal", parties = 5}',
        "setting.topology",
    ),
    (
        "graph",
        'kind = "central"',
        'kind = "decentralized"\ntopology = {kind = "grid", rows = 2, columns = 2}\n'
        'split = {kind = "equal", parties = 5}',
        "setting.topology",
    ),
    (
        "edges",
        'kind = "central"',
        'kind = "decentralized"\ntopology = {edges = [[0, 1], [2, 3]]}\nsplit = {kind = "equal", parties = 4}',
        "not connected",
    ),
    (
        "an algorithm that needs a walk",
        'kind = "central"',
        'kind = "federated"\nalgorithm = "stateless walk"\nsplit = {kind = "equal", parties = 4}',
        "StatelessWalk",
    ),
    (
        "a hub on a graph",
        'kind = "central"',
        'kind = "decentralized"\ntrust = "local"\nalgorithm = "DP-SGD"\ntopology = "ring"\n'
        'split = {kind = "equal", parties = 4}',
        "DPSGD has a hub",
    ),
    (
        "peers with a server",
        'kind = "central"',
        'kind = "federated"\nalgorithm = "IPADMM"\nsplit = {kind = "equal", parties = 4}',
        "IPADMM runs on a graph",
    ),
    (
        "auto for a walk",
        'kind = "central"',
        'kind = "decentralized"\nschedule = "random-walk"\nsplit = {kind = "equal", parties = 4}',
        "name the algorithm",
    ),
    ("no ledger", '"budget.ledger"', '"other.ledger"', "other.ledger"),
    ("huge number", "rows = 200", f"rows = 1{'0' * 400}", "data.rows"),
]


@pytest.mark.parametrize(("old", "new", "message"), [case[1:] for case in STUDIES], ids=[case[0] for case in STUDIES])
def test_malformed_studies(old: str, new: str, message: str, patients: Path, answers: Any) -> None:
    text = (patients / "study.toml").read_text()
    assert old in text
    (patients / "study.toml").write_text(text.replace(old, new, 1))
    _refused(patients, answers, message)


def test_all_faults_are_told_at_once(patients: Path, answers: Any) -> None:
    text = (patients / "study.toml").read_text()
    text = text.replace("delta = 1e-4", "delta = 2").replace("rows = 200", "rows = -1").replace('"central"', '"here"')
    (patients / "study.toml").write_text(text)
    code, _, told = answers("study", "check", patients / "study.toml")
    assert code == 2
    assert "3 things must be corrected" in told
    assert told.count("\n  - ") == 3


def _lines(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


GOOD = "31,yes,cook,no"
FILES: list[tuple[str, bytes, str]] = [
    ("empty", b"", "the file is empty"),
    ("header only", _lines("age,smoker,job,ill"), "at least one record"),
    ("missing column", _lines("age,smoker,ill", "31,yes,no"), "the schema has a column 'job'"),
    ("extra column", _lines("age,smoker,job,ill,name", f"{GOOD},Ann"), "column 5 is not in the schema"),
    ("no header", _lines(GOOD, GOOD), "is not in the schema"),
    ("text for a number", _lines("age,smoker,job,ill", "old,yes,cook,no"), "line 2, column 'age'"),
    ("unknown category", _lines("age,smoker,job,ill", "31,yes,baker,no"), "none of the categories"),
    ("unknown class", _lines("age,smoker,job,ill", "31,yes,cook,maybe"), "none of the classes"),
    ("missing value", _lines("age,smoker,job,ill", ",yes,cook,no"), "a value is missing"),
    ("ragged", _lines("age,smoker,job,ill", GOOD, "31,yes"), "line 3"),
    ("mixed encodings", b"age,smoker,job,ill\n31,yes,cook,no\n" + b"31,yes,caf\xe9,no\n", "not UTF-8"),
    ("utf-16", "age,smoker,job,ill\n31,yes,cook,no\n".encode("utf-16"), "zero bytes"),
    ("too few records", _lines("age,smoker,job,ill", *[GOOD] * 199), "declared"),
    ("too many records", _lines("age,smoker,job,ill", *[GOOD] * 201), "declared"),
    ("two columns of one name", _lines("age,age,job,ill", GOOD), "same name"),
    ("an open quote", _lines("age,smoker,job,ill", '31,"yes,cook,no'), "quoted cell"),
    ("a million columns", ",".join(map(str, range(1_000_000))).encode() + b"\n", "at most 100,000 columns"),
]


@pytest.mark.parametrize(("content", "message"), [case[1:] for case in FILES], ids=[case[0] for case in FILES])
def test_malformed_data_files(content: bytes, message: str, patients: Path, answers: Any) -> None:
    (patients / "table.csv").write_bytes(content)
    told = _refused(patients, answers, message, checks=False)
    # A cell is private, and a message may end in a log.
    assert not any(cell in told for cell in ("baker", "maybe", "old,", "caf", "Ann"))


def _draft(folder: Path) -> None:
    (folder / "schema.toml").write_text("draft = true\n" + (folder / "schema.toml").read_text())


def _folder(folder: Path) -> None:
    (folder / "table.csv").unlink()
    (folder / "table.csv").mkdir()


def _absent(folder: Path) -> None:
    (folder / "table.csv").unlink()


def _torn(folder: Path) -> None:
    packed = gzip.compress((folder / "table.csv").read_bytes())
    (folder / "table.csv.gz").write_bytes(packed[: len(packed) // 2])
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace('"table.csv"', '"table.csv.gz"'))


def _test_file(folder: Path) -> None:
    (folder / "test.csv").write_text("age\n1\n")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_draft, "draft = true"),
        (_folder, "this is a folder"),
        (_absent, "no such file"),
        (_torn, "not a complete gzip file"),
        (_test_file, "test.csv"),
    ],
)
def test_other_bad_files(spoil: Callable[[Path], None], message: str, patients: Path, answers: Any) -> None:
    spoil(patients)
    _refused(patients, answers, message, checks=False)


def test_the_real_program_prints_no_traceback(patients: Path, program: Any) -> None:
    (patients / "table.csv").write_bytes(b"")
    ended = program("train", "study.toml", "--out", "run", at=patients)
    assert ended.returncode == 2
    assert ended.stderr.strip().endswith("check that it was written to the end.")
    assert "Traceback" not in ended.stderr
    assert not (patients / "run").exists()


def _refused(folder: Path, answers: Any, message: str, *, checks: bool = True) -> str:
    before = (folder / "budget.ledger").read_bytes()
    code, out, told = answers("train", folder / "study.toml", "--out", folder / "run")
    assert code == 2, out + told
    assert message in " ".join(told.split()), told
    assert "Traceback" not in told
    assert told.count("consenso: ") == 1
    assert (folder / "budget.ledger").read_bytes() == before
    assert not (folder / "run").exists()
    if checks and "ledger" not in message:
        code, _, again = answers("study", "check", folder / "study.toml")
        assert code == 2, again
    return str(told)
