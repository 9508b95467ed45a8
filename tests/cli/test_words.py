"""What every command says: its help, and its errors in the words of a command, with the documented exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
import typer

from consenso.cli import build, in_words
from consenso.study.advice import list_doubts
from consenso.study.study import Study


def list_commands() -> dict[str, Any]:
    """Every command with its words, such as `study check`."""
    from typer.main import get_command

    def inside(group: Any, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for word, command in group.commands.items():
            whole = f"{name} {word}".strip()
            found |= inside(command, whole) if hasattr(command, "commands") else {whole: command}
        return found

    return inside(get_command(build()), "")


COMMANDS = list_commands()
# Those that wait for people or machines, and those that print a table: they answer in words only.
WITHOUT_JSON = {"explore", "certs init", "certs issue", "flower build", "lint", "ledger create", "ledger verify"}
WITHOUT_JSON |= {"ledger head", "ledger export", "ledger lease", "ledger plot"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_a_sentence_an_example_and_exit_codes(name: str, answers: Any) -> None:
    code, out, _ = answers(*name.split(), "-h")
    assert code == 0
    shown = " ".join(out.split())
    assert f"Example: consenso {name}" in shown
    assert "Exit codes: 0 " in shown, "and what they mean"
    assert "2 " in shown.partition("Exit codes:")[2]
    assert ("--json" in shown) or name in WITHOUT_JSON


@pytest.mark.parametrize("name", ["", "ledger", "lint", "ledger head"])
def test_both_flags_for_help_say_the_same(name: str, answers: Any) -> None:
    assert answers(*name.split(), "-h") == answers(*name.split(), "--help")


def test_the_version(answers: Any) -> None:
    from consenso import __version__

    assert answers("--version")[:2] == (0, f"consenso {__version__}\n")


# Arguments, words of the message. Every one is bad input.
ERRORS = [
    (["trian"], "trian: there is no such command; did you mean train?"),
    (["ledger", "sho"], "sho: there is no such command; did you mean show?"),
    (["plan"], "STUDY is missing: A study."),
    (["plan", "study.toml", "other.toml"], "other.toml: more than the command takes, which is STUDY."),
    (["plan", "study.toml", "--epsilom", "1"], "--epsilom: there is no such option; did you mean --epsilon?"),
    (["train", "study.toml", "--engine", "daks"], "--engine daks: process or dask is needed; did you mean dask?"),
    (["train", "study.toml", "--out"], "--out needs a value after it."),
    (["train", "study.toml", "--out", "table.csv"], "table.csv: "),
    (["audit", "DPSGD", "--trials", "5"], "--trials 5: a whole number of at least 100 is needed."),
    (["explore", "study.toml", "--port", "70000"], "--port 70000: a whole number from 0 to 65535 is needed."),
    (["plan", "nowhere.toml"], "nowhere.toml: a study cannot be read there"),
    (["plan", "study.toml", "--epsilon", "-1"], "--epsilon -1: privacy.epsilon = -1.0: epsilon is positive"),
    (["train", "study.toml", "--epsilon", "nan"], "--epsilon nan: privacy.epsilon"),
    (["train", "nowhere.toml"], "nowhere.toml: a study cannot be read there"),
    (["study", "check", "nowhere.toml"], "nowhere.toml: a study cannot be read there"),
    (["study", "new", "study.toml"], "study.toml: the file exists"),
    (["study", "new", "n.toml", "--dataset", "digit", "--defaults"], "did you mean 'digits'?"),
    (["study", "new", "n.toml", "--dataset", "digits", "--setting", "centralized", "--defaults"],
     "--setting centralized: did you mean 'central'?"),
    (["study", "new", "n.toml", "--table", "table.csv", "--schema", "schema.toml", "--defaults"], "--rows: "),
    (["card", "nowhere"], "nowhere: there is no such file; name a card or the folder of a run."),
    (["card", "."], ".: there is no card.json; name a card or the folder of a run."),
    (["card", "study.toml"], "study.toml: this is no card, because it is not JSON"),
    (["card", ".", "--all", "--json"], "one form at a time; choose one."),
    (["verify", "nowhere"], "nowhere: there is no such file"),
    (["report", "nowhere"], "nowhere: a run is a folder with a card.json in it"),
    (["predict", "nowhere", "table.csv"], "nowhere"),
    (["compare", "nowhere.toml"], "nowhere.toml: a study cannot be read there"),
    (["compare", "study.toml", "--epsilon", "1,x"], "--epsilon 1,x: numbers with commas between them"),
    (["compare", ".", "--epsilon", "1,2"], "--epsilon: budgets are compared for studies"),
    (["forecast", "nowhere.toml"], "nowhere.toml: a study cannot be read there"),
    (["forecast", "study.toml", "--epsilon", "0"], "--epsilon 0: budgets are positive and different"),
    (["forecast", "study.toml", "--public", "nowhere.csv"], "nowhere.csv"),
    (["explore", "nowhere.toml", "--no-browser"], "nowhere.toml: a study cannot be read there"),
    (["data", "describe", "digit"], "did you mean 'digits'?"),
    (["data", "draft-schema", "nowhere.csv"], "nowhere.csv"),
    (["data", "draft-schema", "table.csv", "--out", "schema.toml"], "--out schema.toml: the file exists"),
    (["audit"], "name a study file or an algorithm, or give --all"),
    (["audit", "ConsensusADM"], "did you mean 'ConsensusADMM'?"),
    (["audit", "DPSGD", "--unit", "person"], "--unit person"),
    (["audit", "DPSGD", "--delta", "2"], "--delta 2.0: a delta lies in (0, 1)"),
    (["lint"], "name at least one file or folder"),
    (["ledger", "show", "nowhere.ledger"], "nowhere.ledger"),
    (["ledger", "head", "nowhere.ledger"], "nowhere.ledger: there is no such file"),
    (["ledger", "plot", "nowhere.ledger"], "nowhere.ledger: there is no such file"),
    (["ledger", "export", "nowhere.ledger"], "nowhere.ledger: there is no such file"),
    (["ledger", "verify", "nowhere.ledger"], "nowhere.ledger: there is no such file"),
    (["ledger", "create", "n.ledger", "--dataset", "x", "--epsilon", "-1", "--delta", "0.1"], "epsilon"),
    (["ledger", "lease", "budget.ledger", "--to", "x", "--take-over"], "--to gives the ledger away"),
    (["reproduce", "999"], "the papers are"),
    (["serve", "nowhere.toml", "--listen", "127.0.0.1:0", "--certs", "."], "a study cannot be read there"),
    (["join", "nowhere.toml", "--server", "x:1", "--party", "a", "--data", "a", "--certs", "."], "cannot be read"),
    (["peer", "nowhere.toml", "--name", "a", "--data", "a", "--certs", "."], "a study cannot be read there"),
    (["flower", "build", "nowhere.toml", "--out", "x"], "a study cannot be read there"),
    (["certs", "issue", "a", "--ca", "nowhere", "--out", "x"], "nowhere"),
    (["ledger", "create", "table.csv", "--dataset", "x", "--epsilon", "1", "--delta", "0.1"], "the file exists"),
    (["study", "new", "n.toml", "--dataset", "digits", "--strength", "-1", "--defaults"], "strength"),
    (["study", "new", "n.toml", "--dataset", "digits", "--trust", "local", "--defaults"], "--trust local: a federated"),
    (["serve", "study.toml", "--listen", "x:1", "--certs", ".", "--patience", "nan"], "--patience nan: a number of"),
    (["serve", "study.toml", "--listen", "x:1", "--certs", ".", "--status-port", "70000"], "from 0 to 65535"),
    (["certs", "init", "n", "--days", "9999999"], "--days 9999999: a whole number from 1 to 36500 is needed."),
    (["forecast", "study.toml", "--out", "table.csv"], "--out table.csv: it exists and is not a folder"),
    (["demo", "--out", "table.csv"], "--out table.csv: it exists and is not a folder"),
    (["demo", "--epsilon", "0", "--out", "d"], "epsilon"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "words"), ERRORS, ids=[" ".join(asked) for asked, _ in ERRORS])
def test_every_error_is_in_words_with_exit_code_two(
    asked: list[str], words: str, patients: Path, answers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(patients)
    before = sorted(patients.iterdir())
    code, out, told = answers(*asked)
    plain = " ".join(told.replace("│", " ").split())
    assert code == 2, out + told
    assert words in plain
    assert "Traceback" not in told
    assert not out.strip(), "nothing is printed before an error"
    assert "%" not in told.partition("consenso: ")[0], "no progress either"
    for python in ("Card.", "Study.", "Ledger.", "Schema.", "=...", "audit(", "report(", "Safe()"):
        assert python not in plain
    assert sorted(patients.iterdir()) == before


# Words of the parser's libraries and of Python.
FOREIGN = (
    "valid float",
    "valid integer",
    "Invalid value",
    "Missing",
    "No such",
    "argument",
    "Usage",
    "Traceback",
    "Errno",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_takes(name: str, answers: Any) -> None:
    """A word where a number or one of few words is needed, an option that nobody knows, something left out."""
    shown = []
    for option in COMMANDS[name].params:
        flag = option.opts[0]
        if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType | click.Choice):
            code, out, told = answers(*name.split(), flag, "abc")
            assert f"{flag} abc: " in told
            assert " is needed." in told
            shown.append((code, out, told))
        if flag.startswith("--") and not option.is_flag:
            shown.append(answers(*name.split(), flag))
            assert shown[-1][2] == f"consenso: {flag} needs a value after it.\n"
    shown.append(answers(*name.split(), "--nonsense"))
    assert "--nonsense: there is no such option" in shown[-1][2]
    if any(option.required for option in COMMANDS[name].params):
        shown.append(answers(*name.split()))
        assert " is missing: " in shown[-1][2]
    for code, out, told in shown:
        assert (code, out) == (2, "")
        assert told.startswith("consenso: ")
        assert not [word for word in FOREIGN if word in told], told


def test_every_command_has_an_error_path_in_this_file() -> None:
    tried = {" ".join(asked) for asked, _ in ERRORS}
    silent = {"algorithms", "data list", "certs init"}
    untried = {name for name in COMMANDS if not any(f"{line} ".startswith(f"{name} ") for line in tried)}
    assert untried <= silent


def test_calls_become_words() -> None:
    assert in_words("EpsilonDelta(epsilon=-1.0): an epsilon is positive; state one.") == (
        "epsilon = -1.0: an epsilon is positive; state one."
    )
    assert in_words("report('x (y)'): name one.") == "'x (y)': name one."
    assert in_words("plan(noise=..., target=...): give one.") == "noise, target: give one."
    assert in_words("Ledger.reserve: epsilon 3 is above 2.") == "epsilon 3 is above 2."
    assert in_words("study.toml: privacy.epsilon (here): x") == "study.toml: privacy.epsilon (here): x"


def test_a_large_delta_is_told(patients: Path, answers: Any) -> None:
    study = patients / "study.toml"
    assert list_doubts(Study.load(study)) == []
    study.write_text(study.read_text().replace("delta = 1e-4", "delta = 0.01"))
    code, _, told = answers("study", "check", study)
    assert code == 0
    assert "warning: privacy.delta = 0.01 is above 1/200" in told
    assert "state 0.0005 or less" in told


def test_study_check_looks_for_the_files(patients: Path, answers: Any) -> None:
    (patients / "table.csv").unlink()
    (patients / "budget.ledger").unlink()
    code, out, told = answers("study", "check", patients / "study.toml")
    assert code == 1
    assert "a sound study" in out
    assert "data.table = 'table.csv': there is no such file" in told
    assert "privacy.ledger = 'budget.ledger': there is no such file" in told
    assert "data.test" not in told


def test_another_epsilon_on_the_command_line(patients: Path, answers: Any) -> None:
    import json

    told = json.loads(answers("plan", patients / "study.toml", "--epsilon", "0.5", "--json")[1])
    assert told["epsilon"] == pytest.approx(0.5, rel=1e-3)
    text = (patients / "study.toml").read_text().replace('ledger = "budget.ledger"', "seed = 1")
    (patients / "study.toml").write_text(text)
    code, out, err = answers("train", patients / "study.toml", "--epsilon", "0.5", "--out", patients / "r", "--json")
    assert code == 0, err
    assert json.loads(out)["epsilon"] == pytest.approx(0.5, rel=1e-3)
    assert "epsilon = 0.5" in (patients / "r" / "study.toml").read_text()


def test_ctrl_c_ends_any_command_with_130(answers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("consenso.datasets.describe", interrupt)
    code, out, told = answers("data", "describe", "digits")
    assert (code, out) == (130, "")
    assert told == "consenso: stopped\n"
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: (_ for _ in ()).throw(typer.Abort()))
    assert answers("study", "new", tmp_path / "n.toml")[0] == 130
