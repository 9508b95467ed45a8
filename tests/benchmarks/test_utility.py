"""The comparison of private fits, on its smallest task."""

from __future__ import annotations

import json
import sys

import pytest
from benchmarks.utility.__main__ import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSENSO_DIFFPRIVLIB", "")
    told = ("benchmarks.utility", "small", "--seeds", "2", "--out", str(tmp_path), "--epsilon", "0.5", "--epsilon", "5")
    monkeypatch.setattr(sys, "argv", list(told))

    def make():
        main()
        return json.loads((tmp_path / "fits.json").read_text())

    return make


@pytest.mark.slow
def test_a_table_and_a_figure_of_every_method_and_a_second_run_reads_what_the_first_kept(run, tmp_path):
    fits = run()
    methods = {fit["method"] for fit in fits}
    assert {"consenso, auto", "consenso, dp-sgd", "output perturbation, best of 3", "without privacy"} <= methods
    table = (tmp_path / "table.md").read_text()
    assert all(method in table for method in methods - {"without privacy"})
    assert table.count("**") >= 4  # the winner of each column
    assert (tmp_path / "utility.png").stat().st_size > 10_000
    # Twice the budget of noise is a worse fit; both beat a coin.
    auto = {fit["epsilon"]: fit for fit in fits if fit["method"] == "consenso, auto"}
    assert auto[5.0]["excess"] < auto[0.5]["excess"]
    kept = (tmp_path / "fits.jsonl").read_text()
    assert run() == fits
    assert (tmp_path / "fits.jsonl").read_text() == kept
