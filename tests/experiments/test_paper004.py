"""Paper 004 on a grid smaller than quick: shapes, orderings, cards, and that a page follows its results."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest
from experiments.paper004 import corrected, first_round, published, worlds
from experiments.paper004.definition import PAPER, Grid, cells
from experiments.paper004.verdicts import verdicts
from experiments.reproduction import reproduce
from experiments.results import Results
from experiments.running import run_cells
from tests.experiments.changing import unchanging

from consenso.regularizers import NoPenalty


def test_every_method_appears_and_more_budget_is_a_smaller_error(done):
    rows = done.outcome.results.rows
    found = {(version, task, method, epsilon): median for version, task, method, epsilon, median, *_ in rows}
    methods = {"published": published.METHODS, "corrected": corrected.METHODS}
    for version, names in methods.items():
        for task in worlds.TASKS:
            for name in names:
                if name != "P-ADMM" or task == "ridge":
                    assert found[version, task, name, 100.0] < found[version, task, name, 3.0]


def test_published_runs_have_no_finite_epsilon_and_cost_more_than_they_say(done):
    published_runs = [each for each in done.outcome.spent if each.version == "as published"]
    assert all(each.epsilon == float("inf") for each in published_runs)
    tamest = first_round.cost(task="ridge", epsilon=3.0, seed=0)
    assert tamest["true rho"] > 100 * tamest["nominal rho"]
    bounded = first_round.cost(task="least absolute deviations", epsilon=3.0, seed=0)
    assert bounded["true rho"] <= bounded["nominal rho"]  # its slopes are bounded: the sensitivity holds


@pytest.mark.slow
def test_a_corrected_run_spends_its_epsilon_and_its_card_follows():
    found = corrected.train(task="least absolute deviations", method="zCDP-NFL", epsilon=2.0, seed=0, carded=True)
    assert found["epsilon"] == pytest.approx(2.0, rel=1e-6)
    assert found["card"]["checked"] > 100


def test_the_page_shows_the_numbers_of_the_results(done):
    page = Path(done.page).read_text()
    verdict = done.outcome.verdicts[0]
    assert verdict.ours in page
    assert "zCDP-NFL, free options" in page


def made_up(*, own=1.0, other=2.0, right=2.0, exact=1.0, spread=0.05, wasted=0.1) -> Results:
    """Results in which zCDP-NFL has the error `own` and all others have `other` (published) or `right` (corrected)."""
    rng = np.random.default_rng(0)
    found = {}
    for cell in cells(GRID):
        asked = dict(cell.settings)
        level = {"published": other, "corrected": right}.get(cell.group, 1.0)
        if asked.get("method") == "zCDP-NFL":
            level = own
        found[cell] = {
            "last": level * (1 + spread * rng.normal()),
            "exact multiplier, zCDP-NFL": exact,
            "exact multiplier, (eps, delta)-NFL": 1.0,
            "true epsilon, zCDP-NFL": 0.7,
            "true epsilon, (eps, delta)-NFL": wasted,
        }
    return Results(found)


GRID = Grid(epsilons=(1.0, 10.0), seeds=4)


def states(results: Results) -> list[str]:
    return [verdict.state for verdict in verdicts(GRID, results)]


def test_each_verdict_follows_its_inputs():
    assert unchanging(states, made_up()) == []
    assert states(made_up()) == ["only with the flaw"] * 2 + ["reproduced"] * 3
    assert states(made_up(exact=0.5))[:2] == ["reproduced"] * 2
    assert states(made_up(other=0.5)) == ["not reproduced"] * 2 + ["reproduced"] * 3
    assert states(made_up(right=0.5))[2:] == ["only with the flaw"] * 3
    assert states(made_up(other=0.5, right=0.5))[2:] == ["not reproduced"] * 3
    assert states(made_up(other=1.05, right=1.05, spread=0.5)) == ["undecided"] * 5
    assert states(made_up(other=1.0, right=1.0, spread=0.01))[4] == "reproduced"  # at or below


def test_the_verdict_on_accountants_has_its_charitable_reading():
    readings = [verdicts(GRID, made_up(wasted=wasted))[0].because for wasted in (0.1, 0.9)]
    assert ["as a statement on accountants it holds" in each for each in readings] == [True, False]


def test_objections_follow_the_results(tmp_path: Path):
    groups = {group for case in PAPER.cases for group in case.groups}
    results = run_cells([cell for cell in cells(GRID) if cell.group in groups], tmp_path, workers=0)
    found = {case.name: case.object_to(results) for case in PAPER.cases}
    assert all(each.stands for each in found.values())
    assert not any(each.survives for each in found.values())

    def edited(**values) -> Results:
        return Results({cell: {**kept, **values} for cell, kept in results.items()})

    assert not PAPER.cases[0].object_to(edited(**{"true rho": 0.0})).stands
    assert PAPER.cases[0].object_to(edited(**{"true rho": 9.0, "nominal rho": 1.0})).survives
    assert not PAPER.cases[1].object_to(edited(**{"exact multiplier, zCDP-NFL": 0.1})).stands
    assert not PAPER.cases[2].object_to(edited(falls=True, summable=True)).stands
    assert PAPER.cases[2].object_to(edited(falls=False)).survives


def test_objectives_are_the_papers():
    assert isinstance(worlds.world("least absolute deviations", 0, bounded=True).problem.regularizer, NoPenalty)
    step = corrected.algorithm("zCDP-NFL", "ridge").step
    assert (step.first, step.power) == (published.STEP, -published.FALL)
    falls = [published.fall_of(name) for name in published.METHODS]
    assert falls == [0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0.0]


def test_a_changed_result_changes_the_page(done, tmp_path: Path):
    before = Path(done.page).read_text()
    shutil.copytree(Path(done.page).parents[1] / "cells", tmp_path / "cells")
    changed = 0
    for path in (tmp_path / "cells" / "004").glob("*.json"):
        kept = json.loads(path.read_text())
        if kept["cell"].startswith("published (") and "method=zCDP-NFL," in kept["cell"]:
            values = kept["values"]
            values["last"] *= 1000.0
            path.write_text(json.dumps(kept))
            changed += 1
    undrawn = replace(
        done.paper, gather=lambda grid, found: replace(done.paper.gather(grid, found), figures=())
    )  # which take longest
    again = reproduce(undrawn, "tiny", tmp_path, workers=0, listed=(undrawn,))
    after = Path(again.page).read_text()
    assert changed
    other = {verdict.ours for verdict in again.outcome.verdicts} - {verdict.ours for verdict in done.outcome.verdicts}
    assert other
    assert all(escape(ours) in after and escape(ours) not in before for ours in other)
