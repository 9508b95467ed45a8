"""The comparison of private fits, on its smallest task."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def run(folder, *arguments):
    command = [sys.executable, "-m", "benchmarks.utility", "small", "--seeds", "2", "--out", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "CONSENSO_DIFFPRIVLIB": ""})
    return json.loads((folder / "fits.json").read_text())


def test_a_table_and_a_figure_of_every_method_and_a_second_run_reads_what_the_first_kept(tmp_path):
    fits = run(tmp_path, "--epsilon", "0.5", "--epsilon", "5")
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
    assert run(tmp_path, "--epsilon", "0.5", "--epsilon", "5") == fits
    assert (tmp_path / "fits.jsonl").read_text() == kept
