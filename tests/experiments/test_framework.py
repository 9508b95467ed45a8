"""The framework of the reproductions: keys, kept results, interruptions, figures and pages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.deciding import at_or_below, below, decide, everywhere, interval, near
from experiments.definition import Case, Cell, Choice, Flaw, Paper, Parameter, Reported
from experiments.drawing import draw, inline
from experiments.outcome import Curve, Figure, Level, Objection, Outcome, Panel, Spent, Table, Verdict
from experiments.paper000 import theorems
from experiments.reproduction import NUMBERS, forecast, object_to, reproduce
from experiments.results import Results, plain
from experiments.running import key, run_cells
from experiments.writing import as_markdown, shown
from tests.experiments.changing import unchanging

from consenso.errors import InputError, TamperError
from experiments import index, report, running, shipping, source

CALLS: list[int] = []


def square(*, number: int) -> dict[str, object]:
    CALLS.append(number)
    return {"square": np.float64(number**2), "path": np.arange(number)}


def fails(*, number: int) -> dict[str, object]:
    raise ValueError(f"no {number}")


def cells(grid) -> tuple[Cell, ...]:
    return tuple(Cell.of("squares", square, number=number, seconds=2.0) for number in grid)


def gather(grid, results) -> Outcome:
    squares = [float(results.values("square", "squares", number=number)[0]) for number in grid]
    table = Table(
        name="results", title="Squares", columns=("number", "square"), rows=tuple(zip(grid, squares, strict=True))
    )
    panel = Panel(
        title="squares",
        x="number",
        y="square",
        curves=(
            Curve(label="ours", x=grid, y=squares, low=squares, high=squares),
            Curve(label="paper", x=grid, y=REPORTED.values, style="reported"),
        ),
        levels=(Level(label="one", y=1.0),),
    )
    return Outcome(
        results=table,
        figures=(Figure(name="squares", title="Squares", caption="They grow.", panels=(panel,)),),
        verdicts=(
            Verdict(
                claim="squares grow",
                source="Figure 1",
                state=decide(published=squares[-1] > squares[0]),
                reported=shown(REPORTED.values[-1]),
                ours=shown(squares[-1]),
                because="They do.",
            ),
        ),
        spent=(
            Spent(
                run="squares",
                version="as published",
                nominal=1.0,
                observer="public",
                unit="record",
                adjacency="replace-one",
                epsilon=squares[-1],
                at_least=squares[0],
                delta=1e-5,
                theorem="Composition",
            ),
        ),
        changes=(f"The largest is {shown(squares[-1])}.",),
    )


REPORTED = Reported(name="squares", source="Table 1", values=(1.0, 4.0, 9.5), at=(1, 2, 3), axis="number")
PAPER = Paper(
    number="000",
    title="On squares",
    authors="A. Nobody",
    reference="2026",
    about="Squares <of> numbers.",
    parameters=(Parameter(name="base", value=10, source="text"),),
    choices=(Choice(what="start", chosen="one", why="unstated"),),
    flaws=(Flaw(what="typo", consequence="none"),),
    reported=(REPORTED,),
    grids={"quick": (1, 2, 3)},
    cells=cells,
    gather=gather,
)


# --- cells ----------------------------------------------------------------------------------------------------------


def test_a_cell_is_known_by_function_settings_and_code(monkeypatch):
    one, same = Cell.of("a", square, number=1), Cell.of("a", square, number=1, seconds=9.0)
    assert one == same
    assert hash(one) == hash(same)
    assert key(one) == key(same)
    assert key(one) != key(Cell.of("a", square, number=2))
    assert key(one) != key(Cell.of("a", fails, number=1))
    before = key(one)
    monkeypatch.setattr("experiments.running.version", lambda module: "another version")
    assert key(one) != before


@pytest.mark.parametrize(
    ("work", "settings"), [(lambda: {}, {}), (square, {"number": object()}), (square, {"number": np.zeros(2)})]
)
def test_cells_that_workers_or_keys_cannot_take_are_refused(work, settings):
    with pytest.raises(InputError, match="Cell"):
        Cell.of("a", work, **settings)


def test_the_version_of_a_cell_follows_its_imports_and_nothing_else():
    reached = {path.as_posix() for path in source.reached("experiments.paper000.theorems")}
    assert any(path.endswith("paper000/claims.py") for path in reached)
    assert any(path.endswith("privacy/theorems/theorem_f.py") for path in reached)  # through a package
    for stranger in (
        "consenso/__init__.py",
        "consenso/errors.py",
        "consenso/estimators/lasso.py",
        "cli/reproduce.py",
        "paper000/gathering.py",
        "paper000/definition.py",
        "experiments/report.py",
    ):
        assert not any(path.endswith(stranger) for path in reached)


def test_a_changed_source_is_another_version(tmp_path, monkeypatch):
    (tmp_path / "work.py").write_text("from experiments.more import THING\n")
    (tmp_path / "more.py").write_text("THING = 1\n")
    monkeypatch.setitem(source.ROOTS, "experiments", tmp_path)
    assert {path.name for path in source.reached("experiments.work")} == {"work.py", "more.py"}
    before = source.version.__wrapped__("experiments.work")
    (tmp_path / "more.py").write_text('"""What it is."""\nTHING = 1  # a comment\n')
    assert source.version.__wrapped__("experiments.work") == before
    (tmp_path / "more.py").write_text("THING = 2\n")
    assert source.version.__wrapped__("experiments.work") != before


def test_the_version_does_not_depend_on_where_the_files_are_installed(tmp_path, monkeypatch):
    versions = []
    for papers, package in (("experiments", "src/consenso"), ("z/experiments", "a/consenso"), ("a/_p", "a")):
        for root, name, text in (
            (papers, "work.py", "from consenso.tool import TOOL\n"),
            (package, "tool.py", "from consenso.__other import TOOL\n"),
            (package, "__other.py", "TOOL = 1\n"),
        ):
            place = tmp_path / papers.replace("/", "-") / root
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
            monkeypatch.setitem(source.ROOTS, "experiments" if root == papers else "consenso", place)
        assert len(source.reached("experiments.work")) == 3
        versions.append(source.version.__wrapped__("experiments.work"))
    assert len(set(versions)) == 1


def test_a_name_that_a_package_hands_on_leads_to_its_home(tmp_path, monkeypatch):
    files = {
        "work.py": "from experiments.room import NOW, LATER\n",
        "room/__init__.py": "from typing import TYPE_CHECKING\nfrom experiments.room.now import NOW\n"
        "from experiments.room.aside import ASIDE\nif TYPE_CHECKING:\n    from experiments.room.later import LATER\n"
        "def __getattr__(name):\n    return name\n",
        "room/now.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from experiments.kind import Kind\n",
        "room/later.py": "LATER = 1\n",
        "room/aside.py": "ASIDE = 1\n",
        "kind.py": "class Kind: ...\n",
        "whole.py": "import experiments.room\n",
        "loud/__init__.py": "print(1)\nfrom experiments.kind import Kind\n",
        "noisy.py": "from experiments.loud import Kind\n",
        "one/__init__.py": "from experiments.other import NOW\n",
        "other/__init__.py": "from experiments.one import THEN\nfrom experiments.room import NOW\n",
        "far.py": "from experiments.one import NOW\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setitem(source.ROOTS, "experiments", tmp_path)

    def reached(module: str) -> set[str]:
        return {path.relative_to(tmp_path).as_posix() for path in source.reached(module)}

    assert reached("experiments.work") == {"work.py", "room/now.py", "room/later.py"}
    assert reached("experiments.whole") == {"whole.py", "room/now.py", "room/later.py", "room/aside.py"}
    assert reached("experiments.far") == {"far.py", "room/now.py"}
    assert reached("experiments.noisy") == {"noisy.py", "loud/__init__.py", "kind.py"}  # it does something itself


def test_results_are_kept_and_an_interrupted_run_resumes(tmp_path):
    CALLS.clear()
    done = []

    def interrupt(cell, kept):
        done.append((dict(cell.settings)["number"], kept))
        if len(done) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cells(cells((1, 2, 3, 4)), tmp_path, workers=0, step=interrupt)
    assert CALLS == [1, 2]
    done.clear()
    results = run_cells(cells((1, 2, 3, 4)), tmp_path, workers=0, step=lambda cell, kept: done.append(kept))
    assert CALLS == [1, 2, 3, 4]
    assert done == [True, True, False, False]
    assert results.values("square", "squares").tolist() == [1, 4, 9, 16]
    assert results[cells((3,))[0]]["path"] == [0, 1, 2]  # as JSON holds it, fresh or kept


def test_the_longest_cells_are_begun_first(tmp_path):
    CALLS.clear()
    asked = [Cell.of("a", square, number=n, seconds=float(n)) for n in (1, 3, 2)]
    results = run_cells(asked, tmp_path, workers=0)
    assert CALLS == [3, 2, 1]
    assert list(results) == asked


def test_two_processes_give_what_one_gives(tmp_path):
    asked = [Cell.of("a", theorems.centralized, parties=n, rounds=2) for n in (10, 20)]
    asked.append(Cell.of("b", theorems.local, participations=3, std=2.0))
    apart, here = run_cells(asked, tmp_path / "apart"), run_cells(asked, tmp_path / "here", workers=0)
    assert {cell: apart[cell] for cell in asked} == {cell: here[cell] for cell in asked}


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failing_cell_is_named(tmp_path, workers):
    # With a worker the function must be importable there: a setting that the theorem refuses serves.
    asked = Cell.of("b", theorems.local, participations=-1, std=2.0) if workers else Cell.of("b", fails, number=7)
    with pytest.raises(ValueError) as caught:
        run_cells([asked], tmp_path, workers=workers)
    if workers:
        assert "participations=-1" in "".join(caught.value.__notes__)
    assert not list(tmp_path.glob("*"))


def test_picking_from_results():
    found = Results({cell: {"x": place} for place, cell in enumerate(cells((5, 6)))})
    assert found.values("x", "squares").tolist() == [0, 1]
    assert found.values("x", "squares", number=6).tolist() == [1]
    assert found.distinct("number", "squares") == [5, 6]
    with pytest.raises(InputError, match="no cell has these settings"):
        found.rows("squares", number=7)
    with pytest.raises(InputError, match="returned object"):
        plain({"x": object()})


# --- text, figures, pages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"),
        (1234.5, "1,234"),
        (2.5e7, "2.50e+07"),
        (1e-9, "1.00e-09"),
        (float("inf"), "infinite"),
        (None, "–"),
        (True, "yes"),
        (12_000, "12,000"),
        ((1, 2.5), "1, 2.5"),
        (0.0, "0"),
    ],
)
def test_numbers_as_text(value, text):
    assert shown(value) == text


def test_a_table_as_markdown():
    table = Table(name="t", title="T", columns=("a", "b"), rows=((1, "x|y"),), note="n")
    assert as_markdown(table) == "### T\n\n| a | b |\n| --- | --- | \n| 1 | x\\|y |\n\nn\n"


def test_figures_are_drawn_twice_and_fit_into_one_page(tmp_path):
    figure = gather((1, 2, 3), run_cells(cells((1, 2, 3)), tmp_path, workers=0)).figures[0]
    png, svg = draw(figure, tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    first = svg.read_bytes()
    draw(figure, tmp_path)
    assert svg.read_bytes() == first  # no dates, no random names
    text = inline(figure, tmp_path)
    assert text.startswith("<svg")
    assert 'id="squares-' in text
    assert 'width="100%"' in text
    for label in ("ours", "paper", "one", "number"):
        assert f">{label}</text>" in text


@pytest.mark.parametrize(
    ("published", "corrected", "state"),
    [
        (True, None, "reproduced"),
        (False, None, "not reproduced"),
        (True, True, "reproduced"),
        (True, False, "only with the flaw"),
        (False, True, "reproduced"),
        (False, False, "not reproduced"),
        ("unclear", None, "undecided"),
        ("yes", "unclear", "undecided"),
        ("unclear", "no", "undecided"),
        ("unclear", "yes", "reproduced"),
    ],
)
def test_verdicts(published, corrected, state):
    assert decide(published=published, corrected=corrected) == state


def test_a_comparison_uses_the_spread_over_seeds():
    low, high = np.array([1.0, 1.1, 0.9, 1.05]), np.array([1.5, 1.6, 1.45, 1.55])
    assert below(low, high) == "yes"
    assert below(high, low) == "no"
    assert below(low[:1], high[:1]) == "unclear"  # one seed has no spread
    assert below(np.array([1.0, 2.0, 0.3]), np.array([1.2, 1.9, 0.5])) == "unclear"
    assert below(np.array([1.0, 2.0, 0.3]), np.array([1.2, 2.2, 0.5]), paired=True) == "yes"
    level = np.array([1.0, 1.0005, 0.9995])
    assert below(level, level + 0.001) == "no"  # a gain that no figure shows
    assert at_or_below(level + 0.05, level) == "yes"
    assert at_or_below(level + 0.2, level) == "no"


def test_a_number_agrees_when_the_whole_interval_does():
    assert near(10.5, 10.0) == "yes"
    assert near(11.5, 10.0) == "no"
    assert near(np.array([10.4, 10.5, 10.6]), 10.0) == "yes"
    assert near(np.array([12.0, 12.1, 12.2]), 10.0) == "no"
    assert near(np.array([9.0, 10.0, 12.0]), 10.0) == "unclear"
    assert near(np.array([10.0]), 10.0) == "unclear"
    assert interval(np.array([1.0, 3.0]))[0] == pytest.approx(2 - 12.706, abs=1e-3)  # Student, one degree of freedom
    assert everywhere(["yes", True]) == "yes"
    assert everywhere(["yes", "unclear"]) == "unclear"
    assert everywhere(["no", "unclear"]) == "no"


def test_a_small_grid_contradicts_a_large_one_seldom():
    rng = np.random.default_rng(0)
    large = below(rng.normal(1.0, 0.2, 400), rng.normal(1.1, 0.2, 400))
    small = [below(rng.normal(1.0, 0.2, 3), rng.normal(1.1, 0.2, 3)) for _ in range(400)]
    assert large == "yes"
    # At 0.95 at most one in forty on the wrong side: more than 25 of 400 has probability below 1e-4.
    assert small.count("no") <= 25
    assert small.count("unclear") > 200


def objection(results) -> Objection:
    largest = float(results.values("square", "squares").max())
    return Objection(
        claim="squares are below 4",
        place="Lemma 1",
        argument=("Take 3.",),
        shown=f"{shown(largest)} is one",
        stands=largest > 4,
        reading="Numbers below 2.",
        survives=False,
        correction="None.",
    )


CASE = Case(name="lemma-1", groups=("squares",), object_to=objection)


def test_an_objection_is_made_from_results_and_can_be_shown_alone(tmp_path):
    paper = replace(PAPER, cases=(CASE,))
    done = reproduce(paper, "quick", tmp_path, workers=0, listed=(paper,))
    page = done.page.read_text()
    for part in ("squares are below 4", "Take 3.", "9 is one", "Numbers below 2.", "falls", "--objection lemma-1"):
        assert part in page
    assert "**Shown.** 9 is one. The claim as printed does not hold here." in (tmp_path / "objections.md").read_text()
    again = object_to(paper, "lemma-1", tmp_path / "other", workers=0)
    assert again == done.outcome.objections[0]
    assert not objection(Results({cells((1,))[0]: {"square": 1.0}})).stands
    with pytest.raises(InputError, match="are lemma-1"):
        object_to(paper, "lemma-2", tmp_path, workers=0)
    with pytest.raises(InputError, match="1 to 5 lines"):
        replace(again, argument=("a",) * 6)


def test_verdicts_that_differ_between_grids_are_told(tmp_path):
    paper = replace(PAPER, grids={"quick": (1, 2, 3), "full": (3, 2, 1)})
    for grid in paper.grids:
        reproduce(paper, grid, tmp_path, workers=0, listed=(paper,))
    told = {each["made"]["grid"]: each for each in index._grids(tmp_path / "000")}
    (row,) = index.compared({"000": [told["quick"], told["full"]]}).rows
    assert row == ("000", "squares grow", "reproduced", "full", "not reproduced", "quick: 9; then: 1")
    assert "quick: 9; then: 1" in (tmp_path / "summary.md").read_text()

    def why(one, other):
        for name, state in (("quick", one), ("full", other)):
            told[name]["verdicts"] = [{"claim": "a", "state": state, "ours": name}] if state else []
        return index.compared({"000": list(told.values())}).rows[0][-1]

    assert why("reproduced", "reproduced") == ""
    assert why("undecided", "reproduced") == "quick leaves it open (quick); the other has full"
    assert why("reproduced", "undecided") == "the larger grid leaves it open (full); the other has quick"
    assert why(None, "reproduced") == "the quick grid has no runs of it"
    assert index.compared({"000": [told["quick"]]}).rows == ()


def test_long_results_come_with_the_repository(tmp_path, monkeypatch):
    paper = replace(PAPER, grids={"quick": (1, 2), "full": (1, 2, 3)})
    monkeypatch.setattr(running, "SHIPPED", tmp_path / "shipped")
    folder = tmp_path / "one" / "cells" / "000"
    run_cells(cells((1, 2)), folder, workers=0)
    for path, seconds in zip(sorted(folder.iterdir()), (9.0, 90.0), strict=True):
        path.write_text(json.dumps({**json.loads(path.read_text()), "seconds": seconds}))
    other = tmp_path / "shipped" / "000" / "0.json"
    other.parent.mkdir(parents=True)
    other.write_text("made by other code")
    assert forecast(paper, "full", tmp_path / "two").missing == 3  # the file of other code is not even read
    assert shipping.stale(paper, tmp_path / "shipped") == [other]
    (made,) = shipping.ship(paper, folder, tmp_path / "shipped")  # the long one
    assert not other.exists()

    CALLS.clear()
    assert forecast(paper, "full", tmp_path / "two").missing == 2
    rows = index.unfinished({"000": paper}, tmp_path / "two").rows
    assert rows == (("000", "quick", "squares", 2, 1), ("000", "full", "squares", 3, 1))
    done = reproduce(paper, "full", tmp_path / "two", workers=0, listed=(paper,))
    assert len(CALLS) == 2
    assert index.measured(tmp_path / "two" / "000")["full"] > 90
    assert done.outcome.results.rows == ((1, 1.0), (2, 4.0), (3, 9.0))
    assert made.exists()


def test_reports_come_with_the_repository_grid_by_grid(tmp_path):
    paper, reports = replace(PAPER, grids={"quick": (1, 2, 3), "full": (2, 3, 4)}), tmp_path / "reports"
    for out, grid in ((tmp_path / "one", "quick"), (tmp_path / "two", "full")):  # on two machines
        reproduce(paper, grid, out, workers=0, listed=(paper,))
        (made,) = shipping.ship_reports(paper, out, reports)
        assert made == reports / "000" / "grids" / f"{grid}.json"
    assert sorted(index.measured(reports / "000")) == ["full", "quick"]
    told, compared, results = index.reported({"000": paper}, reports)
    assert told.rows
    assert {row[3] for row in compared.rows} == {"full"}
    # Which of two grids is the larger one is decided by what they took.
    assert [row[0] for row in results.rows] in ([1, 2, 3], [2, 3, 4])
    page = tmp_path / "page.md"
    page.write_text("<!-- summary: begin -->\n<!-- summary: end -->\n")
    index.write({"000": paper}, reports)
    index.into_page(reports, page)
    assert told.title in page.read_text()


def test_every_paper_obeys_the_law_of_verdicts():
    for number in NUMBERS:
        assert "assert unchanging(" in (Path(__file__).parent / f"test_paper{number}.py").read_text(), number


def test_a_verdict_that_nothing_changes_is_found():
    results = Results({cell: {"square": 4.0} for cell in cells((1, 2))})
    assert unchanging(lambda found: ["reproduced", str(found.values("square", "squares").sum() > 9)], results) == [0]


@pytest.mark.slow
def test_a_reproduction_leaves_everything(tmp_path):
    ahead = forecast(PAPER, "quick", tmp_path)
    assert (ahead.cells, ahead.missing, ahead.seconds) == (3, 3, 3.0)
    done = reproduce(PAPER, "quick", tmp_path, workers=0)
    assert forecast(PAPER, "quick", tmp_path).missing == 0
    folder = tmp_path / "000"
    for name in ("results.csv", "results.md", "spent.csv", "summary.json", "squares.png", "squares.svg", "report.html"):
        assert (folder / name).stat().st_size > 0
    text = done.page.read_text()
    for expected in (
        "Squares &lt;of&gt; numbers",
        "unstated",
        "typo",
        "Table 1",
        "9.5",
        "9 (at least 1)",
        "reproduced",
    ):
        assert expected in text
    assert "http" not in text.replace("http://www.w3.org", "")  # self-contained
    for name in ("index.html", "summary.csv", "summary.md", "summary.html"):
        assert (tmp_path / name).exists()
    assert "squares grow" in (tmp_path / "summary.md").read_text()
    assert json.loads((folder / "summary.json").read_text())["verdicts"][0]["ours"] == "9"


def test_the_index_tells_what_was_not_run(tmp_path):
    index.write({"000": PAPER, "001": replace(PAPER, number="001")}, tmp_path)
    assert "consenso reproduce 001" in (tmp_path / "index.html").read_text()
    assert len((tmp_path / "summary.csv").read_text().splitlines()) == 1


def test_the_summary_tells_what_grids_take_and_took(tmp_path):
    paper = replace(PAPER, grids={"quick": (1, 2, 3), "full": (1, 2, 3, 4)})
    reproduce(paper, "quick", tmp_path, workers=0, listed=(paper,))
    index.keep_duration(tmp_path / "000", "quick", 240.0)
    rows = index.durations({"000": paper}, tmp_path).rows
    assert rows == (("000", "quick", 3, 6.0 / 2 / 60, 2.0), ("000", "full", 4, 8.0 / 2 / 60, None))
    assert "| 000 | quick | 3 |" in (tmp_path / "summary.md").read_text()


def test_a_claim_is_told_from_the_largest_grid_that_has_it(tmp_path):
    paper = replace(PAPER, grids={"quick": (1, 2, 3), "full": (1, 2, 4)})
    for grid in ("full", "quick"):
        reproduce(paper, grid, tmp_path, workers=0, listed=(paper,))
        for name, seconds in (("full", 9.0), ("quick", 1.0)):
            path = tmp_path / "000" / "grids" / f"{name}.json"
            if path.exists():
                told = json.loads(path.read_text())
                told["made"]["seconds of work"] = seconds
                path.write_text(json.dumps(told))
    index.write({"000": paper}, tmp_path)
    (row,) = (tmp_path / "summary.csv").read_text().splitlines()[1:]
    assert row.startswith("000,squares grow,")
    assert row.endswith(",16,They do.,full")
    (table,) = index.main_tables({"000": index._grids(tmp_path / "000")})
    assert len(table.rows) == 3
    assert table.note.endswith("Grid full, 3 cells.")
    assert table.title in (tmp_path / "summary.md").read_text()


def test_a_long_table_is_told_by_rows_that_are_evenly_apart():
    kept = {"title": "Many", "columns": ["row"], "rows": [[row] for row in range(150)], "note": ""}
    made = {"grid": "full", "cells": 1, "seconds of work": 1.0}
    (table,) = index.main_tables({"000": [{"results": kept, "made": made}]})
    assert [row for (row,) in table.rows] == list(range(0, 150, 3))
    assert "One row in 3 of 150" in table.note
    assert index.main_tables({"000": [{"made": made}]}) == []  # a folder of an earlier version


def test_the_summary_goes_between_the_marks_of_a_page(tmp_path):
    reproduce(PAPER, "quick", tmp_path, workers=0, listed=(PAPER,))
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n<!-- summary: begin -->\nbefore\n<!-- summary: end -->\n\nThe end.\n")
    index.into_page(tmp_path, page)
    text = page.read_text()
    assert text.startswith("# Title")
    assert text.endswith("The end.\n")
    assert "squares grow" in text
    assert "before" not in text
    index.into_page(tmp_path, page)
    assert page.read_text() == text  # again, and nothing changes
    page.write_text("no marks")
    with pytest.raises(InputError, match="needs the lines"):
        index.into_page(tmp_path, page)


def test_few_points_of_a_logarithmic_axis_have_their_own_ticks(tmp_path):
    def labels(points) -> str:
        curve = Curve(label="c", x=points, y=[1.0] * len(points))
        panel = Panel(title="t", x="epsilon", y="y", curves=(curve,), log_x=True)
        _, svg = draw(Figure(name="ticks", title="t", caption="", panels=(panel,)), tmp_path)
        return svg.read_text()

    text = labels([0.05, 1.0, 100.0])
    assert all(f">{label}</text>" in text for label in ("0.05", "1", "100"))
    assert ">0.05</text>" not in labels(np.linspace(0.05, 5.0, 30))


def test_a_short_logarithmic_axis_has_plain_numbers(tmp_path):
    def drawn(values) -> str:
        curve = Curve(label="c", x=[1.0, 2.0], y=values)
        panel = Panel(title="t", x="x", y="y", curves=(curve,), log_y=True)
        _, svg = draw(Figure(name="plain", title="t", caption="", panels=(panel,)), tmp_path)
        return svg.read_text()

    assert ">0.2</text>" in drawn([0.15, 0.8])
    assert ">0.2</text>" not in drawn([1e-4, 0.8])


def test_a_card_that_was_changed_stops_the_report(tmp_path):
    from experiments.cards import checked
    from experiments.totals import of_card

    from consenso.algorithms.consensus import ConsensusADMM
    from consenso.planning.plan import plan

    example = ConsensusADMM.example()
    found = checked(plan(example.problem, example.algorithm, rounds=3, noise=example.noise).card(1e-5))
    assert found["checked"] > 100
    observers = [spent.observer for spent in of_card("run", found["card"], nominal=1.0)]
    assert observers == ["eavesdropper", "server", "peer:0", "public"]
    outcome = gather((1, 2, 3), run_cells(cells((1, 2, 3)), tmp_path / "cells", workers=0))
    made = {"grid": "quick"}
    report.write(PAPER, replace(outcome, cards={"a, run (1)": found}), tmp_path / "good", made=made)
    assert (tmp_path / "good" / "cards" / "a-run-1.json").exists()
    with pytest.raises(InputError, match="one file name"):
        report.write(PAPER, replace(outcome, cards={"a b": found, "a, b": found}), tmp_path / "twice", made=made)
    forged = {**found, "card": {**found["card"], "delta": 1e-9}}
    with pytest.raises(TamperError, match="digest"):
        report.write(PAPER, replace(outcome, cards={"run": forged}), tmp_path / "bad", made=made)
