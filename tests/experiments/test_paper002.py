"""Paper 002 on a grid smaller than quick: shapes, orderings, true totals."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.paper002 import claims
from experiments.paper002.definition import PAPER, Grid
from experiments.reproduction import reproduce

from consenso.privacy.accountants import epsilon as epsilon_of
from consenso.privacy.events import Gaussian


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, data_dir: Path):
    methods = ("IPADMM, free options", "DP-ADMM", "PVP", "DVP", "R-ADMM", "DP gradient descent, server")
    grid = Grid(epsilons=(1.0,), inners=(1, 5), inner=5, compared=(1.0,), methods=methods, seeds=1)
    paper = replace(PAPER, grids={"tiny": grid})
    return reproduce(paper, "tiny", tmp_path_factory.mktemp("out"), workers=0, listed=(paper,))


def test_risks_lie_between_the_exact_fit_and_the_zero_model(done):
    risks = {row[1]: row[4] for row in done.outcome.results.rows if row[0] == "corrected"}
    exact = next(row[4] for row in done.outcome.results.rows if row[0] == "without privacy")
    assert exact < min(risks.values())
    assert risks["IPADMM, free options"] < 0.45
    assert risks["DVP"] > risks["PVP"]


def test_published_runs_cost_more_than_their_noise_is_worth_and_corrected_ones_what_they_say(done):
    published = [each for each in done.outcome.spent if each.version == "as published"]
    assert {each.observer for each in published} == {"eavesdropper", "peer:0", "public"}
    for each in published:  # (18) divides by less than the noise of Theorem 6 is made for
        mu = claims.printed_mu(epsilon=each.nominal, delta=each.delta)
        assert each.epsilon > 1.01 * epsilon_of(Gaussian(std=1.0, sensitivity=mu), each.delta)
    corrected = [each for each in done.outcome.spent if each.version == "corrected" and each.observer == "eavesdropper"]
    assert corrected
    assert all(0.99 * each.nominal <= each.epsilon <= each.nominal for each in corrected)


def test_the_page_is_made_from_the_results(done):
    page = Path(done.page).read_text()
    assert all(verdict.ours in page for verdict in done.outcome.verdicts)


def test_a_changed_result_changes_the_page(done, tmp_path: Path):
    before = Path(done.page).read_text()
    shutil.copytree(Path(done.page).parents[1] / "cells", tmp_path / "cells")
    changed = 0
    for path in (tmp_path / "cells" / "002").glob("*.json"):
        kept = json.loads(path.read_text())
        if kept["cell"].startswith("baseline ("):
            values = kept["values"]
            values["risk"] = 0.98765
            path.write_text(json.dumps(kept))
            changed += 1
    again = reproduce(done.paper, "tiny", tmp_path, workers=0, listed=(done.paper,))
    after = Path(again.page).read_text()
    assert changed
    assert "0.988" in after
    assert "0.988" not in before
