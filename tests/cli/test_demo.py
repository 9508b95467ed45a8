"""The demo runs for real, its figures are those of its files, and its cards verify."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import forks

from consenso.cli.verify import check
from consenso.demo.page import MARKERS
from consenso.demo.table import AGAINST, HEAD

ROOT = Path(__file__).parents[2]
NAMES = ("central", "federated", "decentralized", "digits", "ward")
# What `pip install '.[demo]'` does not bring.
ABSENT = ("opendp", "pandas", "matplotlib", "starlette", "uvicorn", "flwr", "zenoh", "cryptography", "onnx", "cvxpy")
WITHOUT = f"import sys\nsys.modules.update(dict.fromkeys({ABSENT!r}))\nfrom consenso.cli import main\nmain()"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A demo with only what its own extra installs: its folder, standard output and standard error."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    asked = [sys.executable, "-c", WITHOUT, "demo", "--out", str(folder), "--epsilon", "2"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, done.stderr


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, float]]]:
    folder = tmp_path_factory.mktemp("demo") / "out"
    done = forks.run("demo", "--out", folder, "--epsilon", "2", "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)["studies"]


@pytest.mark.slow
def test_it_prints_one_table_in_at_most_25_lines(printed, demo) -> None:
    folder, out, err = printed
    assert len((out + err).splitlines()) <= 25
    assert max(len(line) for line in out.splitlines() if str(folder) not in line) <= 80
    assert f"Page: {folder / 'report.html'}" in out
    words = " ".join(out.split())
    for name, found in demo[1].items():
        shown = f"{found['private']:.1%}" if found["measure"] == "accuracy" else f"{found['private']:.3g} days"
        assert shown in words, name
        assert AGAINST[found["observer"]] in words
        assert found["epsilon"] == pytest.approx(2.0, rel=1e-3)


def test_the_table_of_the_readme_is_that_of_the_demo(demo) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition(MARKERS[0])[2].partition(MARKERS[1])[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert tuple(lines[0]) == HEAD
    for row, (name, found) in zip(lines[2:], demo[1].items(), strict=True):
        assert row[5] == AGAINST[found["observer"]], name
        figures = [float(row[place].rstrip("% days")) for place in (2, 3)]
        scale = 100 if found["measure"] == "accuracy" else 1
        # Another processor may round one test record to the other side.
        expected = [scale * found["private"], scale * found["exact"]]
        assert figures == pytest.approx(expected, abs=0.6 if scale == 100 else 0.02), name


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
        assert f"{figures[name]['private']:.1%}" in page, "the table has it"
        metrics = json.loads((folder / name / "metrics.json").read_text())
        assert metrics["accuracy"] == figures[name]["private"]
    linked = re.findall(r"href='([^']+)'", page)
    assert len(linked) == 2 * len(NAMES)
    assert all((folder / link).exists() for link in linked)
    assert "http" not in page


@pytest.mark.parametrize("name", NAMES)
def test_its_cards_verify(demo, name) -> None:
    check(demo[0] / name)


def test_a_bad_epsilon_is_one_clear_error(tmp_path: Path) -> None:
    done = forks.run("demo", "--out", tmp_path, "--epsilon", "-1")
    assert done.returncode == 2
    assert "epsilon" in done.stderr
    assert "Traceback" not in done.stderr
