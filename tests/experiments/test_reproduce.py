"""The command `consenso reproduce`."""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.definition import Case, Paper
from experiments.outcome import Objection, Outcome, Table, Verdict

import consenso
from consenso.errors import TamperError
from experiments import reproduction

CASE = Case(
    name="lemma-1",
    groups=(),
    object_to=lambda results: Objection(
        claim="one is two",
        place="Lemma 1",
        argument=("It is not.",),
        shown="1",
        stands=True,
        reading="None.",
        survives=False,
        correction="One.",
    ),
)
VERDICT = Verdict(claim="it holds", source="text", state="reproduced", reported="1", ours="1.02", because="It does.")


def gather(grid, results) -> Outcome:
    table = Table(name="results", title="Numbers", columns=("a",), rows=((1.0,),))
    return Outcome(results=table, figures=(), verdicts=(VERDICT,), spent=(), changes=("Nothing.",))


SMALL = Paper(
    number="000",
    title="Nothing",
    authors="Nobody",
    reference="",
    about="",
    parameters=(),
    choices=(),
    flaws=(),
    reported=(),
    grids={"quick": 1, "full": 2},
    cells=lambda grid: (),
    gather=gather,
)


@pytest.fixture
def papers(monkeypatch):
    found = {"000": SMALL, "001": replace(SMALL, number="001")}
    monkeypatch.setattr(reproduction, "papers", lambda: found)
    return found


@pytest.fixture
def invoke(capsys, monkeypatch):
    """The program in this process: exit code, standard output, standard error."""

    def reproduce(*arguments: str) -> tuple[int, str, str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Typer imports what Click is about to drop
            from consenso.cli import main

        monkeypatch.setattr(sys, "argv", ["consenso", "reproduce", *arguments])
        monkeypatch.setenv("COLUMNS", "160")
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return reproduce


def test_one_paper(papers, invoke, tmp_path):
    code, out, _ = invoke("000", "--out", str(tmp_path))
    assert code == 0
    assert "expected to take" in out
    assert "1.02" in out
    assert (tmp_path / "000" / "report.html").exists()
    assert "Not run yet" in (tmp_path / "index.html").read_text()


def test_all_papers_for_machines(papers, invoke, tmp_path):
    code, out, _ = invoke("all", "--full", "--json", "--out", str(tmp_path))
    assert code == 0
    told = json.loads(out)
    assert [entry["paper"] for entry in told] == ["000", "001"]
    assert told[0]["verdicts"][0]["ours"] == "1.02"
    assert json.loads((tmp_path / "001" / "summary.json").read_text())["made"]["grid"] == "full"
    assert "Not run yet" not in (tmp_path / "index.html").read_text()


def test_another_grid_and_a_page(papers, monkeypatch, invoke, tmp_path):
    monkeypatch.setitem(papers, "000", replace(SMALL, grids={**SMALL.grids, "table": 3}))
    page = tmp_path / "page.md"
    page.write_text("<!-- summary: begin -->\n<!-- summary: end -->\n")
    code, _, _ = invoke("000", "--grid", "table", "--out", str(tmp_path), "--page", str(page))
    assert code == 0
    assert json.loads((tmp_path / "000" / "summary.json").read_text())["made"]["grid"] == "table"
    assert "it holds" in page.read_text()
    page.write_text("<!-- summary: begin -->\n<!-- summary: end -->\n")
    code, out, _ = invoke("summary", "--out", str(tmp_path), "--page", str(page))  # from what lies there
    assert code == 0
    assert out.strip().endswith("index.html")
    assert "it holds" in page.read_text()
    code, _, err = invoke("000", "--grid", "tables", "--out", str(tmp_path))
    assert code == 2
    assert "no grid 'tables'; there are quick, full, table" in err


def test_an_unknown_paper_is_refused(papers, invoke):
    code, _, err = invoke("007")
    assert code == 2
    assert "'007'" in err
    assert "000, 001" in err


def test_without_experiments_there_is_nothing_to_run(monkeypatch, invoke, tmp_path):
    monkeypatch.setattr(consenso, "__file__", str(tmp_path / "lib" / "site-packages" / "consenso" / "__init__.py"))
    code, _, err = invoke("000")
    assert code == 2
    assert "_reproductions" in err


def test_the_list_names_grids_and_objections(papers, monkeypatch, invoke):
    monkeypatch.setitem(papers, "000", replace(SMALL, cases=(CASE,)))
    code, out, _ = invoke("list")
    assert code == 0
    assert "quick 0 s" in out
    assert "objections: lemma-1" in out


def test_one_objection(papers, monkeypatch, invoke, tmp_path):
    monkeypatch.setitem(papers, "000", replace(SMALL, cases=(CASE,)))
    code, out, _ = invoke("000", "--objection", "lemma-1", "--out", str(tmp_path))
    assert code == 0
    assert "Charitable reading: None. The objection falls." in out
    code, _, err = invoke("all", "--objection", "lemma-1")
    assert code == 2
    assert "name the paper" in err
    page = tmp_path / "page.md"
    page.write_text("<!-- objections: begin -->\n<!-- objections: end -->\n")
    assert invoke("all", "--objection", "all", "--out", str(tmp_path), "--page", str(page))[0] == 0
    assert "#### 000, lemma-1" in page.read_text()
    assert "### 001: Nothing\n\nNo objection" in page.read_text()


@pytest.mark.slow
def test_the_page_for_authors_says_what_the_programs_find(tmp_path):
    """Of the papers whose objections need no files; the command that writes the page is on it."""
    text = (Path(__file__).parents[2] / "docs" / "papers.md").read_text()
    known = {number: paper for number, paper in reproduction.papers().items() if number in ("000", "001", "002")}
    assert "consenso reproduce all --objection all --page docs/papers.md" in text
    for section in reproduction.all_objections(known, tmp_path, workers=0).split("\n### "):
        assert section.strip() in text


@pytest.mark.slow
def test_the_wheel_brings_the_experiments(tmp_path, monkeypatch):
    """Built, installed without dependencies into an empty folder, and asked for its list from there."""
    import subprocess

    from hatchling.build import build_wheel

    monkeypatch.chdir(Path(__file__).parents[2])
    wheel = tmp_path / build_wheel(str(tmp_path))
    target = tmp_path / "site"
    install = (
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        str(target),
        str(wheel),
    )
    subprocess.run([sys.executable, *install], check=True, timeout=300)
    assert not (target / "experiments").exists()  # nothing beside the package
    environment = {**os.environ, "PYTHONPATH": str(target)}
    asked = [sys.executable, "-m", "consenso", "reproduce", "list", "--json"]
    done = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=300)
    told = json.loads(done.stdout)
    assert [each["paper"] for each in told] == ["000", "001", "002", "003", "004"]
    assert "theorem-2" in told[0]["objections"]
    code = "import consenso; print(consenso.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert str(target) in where.stdout


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (TamperError("a card is wrong"), 1)])
def test_exit_codes(papers, monkeypatch, invoke, tmp_path, error, code):
    def fails(*arguments, **options):
        raise error

    monkeypatch.setattr(reproduction, "reproduce", fails)
    found, _, err = invoke("000", "--out", str(tmp_path))
    assert found == code
    assert ("same command to go on" if code == 130 else "a card is wrong") in err


def test_the_papers_are_found():
    found = reproduction.papers()
    assert {"000", "001"} <= set(found)
    for number, paper in found.items():
        assert paper.number == number
        assert {"quick", "full"} <= set(paper.grids)
