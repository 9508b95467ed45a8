"""The demo runs for real, its figures are those of its files, and its cards verify."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests import forks

NAMES = ("central", "federated", "decentralized", "digits", "ward")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, float]]]:
    folder = tmp_path_factory.mktemp("demo") / "out"
    for _ in range(2):  # a second demo replaces the first
        done = forks.run("demo", "--out", folder, "--epsilon", "2", "--json")
        assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)["studies"]


def test_the_sparse_regression_uses_few_columns(demo) -> None:
    folder, _ = demo
    model = json.loads((folder / "ward" / "model.json").read_text())
    used = [name for name, (weight,) in zip(model["features"], model["coefficients"], strict=True) if weight != 0]
    assert 4 <= len(used) < len(model["features"])


def test_every_model_beats_the_simplest_guess_and_not_the_exact_fit_by_much(demo) -> None:
    _, figures = demo
    assert tuple(figures) == NAMES
    for name in ("central", "federated", "decentralized", "digits"):
        found = figures[name]
        assert found["simplest"] + 0.2 < found["private"] <= found["exact"] + 0.03, name
    ward = figures["ward"]
    assert ward["exact"] * 0.99 <= ward["private"] < 0.75 * ward["simplest"]


def test_the_page_shows_the_figures_of_the_runs_and_loads_nothing(demo) -> None:
    folder, figures = demo
    page = (folder / "report.html").read_text()
    for name in ("central", "federated", "decentralized", "digits"):
        assert f"{figures[name]['private']:.1%}" in page
        metrics = json.loads((folder / name / "metrics.json").read_text())
        assert metrics["accuracy"] == figures[name]["private"]
    linked = re.findall(r"href='([^']+)'", page)
    assert len(linked) == 2 * len(NAMES)
    assert all((folder / link).exists() for link in linked)
    assert "http" not in page


@pytest.mark.parametrize("name", NAMES)
def test_its_cards_verify(demo, name) -> None:
    folder, _ = demo
    checked = forks.run("verify", folder / name)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_bad_epsilon_is_one_clear_error(tmp_path: Path) -> None:
    done = forks.run("demo", "--out", tmp_path, "--epsilon", "-1")
    assert done.returncode == 2
    assert "epsilon" in done.stderr
    assert "Traceback" not in done.stderr
